"""The tool of search: search_memory."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Final

from mcp.server.apps import client_supports_apps
from mcp.types import CallToolResult

from kalito_mcp.domain.past_answers import PastAnswer
from kalito_mcp.domain.search import SearchFilters, SearchPage, SearchRequest
from kalito_mcp.memory.verbs import search as verbs
from kalito_mcp.memory.verbs.conversation import NOTHING_YET
from kalito_mcp.memory.verbs.shapes import Hit
from kalito_mcp.server.app.used import of_hits, with_records
from kalito_mcp.server.tools.answers import answer
from kalito_mcp.server.tools.graph import past_lines, past_question
from kalito_mcp.server.tools.serving import ToolContext, caller_of, serving
from kalito_mcp.server.tools.shapes import ReadProject, SearchResult
from kalito_mcp.text.plurals import plural
from kalito_mcp.text.questions import begun_answer
from kalito_mcp.text.titles import short_id

_FILTERS: Final = ("types", "roles", "names", "tags", "origins", "min_importance", "since", "until")
_OTHER_WORDS: Final = "Try other words for it, a name or a date"
_SEEN: Final = "What you still see of this conversation was left out: send its session_id to search that"
_FAR: Final = "These are the nearest memories, and far from the query"
_DECIMALS: Final = 4
_REASONS: Final = ("parts", "why")
_MOMENTS: Final = ("created_at", "valid_until")
_MADE_KEY: Final = re.compile(r"^hook:|:[0-9a-f]{32}$", re.ASCII)
_MILLISECONDS: Final = re.compile(r"\.\d{3}Z$", re.ASCII)


class Search(verbs.Search):
    """The arguments of search_memory."""

    project: ReadProject = None


async def search_memory(context: ToolContext, sent: Search) -> Annotated[CallToolResult, SearchResult]:
    """Find messages, pins, summaries, notes, documents and tasks across all conversations, best first. `also` finds
    what was said in other words than the query. Hits are the nearest memories, not answers: judge them by their
    text, not by their score. They come with ids, dates, the turns beside them. Of two that differ, the later may
    hold. Also returns past answers to similar questions. For the current conversation as a whole, use
    build_context."""
    server = serving(context)
    caller = caller_of(context, await server.opened.memory_asked(sent.project))
    has_app = client_supports_apps(context)
    asked = sent.model_copy(update={"explain": sent.explain or has_app})
    found = await verbs.search(replace(caller, seen=await server.own.seen(sent.session_id)), asked)
    page, request = found.page, found.request
    past: Sequence[PastAnswer] = ()
    # Past answers are the same on every page, and no filter is about them.
    if sent.cursor is None and request.filters == SearchFilters():
        ask = verbs.PastAnswersQuery(query=sent.query, session_id=sent.session_id, agent_id=sent.agent_id)
        past = await verbs.past_answers(replace(caller, memory=await server.opened.memory_for(sent.project)), ask)
    is_empty = not page.hits and await caller.memory.conversations.is_empty()
    note = f"{NOTHING_YET}." if is_empty else _note(page, request, sent.session_id)
    result = SearchResult(
        hits=[_search_hit(hit.to_dict(), is_explained=sent.explain) for hit in page.hits],
        past_answers=[past_question(one) for one in past],
        next_cursor=found.next_cursor,
        note=note,
    )
    more = f" More: cursor {found.next_cursor}" if found.next_cursor else ""
    head = f"{plural(len(result.hits), 'hit')}.{more}{f' {note}' if note else ''}"
    lines = [line for hit in result.hits for line in _lines(hit)]
    said = answer("\n".join([head, *lines, *past_lines(past)]), result)
    return await with_records(caller.memory, said, of_hits(page.hits)) if has_app else said


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


def _search_hit(fields: dict[str, Any], *, is_explained: bool) -> Hit:
    """A hit without what a model has no use for: the key that a hook or an import made, parts of a second, the revision
    of what nobody has edited, and reasons that were not asked for. A key that the caller chose is how a program knows
    its own record again."""
    kept = _to_the_second(fields)
    if _MADE_KEY.search(kept.get("client_key") or ""):
        del kept["client_key"]
    if not is_explained:
        kept = {name: one for name, one in kept.items() if name not in _REASONS}
    elif (parts := fields.get("parts")) is not None:
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
    place += f" shared in {hit.space} by {hit.shared_by}" if hit.space is not None else ""
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
