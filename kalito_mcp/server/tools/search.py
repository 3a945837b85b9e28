"""The tool of search: search_memory."""

import re
from typing import Annotated, Final

from mcp.types import CallToolResult
from pydantic import Field

from kalito_mcp.domain.records import RecordType, Role
from kalito_mcp.domain.search import Hit, SearchFilters
from kalito_mcp.domain.time import from_iso
from kalito_mcp.errors import InvalidInput
from kalito_mcp.retrieval.search import SearchRequest
from kalito_mcp.server.opened import OpenedMemory
from kalito_mcp.server.tools.answers import answer, plural
from kalito_mcp.server.tools.graph import past_lines, past_question
from kalito_mcp.server.tools.shapes import AgentId, RecordTypeName, RoleName, SearchHit, SearchResult

_AGO: Final = re.compile(r"(\d{1,5})\s*([mhdw])")
_UNIT_MS: Final = {"m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_DAY: Final = re.compile(r"\d{4}-\d{2}-\d{2}")

Moment = Annotated[
    str | None, Field(description="ISO 8601 (`2026-03-04`), or so long before now: `12h`, `7d`, `2w`.", max_length=40)
]


class SearchTools:
    """The tool that finds what was said."""

    def __init__(self, opened: OpenedMemory) -> None:
        self._opened = opened

    async def search_memory(
        self,
        query: Annotated[str, Field(description="What to look for, in any words.", min_length=1, max_length=4000)],
        k: Annotated[int, Field(description="How many hits.", ge=1, le=100)] = 10,
        session_id: Annotated[
            str | None, Field(description="Only this conversation; all of the agent's unless given.", max_length=200)
        ] = None,
        agent_id: AgentId = None,
        types: Annotated[
            list[RecordTypeName] | None,
            Field(description="Only these kinds of records; thoughts only so.", max_length=6),
        ] = None,
        roles: Annotated[list[RoleName] | None, Field(description="Only what these said.", max_length=3)] = None,
        since: Moment = None,
        until: Moment = None,
        now: Annotated[
            str | None,
            Field(description="The moment to count `7d` back from, ISO 8601; now unless given.", max_length=40),
        ] = None,
        cursor: Annotated[
            str | None, Field(description="next_cursor of the same search, for its next hits.", max_length=40)
        ] = None,
    ) -> Annotated[CallToolResult, SearchResult]:
        """Find messages, documents, tasks, pins and summaries across all conversations, best first. Returns full texts
        with their ids, dates and scores (near 1: short, and with every word asked for), and what similar questions were
        answered before. For the current conversation as a whole, use build_context."""
        memory = await self._opened.memory()
        now_ms = memory.clock.now_ms() if now is None else from_iso(now, "now")
        filters = SearchFilters(
            types=frozenset(RecordType(one) for one in types or ()),
            roles=frozenset(Role(one) for one in roles or ()),
            since=None if since is None else _moment(since, "since", now_ms),
            until=None if until is None else _moment(until, "until", now_ms),
        )
        request = SearchRequest(query=query, k=k, filters=filters, cursor=cursor)
        page = await memory.search_memory(request, session_id=session_id or None, agent_id=agent_id or None)
        # Past answers are the same on every page, and no filter is about them.
        is_plain = cursor is None and filters == SearchFilters()
        past = (
            await memory.past_answers(
                query,
                session_id=session_id or None,
                agent_id=agent_id or None,
                current_session_id=self._opened.default_session,
            )
            if is_plain
            else ()
        )
        more = f" More: cursor {page.next_cursor}" if page.next_cursor else ""
        return answer(
            "\n".join([f"{plural(len(page.hits), 'hit')}.{more}", *map(_line, page.hits), *past_lines(past)]),
            SearchResult(
                hits=[SearchHit(**hit.to_dict()) for hit in page.hits],
                past_answers=[past_question(one) for one in past],
                next_cursor=page.next_cursor,
            ),
        )


def _moment(text: str, field: str, now_ms: int) -> int:
    ago = _AGO.fullmatch(text.strip().lower())
    if ago is not None:
        return now_ms - int(ago[1]) * _UNIT_MS[ago[2]]
    try:
        moment = from_iso(text, field)
    except InvalidInput as error:
        raise InvalidInput(f"{error}, or so long before now, like 7d") from None
    # A day as the last one means all of it.
    return moment + _UNIT_MS["d"] - 1 if field == "until" and _DAY.fullmatch(text.strip()) else moment


def _line(hit: Hit) -> str:
    fields = hit.to_dict()
    who = " ".join(part for part in (fields.get("role"), hit.name) if part) or str(hit.type)
    place = f" in session {hit.session_id}" if hit.session_id is not None else ""
    origin = f", from {hit.origin}" if str(hit.origin) != hit.role else ""
    if hit.status is not None:
        who = f"{who} {hit.status}" + (f", due {hit.due_date}" if hit.due_date else "")
    key = f", client_key {hit.client_key}" if hit.client_key else ""
    return (
        f"{hit.record_id} ({hit.type}{place}, {fields['created_at']}, score {hit.score}, revision {hit.revision}{key}"
        f"{origin}) {who}: {hit.text}"
    )
