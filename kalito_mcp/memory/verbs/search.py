"""Finding: search, past answers, and the feedback on them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field, PlainValidator, WithJsonSchema

from kalito_mcp.domain.access import Permission
from kalito_mcp.domain.graph import KeptFeedback
from kalito_mcp.domain.importance import ImportanceLevel, least_score
from kalito_mcp.domain.past_answers import PastAnswer
from kalito_mcp.domain.records import NOTE, Origin, RecordType, Role, full_record_id
from kalito_mcp.domain.search import MOST_HITS, SearchFilters, SearchPage, SearchRequest
from kalito_mcp.domain.time import zone_of
from kalito_mcp.domain.zone import Zone
from kalito_mcp.domain.zone_names import zone_named
from kalito_mcp.memory.verbs.shapes import (
    AgentName,
    Also,
    FoundTypeName,
    Input,
    MomentText,
    OriginName,
    RoleName,
    SessionName,
    Text,
    Word,
)
from kalito_mcp.memory.verbs.verb import Caller, Verb
from kalito_mcp.text.times.expressions import moment_in_words

_CURSOR: Final = re.compile(
    r"(?P<place>.+)@(?P<now_ms>-?\d{1,15})(?P<offset>[+-][01]\d:[0-5]\d)?", re.ASCII | re.DOTALL
)
LeastImportance = Annotated[
    float,
    PlainValidator(lambda value: 0.0 if value is None else least_score(value)),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "number", "minimum": 0, "maximum": 1},
                {"type": "string", "enum": list(map(str, ImportanceLevel))},
            ]
        }
    ),
]


class Search(Input):
    """What to find, and where. `k` is the size of a page."""

    query: Annotated[
        str,
        Field(
            description='What to look for, in any words. `"an exact phrase"` must occur, `-word` must not.',
            min_length=1,
        ),
    ]
    also: Also = None
    k: Annotated[int, Field(description="How many hits at most.", ge=1, le=MOST_HITS)] = 10
    session_id: Annotated[
        SessionName | None, Field(description="Only this conversation; default: all of the agent's.")
    ] = None
    agent_id: AgentName = None
    types: Annotated[
        list[FoundTypeName] | None,
        Field(description="Only these types. Thoughts are found only if named here.", max_length=7),
    ] = None
    roles: Annotated[list[RoleName] | None, Field(description="Only what these said.", max_length=3)] = None
    names: Annotated[list[Word] | None, Field(description="Only speakers of these names.", max_length=20)] = None
    tags: Annotated[list[Word] | None, Field(description="Only with any of these tags.", max_length=20)] = None
    origins: Annotated[
        list[OriginName] | None,
        Field(description="Only words of these origins.", max_length=5),
    ] = None
    min_importance: Annotated[LeastImportance, Field(description="Least importance: 0 to 1, or a level.")] = 0.0
    since: Annotated[MomentText | None, Field(description="ISO 8601, `7d` ago, or words: `last March`.")] = None
    until: Annotated[MomentText | None, Field(description="Like since, up to its end.")] = None
    now: Annotated[
        MomentText | None,
        Field(description="What `7d` and `last March` count from; default: now."),
    ] = None
    explain: Annotated[bool, Field(description="Say why each hit was found.")] = False
    cursor: Annotated[
        str | None,
        Field(description="next_cursor of the same search, for its next hits.", min_length=1, max_length=400),
    ] = None


@dataclass(frozen=True, slots=True)
class Found:
    """A page of hits, what was searched for, and the cursor of the next page."""

    page: SearchPage
    request: SearchRequest
    next_cursor: str | None


class PastAnswersQuery(Input):
    """What was asked before like this?"""

    query: Text
    session_id: SessionName | None = None
    agent_id: AgentName = None


class Feedback(Input):
    """What the user thought of a message, or of a node of a past answer."""

    target_id: Annotated[
        Word,
        Field(description="The rated message, such as `msg_45`, or a node of a graph."),
        AfterValidator(full_record_id),
    ]
    label: Annotated[
        Literal["up", "down", "retry"],
        Field(description="`retry`: the user asked for another answer; counts as half a `down`."),
    ]
    note: Annotated[
        str | None, Field(description="Why, in the user's words.", min_length=1, max_length=4_000, pattern=r"\S")
    ] = None
    session_id: Annotated[
        SessionName | None, Field(description="Only for a node of a session's graph: its conversation.")
    ] = None
    agent_id: AgentName = None


async def search(caller: Caller, sent: Search, *, is_preview: bool = False) -> Found:
    """One page of hits; in a preview, none of them counts as used."""
    memory = caller.memory
    place, started_ms, zone = _parsed_cursor(sent.cursor, memory.zone)
    if sent.now is not None:
        now_ms = moment_in_words(sent.now, "now", memory.place.clock.now_ms(), is_last=False, zone=memory.zone)
        zone = zone_of(sent.now, now_ms, memory.zone)
    else:
        # The next page counts from the same moment, and its cursor belongs to this search.
        now_ms = memory.place.clock.now_ms() if started_ms is None else started_ms
    request = SearchRequest(
        query=sent.query,
        k=sent.k,
        filters=_filters(caller, sent, now_ms, zone),
        cursor=place,
        explain=sent.explain,
        now_ms=now_ms,
        zone=zone,
        also=tuple(sent.also or ()),
    )
    page = await memory.search_memory(
        request,
        session_id=sent.session_id,
        agent_id=sent.agent_id,
        client=caller.editor.id,
        is_preview=is_preview,
    )
    offset = "" if zone is memory.zone else zone.offset(now_ms)
    return Found(page, request, f"{page.next_cursor}@{now_ms}{offset}" if page.next_cursor else None)


def _filters(caller: Caller, sent: Search, now_ms: int, zone: Zone) -> SearchFilters:
    def moment(words: str | None, name: str, *, is_last: bool) -> int | None:
        return None if words is None else moment_in_words(words, name, now_ms, is_last=is_last, zone=zone)

    return SearchFilters(
        types=frozenset(one if one == NOTE else RecordType(one) for one in sent.types or ()),
        roles=frozenset(map(Role, sent.roles or ())),
        names=frozenset(sent.names or ()),
        tags=frozenset(sent.tags or ()),
        origins=frozenset(map(Origin, sent.origins or ())),
        min_importance=sent.min_importance,
        since=moment(sent.since, "since", is_last=False),
        until=moment(sent.until, "until", is_last=True),
        seen=caller.seen,
    )


def _parsed_cursor(cursor: str | None, zone: Zone) -> tuple[str | None, int | None, Zone]:
    """The search's own cursor, the moment that its first page counted from, if the cursor has one, and the zone of its
    days: `zone`, unless `now` gave an offset."""
    found = _CURSOR.fullmatch(cursor or "")
    if found is None:
        return cursor, None, zone
    return found["place"], int(found["now_ms"]), zone_named(found["offset"]) if found["offset"] else zone


async def past_answers(caller: Caller, sent: PastAnswersQuery) -> Sequence[PastAnswer]:
    """Similar questions, with their answers."""
    return await caller.memory.past_answers(sent.query, session_id=sent.session_id, agent_id=sent.agent_id)


async def record_feedback(caller: Caller, sent: Feedback) -> KeptFeedback:
    """Remember what the user thought."""
    return await caller.memory.record_feedback(
        sent.target_id, sent.label, sent.note, session_id=sent.session_id, agent_id=sent.agent_id
    )


SEARCH: Final = Verb("search_memory", Permission.READ, "Find records, best first, and say why", Search)
PAST_ANSWERS: Final = Verb("past_answers", Permission.READ, "How similar questions were answered", PastAnswersQuery)
FEEDBACK: Final = Verb("record_feedback", Permission.WRITE, "Remember what the user thought of an answer", Feedback)
