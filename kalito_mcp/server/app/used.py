"""What a tool tells the App: the records behind its answer, in `_meta`, where no model reads them."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from mcp.types import CallToolResult

from kalito_mcp.domain.context import MemoryContext
from kalito_mcp.domain.records import Reach, RecordType
from kalito_mcp.domain.search import Hit
from kalito_mcp.domain.time import to_iso
from kalito_mcp.safety.escaping import escape_json

if TYPE_CHECKING:
    from kalito_mcp.memory import Memory

RECORDS_KEY: Final = "kalito/records"
_MOST: Final = 50
_LONGEST: Final = 300
"""Characters of a text. The App shows three lines, and reads the whole before it is edited."""


async def with_records(memory: "Memory", result: CallToolResult, records: Iterable[dict[str, Any]]) -> CallToolResult:
    """The result with at most 50 records for the App. Those that the caller's role in their space does not let them
    change are `fixed`, and `same` names none of those. A field that is None or empty is left out."""
    found = list(islice(records, _MOST))
    spaces = {one["record_id"]: one.get("space") for one in found}
    fixed = await memory.spaces.fixed(spaces, [each for one in found for each in one.get("same", ())])
    shown: list[dict[str, Any]] = []
    for one in found:
        same = [each for each in one.get("same", ()) if each not in fixed]
        fields = {**one, "text": one["text"][:_LONGEST], "same": same, "fixed": one["record_id"] in fixed}
        shown.append({name: value for name, value in fields.items() if value})
    return result.model_copy(update={"meta": {**(result.meta or {}), RECORDS_KEY: escape_json(shown)}})


def of_hits(hits: Iterable[Hit]) -> Iterator[dict[str, Any]]:
    """The hits of a search, each with why it was found."""
    for hit in hits:
        yield _of_hit(hit, hit.why or "")


def of_context(context: MemoryContext) -> Iterator[dict[str, Any]]:
    """What a context has from beyond the end of its own conversation: the records of `used_ids`, in their order."""
    for known in context.known:
        why = "known in this project" if known.reach is Reach.PROJECT else "known in every conversation"
        kind = "pin" if known.type is RecordType.PIN else "note"
        yield _record(known.record_id, kind, known.text, known.created_at, why=why, space=known.space)
    for pin in context.semantic_pins:
        yield _record(pin.id, "pin", pin.content, pin.created_at, why="pinned in this conversation")
    for summary in context.summaries:
        yield _record(summary.id, "summary", summary.summary, summary.created_at, why="sums up what was said before")
    for hit in context.relevant_messages:
        yield _of_hit(hit, "matches what was asked")


def _record(record_id: str, kind: str, text: str, created_at: int, **more: Any) -> dict[str, Any]:
    """One record, with its moment in ISO 8601. `more` are fields that only some have."""
    return {"record_id": record_id, "type": kind, "text": text, "created_at": to_iso(created_at), **more}


def _of_hit(hit: Hit, why: str) -> dict[str, Any]:
    return _record(
        hit.record_id,
        str(hit.type),
        hit.text,
        hit.created_at,
        why=why,
        role=None if hit.role is None else str(hit.role),
        session_title=hit.session_title,
        space=hit.space,
        same=hit.same,
        valid_until=None if hit.valid_until is None else to_iso(hit.valid_until),
        superseded_by=hit.superseded_by,
    )
