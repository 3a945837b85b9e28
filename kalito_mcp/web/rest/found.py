"""Endpoints that find: search, past answers, and the feedback on them.

Queries are sent as bodies, never in a URL: proxies and browsers keep URLs.
"""

from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field

from kalito_mcp.domain.access import Permission
from kalito_mcp.domain.importance import least_score
from kalito_mcp.domain.records import Origin, RecordType, Role, full_record_id
from kalito_mcp.domain.search import SearchFilters, SearchRequest
from kalito_mcp.shapes import Hit, OriginName, Output, PastQuestion, Redacted, RoleName, TypeName
from kalito_mcp.text.times.expressions import moment_in_words
from kalito_mcp.web.rest.cursors import cursor_of, place_in
from kalito_mcp.web.rest.endpoint import Call, Endpoint, InProject, Input, Reply
from kalito_mcp.web.rest.shapes import AgentName, CursorText, NextCursor, SessionName

Words = Annotated[str, Field(description="What to look for, in any words.", min_length=1, pattern=r"\S")]
Word = Annotated[str, Field(min_length=1, max_length=200)]
WhenName = Annotated[
    str | None,
    Field(description="ISO 8601, `7d` ago, or words: `last March`.", min_length=1, max_length=100),
]
Level = Literal["low", "medium", "high", "critical"]


class Search(Input):
    """A search. `k` is the size of a page."""

    query: Words
    also: Annotated[list[str], Field(default_factory=list, description="Other wordings of it; the first four count.")]
    k: Annotated[int, Field(ge=1, le=1_000_000_000)] = 10
    session_id: SessionName | None = None
    agent_id: AgentName = None
    types: Annotated[list[TypeName], Field(default_factory=list, description="Thoughts only if named.", max_length=6)]
    roles: Annotated[list[RoleName], Field(default_factory=list, max_length=3)]
    names: Annotated[
        list[Word], Field(default_factory=list, description="Only speakers of these names.", max_length=20)
    ]
    tags: Annotated[list[Word], Field(default_factory=list, description="Only with any of these tags.", max_length=20)]
    origins: Annotated[list[OriginName], Field(default_factory=list, max_length=5)]
    min_importance: Annotated[
        Annotated[float, Field(ge=0, le=1)] | Level,
        Field(description="0 to 1, or a level."),
        AfterValidator(least_score),
    ] = 0.0
    since: WhenName = None
    until: WhenName = None
    explain: Annotated[bool, Field(description="Say why each hit was found.")] = False
    cursor: CursorText = None


class Found(Output):
    """Hits, best first. `note` says why there are none, or what could not be searched."""

    hits: list[Hit]
    next_cursor: NextCursor = None
    note: str | None = None


class AskBefore(Input):
    """What was asked before like this?"""

    query: Words
    session_id: SessionName | None = None
    agent_id: AgentName = None


class PastQuestions(Output):
    """Similar questions that were asked before."""

    past_answers: list[PastQuestion]


class Feedback(Input):
    """What the user thought of a message, or of a node of a past answer."""

    target_id: Annotated[str, Field(min_length=1, max_length=200)]
    label: Annotated[Literal["up", "down", "retry"], Field(description="`retry` counts half a `down`.")]
    note: Annotated[str | None, Field(min_length=1, max_length=4_000, pattern=r"\S")] = None
    session_id: SessionName | None = None
    agent_id: AgentName = None


class KeptFeedback(Output):
    """The feedback that was stored."""

    feedback_id: str
    target_id: str
    label: Literal["up", "down", "retry"]
    redacted: Redacted = None


async def search(call: Call[Search, InProject]) -> Reply:
    """One page of hits."""
    body, memory = call.body, call.memory
    if body.cursor is None:
        place, now_ms = None, memory.place.clock.now_ms()
    else:
        # `7d` means the same moment on every page.
        place, now_ms = place_in(call, body, body.cursor, str, int)

    def moment(words: str | None, name: str, *, is_last: bool) -> int | None:
        return None if words is None else moment_in_words(words, name, now_ms, is_last=is_last, zone=memory.zone)

    filters = SearchFilters(
        types=frozenset(map(RecordType, body.types)),
        roles=frozenset(map(Role, body.roles)),
        names=frozenset(body.names),
        tags=frozenset(body.tags),
        origins=frozenset(map(Origin, body.origins)),
        min_importance=float(body.min_importance),
        since=moment(body.since, "since", is_last=False),
        until=moment(body.until, "until", is_last=True),
    )
    request = SearchRequest(
        query=body.query,
        k=body.k,
        filters=filters,
        cursor=place,
        explain=body.explain,
        now_ms=now_ms,
        also=tuple(body.also),
    )
    page = await memory.search_memory(request, session_id=body.session_id, agent_id=body.agent_id)
    following = None if page.next_cursor is None else cursor_of(call, body, page.next_cursor, now_ms)
    hits = [Hit(**one.to_dict()) for one in page.hits]
    return Reply(Found(hits=hits, next_cursor=following, note=page.note))


async def past_answers(call: Call[AskBefore, InProject]) -> Reply:
    """Similar questions, with their answers."""
    body = call.body
    found = await call.memory.past_answers(body.query, session_id=body.session_id, agent_id=body.agent_id)
    return Reply(PastQuestions(past_answers=[PastQuestion(**one.to_dict()) for one in found]))


async def record_feedback(call: Call[Feedback, InProject]) -> Reply:
    """Remember what the user thought."""
    body = call.body
    target_id = full_record_id(body.target_id)
    kept = await call.memory.record_feedback(
        target_id, body.label, body.note, session_id=body.session_id, agent_id=body.agent_id
    )
    return Reply(
        KeptFeedback(feedback_id=kept.id, target_id=target_id, label=body.label, redacted=list(kept.redacted) or None)
    )


FOUND: Final = (
    Endpoint(
        "POST", "/search", Permission.READ, "Find records, best first, and say why", search, Found, Search, InProject,
        tag="search", is_idempotent=True,
    ),
    Endpoint(
        "POST", "/past-answers", Permission.READ, "How similar questions were answered", past_answers, PastQuestions,
        AskBefore, InProject, tag="search", is_idempotent=True,
    ),
    Endpoint(
        "POST", "/feedback", Permission.WRITE, "Remember what the user thought of an answer", record_feedback,
        KeptFeedback, Feedback, InProject, status=201, tag="search",
    ),
)  # fmt: skip
