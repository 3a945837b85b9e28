"""The tool of search: search_memory."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final

from mcp.types import CallToolResult
from pydantic import Field, PlainValidator, WithJsonSchema

from kalito_mcp.domain.importance import ImportanceLevel, least_score
from kalito_mcp.domain.records import Origin, RecordType, Role
from kalito_mcp.domain.search import SearchFilters, SearchPage, SearchRequest
from kalito_mcp.domain.time import from_iso, zone_of
from kalito_mcp.domain.zone import Zone
from kalito_mcp.domain.zone_names import zone_named
from kalito_mcp.server.memory_handle import MemoryHandle
from kalito_mcp.server.own_conversation import OwnConversation
from kalito_mcp.server.tools.answers import answer
from kalito_mcp.server.tools.graph import past_lines, past_question
from kalito_mcp.server.tools.shapes import AgentId, Also, ReadProject, SearchResult
from kalito_mcp.shapes import Hit, OriginName, RoleName, TypeName
from kalito_mcp.text.plurals import plural
from kalito_mcp.text.questions import begun_answer
from kalito_mcp.text.times.expressions import moment_in_words
from kalito_mcp.text.titles import short_id

_CURSOR: Final = re.compile(r"(?P<place>.+)@(?P<now_ms>-?\d{1,15})(?P<offset>[+-]\d\d:\d\d)?", re.ASCII | re.DOTALL)
_FILTERS: Final = ("types", "roles", "names", "tags", "origins", "min_importance", "since", "until")
_OTHER_WORDS: Final = "Try other words for it, a name or a date"
_SEEN: Final = "What you still see of this conversation was left out: send its session_id to search that"
_FAR: Final = "These are the nearest memories, and far from the query"
_DECIMALS: Final = 4
_MOMENTS: Final = ("created_at", "valid_until")
_MADE_KEY: Final = re.compile(r"^hook:|:[0-9a-f]{32}$", re.ASCII)
_MILLISECONDS: Final = re.compile(r"\.\d{3}Z$", re.ASCII)


LeastImportance = Annotated[
    float,
    PlainValidator(lambda value: 0.0 if value is None else least_score(value)),
    WithJsonSchema({"anyOf": [{"type": "number"}, {"type": "string", "enum": list(map(str, ImportanceLevel))}]}),
]
Word = Annotated[str, Field(min_length=1, max_length=200)]


class SearchTools:
    """The tool that finds what was said."""

    def __init__(self, opened: MemoryHandle, own: OwnConversation) -> None:
        self._opened = opened
        self._own = own

    async def search_memory(
        self,
        query: Annotated[
            str,
            Field(
                description='What to look for, in any words. `"an exact phrase"` must occur, `-word` must not.',
                min_length=1,
            ),
        ],
        also: Also = None,
        k: Annotated[int, Field(description="How many hits at most.", ge=1, le=1_000_000_000)] = 10,
        session_id: Annotated[
            str | None, Field(description="Only this conversation; default: all of the agent's.", max_length=200)
        ] = None,
        agent_id: AgentId = None,
        project: ReadProject = None,
        types: Annotated[
            list[TypeName] | None,
            Field(description="Only these types. Thoughts are found only if named here.", max_length=6),
        ] = None,
        roles: Annotated[list[RoleName] | None, Field(description="Only what these said.", max_length=3)] = None,
        names: Annotated[list[Word] | None, Field(description="Only speakers of these names.", max_length=20)] = None,
        tags: Annotated[list[Word] | None, Field(description="Only with any of these tags.", max_length=20)] = None,
        origins: Annotated[
            list[OriginName] | None,
            Field(description="Only words of these origins, as in a hit's `origin`.", max_length=5),
        ] = None,
        min_importance: Annotated[LeastImportance, Field(description="Least importance: 0 to 1, or a level.")] = 0.0,
        since: Annotated[
            str | None,
            Field(description="ISO 8601, `7d` ago, or words: `last March`, `two weeks ago`.", max_length=100),
        ] = None,
        until: Annotated[
            str | None, Field(description="Like since; a day or month counts to its end.", max_length=100)
        ] = None,
        now: Annotated[
            str | None,
            Field(
                description="The moment that `7d` and `last March` count from, ISO 8601; default: now.",
                max_length=40,
            ),
        ] = None,
        explain: Annotated[bool, Field(description="Say why each hit was found.")] = False,
        cursor: Annotated[
            str | None, Field(description="next_cursor of the same search, for its next hits.", max_length=40)
        ] = None,
    ) -> Annotated[CallToolResult, SearchResult]:
        """Find messages, pins, summaries, notes, documents and tasks across all conversations, best first. `also` finds
        what was said in other words than the query. Hits are the nearest memories, not answers: judge them by their
        text, not by their score. They come with ids, dates, the turns beside them. Of two that differ, the later may
        hold. Also returns past answers to similar questions. For the current conversation as a whole, use
        build_context."""
        memory = await self._opened.memory_asked(project)
        place, started_ms, zone = _parse_cursor(cursor, memory.zone)
        if now is not None:
            now_ms = from_iso(now, "now", memory.zone)
            zone = zone_of(now, now_ms, memory.zone)
        else:
            # Otherwise `7d` would mean another moment on the next page, and the cursor would be another search's.
            now_ms = memory.place.clock.now_ms() if started_ms is None else started_ms
        filters = SearchFilters(
            types=frozenset(map(RecordType, types or ())),
            roles=frozenset(map(Role, roles or ())),
            names=frozenset(names or ()),
            tags=frozenset(tags or ()),
            origins=frozenset(map(Origin, origins or ())),
            min_importance=min_importance,
            since=None if since is None else moment_in_words(since, "since", now_ms, is_last=False, zone=zone),
            seen=await self._own.seen(session_id),
            until=None if until is None else moment_in_words(until, "until", now_ms, is_last=True, zone=zone),
        )
        request = SearchRequest(
            query=query,
            k=k,
            filters=filters,
            cursor=place,
            explain=explain,
            now_ms=now_ms,
            zone=zone,
            also=tuple(also or ()),
        )
        page = await memory.search_memory(request, session_id=session_id or None, agent_id=agent_id or None)
        # Past answers are the same on every page, and no filter is about them.
        is_plain = cursor is None and filters == SearchFilters()
        past = (
            await (await self._opened.memory_for(project)).past_answers(
                query, session_id=session_id or None, agent_id=agent_id or None
            )
            if is_plain
            else ()
        )
        found = SearchResult(
            hits=[_search_hit(hit.to_dict()) for hit in page.hits],
            past_answers=[past_question(one) for one in past],
            next_cursor=_cursor(page.next_cursor, now_ms, None if zone is memory.zone else zone),
            note=_note(page, request, session_id),
        )
        more = f" More: cursor {found.next_cursor}" if found.next_cursor else ""
        note = f" {found.note}" if found.note else ""
        lines = [line for hit in found.hits for line in _lines(hit)]
        return answer("\n".join([f"{plural(len(found.hits), 'hit')}.{more}{note}", *lines, *past_lines(past)]), found)


def _cursor(place: str | None, now_ms: int, zone: Zone | None) -> str | None:
    """The search's cursor with the moment that its first page counts from, and the offset that `now` gave, if any."""
    offset = "" if zone is None else zone.offset(now_ms)
    return f"{place}@{now_ms}{offset}" if place else None


def _parse_cursor(cursor: str | None, zone: Zone) -> tuple[str | None, int | None, Zone]:
    """The cursor that the search returned, the moment that its first page counted from, if the cursor has one, and the
    zone of its days: `zone`, unless the cursor has an offset."""
    found = _CURSOR.fullmatch(cursor or "")
    if found is None:
        return cursor, None, zone
    return found["place"], int(found["now_ms"]), zone_named(found["offset"]) if found["offset"] else zone


def _note(page: SearchPage, request: SearchRequest, session_id: str | None) -> str | None:
    """The search's own note, and what to try if it found nothing, or too little."""
    again = _ask_again(page, request)
    tips = [_FAR] * bool(again and page.hits) + [again] * bool(again)
    if not page.hits:
        filters = request.filters
        given = [name for name in _FILTERS if getattr(filters, name) != getattr(SearchFilters(), name)]
        given += ["session_id"] if session_id else []
        tips = [f"Try without {' or '.join(given)}", *tips] if given else tips or [_OTHER_WORDS]
        tips += [_SEEN] if filters.seen and not session_id else []
    return " ".join(f"{one.rstrip('.')}." for one in (page.note, *tips) if one) if tips else page.note


def _ask_again(page: SearchPage, request: SearchRequest) -> str | None:
    """What to send with the next search, if this one found too little and had no other wordings of the query."""
    if request.other_wordings or request.cursor or not page.is_weak:
        return None
    example = json.dumps([begun_answer(request.query)], ensure_ascii=False)
    return f"Search again with also, 2 to 4 ways the user may have said it, such as {example} with the likely answer"


def _search_hit(fields: dict[str, Any]) -> Hit:
    """A hit without what a model has no use for: the key that a hook or an import made, parts of a second, the revision
    of what nobody has edited. A key that the caller chose is how a program knows its own record again."""
    kept = _to_the_second(fields)
    if _MADE_KEY.search(kept.get("client_key") or ""):
        del kept["client_key"]
    if (parts := fields.get("parts")) is not None:
        kept["parts"] = {name: round(share, _DECIMALS) for name, share in parts.items()}
    if fields["revision"] == 1:
        del kept["revision"]
    return Hit(**kept)


def _to_the_second(fields: Mapping[str, Any]) -> dict[str, Any]:
    moments = {name: fields[name] for name in _MOMENTS if fields.get(name) is not None}
    return {**fields, **{name: _MILLISECONDS.sub("Z", one) for name, one in moments.items()}}


def _lines(hit: Hit) -> Sequence[str]:
    """A hit as text, with every fact of its structured form: the hit, the turns around it, and why it was found."""
    who = " ".join(part for part in (hit.role, hit.name) if part) or hit.type
    place = f" in session {short_id(hit.session_id)}" if hit.session_id is not None else ""
    place += f' "{hit.session_title}"' if hit.session_title else ""
    place += f" of project {hit.project}" if hit.project is not None else ""
    origin = f", from {hit.origin}" if hit.origin != hit.role else ""
    if hit.status is not None:
        who = f"{who} {hit.status}" + (f", due {hit.due_date}" if hit.due_date else "")
    edited = "" if hit.revision is None else f", revision {hit.revision}"
    edited += f", client_key {hit.client_key}" if hit.client_key else ""
    same = f", said again in {', '.join(hit.same)}" if hit.same else ""
    ended = f", until {hit.valid_until}, superseded by {hit.superseded_by}" if hit.superseded_by else ""
    line = (
        f"{hit.record_id} ({hit.type}{place}, {hit.created_at}, score {hit.score}{edited}"
        f"{origin}{same}{ended}) {who}: {hit.text}"
    )
    lines = [line]
    for turn in hit.turns or ():
        speaker = " ".join(part for part in (turn.role, turn.name) if part)
        lines.append(f"  next to it: {turn.record_id} {speaker}: {turn.text}")
    if hit.parts or hit.why:
        parts = ", ".join(f"{name} {share}" for name, share in (hit.parts or {}).items())
        lines.append(f"  because: {hit.why} ({parts})" if hit.why and parts else f"  because: {hit.why or parts}")
    return lines
