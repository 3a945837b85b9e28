"""Cleans a restored graph: drops ids of another database's messages, and what was forgotten or erased since the
snapshot was written. Also removes records from graphs.
"""

from collections.abc import Collection, Iterable
from functools import partial
from typing import TYPE_CHECKING

from kalito_mcp.domain.records import Visibility
from kalito_mcp.domain.scope import DEFAULT_AGENT, Scope
from kalito_mcp.domain.validation import message_number
from kalito_mcp.errors import InvalidInput
from kalito_mcp.ports.records import RecordReader
from kalito_mcp.runtime.long_texts import aside

if TYPE_CHECKING:
    from kalito_mcp.graph.store import GraphStore


async def clean_restored(graph: "GraphStore", records: RecordReader, scope: Scope) -> None:
    """Remove erased records, and forgotten records whose text the graph contains. Then remove ids that name a
    different message here than where the snapshot was written.

    An erased record has no text to compare, so another database's message with the same id is removed too. An id is
    kept if a message of the scope's agent has the question's or answer's text, or contains the text of another node.
    """
    owner = Scope(owner=scope.owner)
    named = sorted({record_id for node in graph.nodes() for record_id in node.source_record_ids})
    gone = set(await records.erased(owner, named))
    forgotten: dict[str, str] = {}
    for record_id in named:
        record = None if record_id in gone else await records.record(owner, record_id)
        if record is not None and record.is_deleted:
            forgotten[record_id] = record.text
    gone |= await aside(partial(graph.supported_by, forgotten))
    if gone:
        await detach_records(graph, gone, (), records, owner)
    of_agent = Scope(owner=scope.owner, agent=scope.agent or DEFAULT_AGENT)
    own = await _record_texts(records, of_agent, filter(_is_message_id, named))
    await aside(partial(graph.keep_sources, own))


async def detach_records(
    graph: "GraphStore", record_ids: Collection[str], erased_keys: Collection[str], records: RecordReader, scope: Scope
) -> int:
    """Remove the scope's records, and texts with these canonical keys, from a graph. Text that other records also
    contain stays. Returns the number of nodes affected."""
    others = await aside(partial(graph.other_sources, record_ids, erased_keys=erased_keys))
    text_of = await _record_texts(records, scope, others)
    return await aside(partial(graph.detach_records, record_ids, text_of=text_of, erased_keys=erased_keys))


def _is_message_id(record_id: str) -> bool:
    try:
        message_number(record_id)
    except InvalidInput:
        return False
    return True


async def _record_texts(records: RecordReader, scope: Scope, record_ids: Iterable[str]) -> dict[str, str]:
    """The texts by record id, without forgotten, erased, internal and unknown records."""
    texts: dict[str, str] = {}
    for record_id in sorted(record_ids):
        record = await records.record(scope, record_id)
        if record is not None and not record.is_deleted and record.visibility is Visibility.CHAT:
            texts[record_id] = record.text
    return texts
