"""Prepares a snapshot for this memory: drops ids of another database's messages, and what was forgotten or erased
since it was written. Also removes records from graphs.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from kalito_mcp.domain.records import Visibility
from kalito_mcp.domain.scope import DEFAULT_AGENT, Scope
from kalito_mcp.domain.validation import message_number
from kalito_mcp.errors import InvalidInput
from kalito_mcp.graph.canonical import canonical_key
from kalito_mcp.long_texts import aside
from kalito_mcp.ports.records import RecordReader
from kalito_mcp.ports.store import ReadView, WriteTransaction

if TYPE_CHECKING:
    from kalito_mcp.graph.store import GraphStore

_SPELLINGS: Final = ("source_record_ids", "sourceRecordIds")
_MERGED: Final = ("source_node_ids", "sourceNodeIds")
_PAGE: Final = 400


async def without_gone(
    data: Mapping[str, Any], view: ReadView | WriteTransaction, scope: Scope, empty: "GraphStore"
) -> Mapping[str, Any]:
    """The snapshot without erased records, and without forgotten records whose text it contains. Fills `empty`.

    An erased record has no text to compare, so another database's message with the same id is dropped too.

    Raises:
        InvalidInput: something must be left out, but `GraphStore.from_snapshot` cannot read the snapshot.
    """
    gone = await _gone(data, view.records, scope)
    if not gone:
        return data
    await aside(partial(empty.from_snapshot, data))
    await detach_records(empty, gone, (), view.records, Scope(owner=scope.owner))
    return empty.to_snapshot()


async def detach_records(
    graph: "GraphStore", record_ids: Collection[str], erased_keys: Collection[str], records: RecordReader, scope: Scope
) -> int:
    """Remove the scope's records, and texts with these canonical keys, from a graph. Text that other records also
    contain stays. Returns the number of nodes affected."""
    others = await aside(partial(graph.other_sources, record_ids, erased_keys=erased_keys))
    text_of = await _record_texts(records, scope, others)
    return await aside(partial(graph.detach_records, record_ids, text_of=text_of, erased_keys=erased_keys))


async def keep_own_ids(data: Mapping[str, Any], view: ReadView | WriteTransaction, scope: Scope) -> Mapping[str, Any]:
    """Drop ids that name a different message here than where the snapshot was written. Changes and returns `data`.

    An id is kept if a message of the scope's agent has the question's or answer's text, or contains that of another
    node. Input that is not a snapshot is returned unchanged; the parser rejects it.
    """
    nodes = [node for node in _nodes(data) if any(node.get(name) for name in _SPELLINGS)]
    texts: dict[str, str] = {}
    of_agent = Scope(owner=scope.owner, agent=scope.agent or DEFAULT_AGENT)
    for record_id in sorted({record_id for node in nodes for record_id in _ids(node)}):
        record = await view.records.record(of_agent, record_id) if _is_message_id(record_id) else None
        if record is not None and not record.is_deleted and record.visibility is not Visibility.INTERNAL:
            texts[record.id] = record.text
    for node in nodes:
        kept = [record_id for record_id in _ids(node) if record_id in texts and _says(texts[record_id], node)]
        for name in _SPELLINGS:
            node.pop(name, None)
        if kept:
            node["source_record_ids"] = kept
    return data


async def _gone(data: Mapping[str, Any], records: RecordReader, scope: Scope) -> set[str]:
    nodes_of: dict[str, list[dict[str, Any]]] = {}
    for node in _nodes(data):
        for record_id in _ids(node):
            nodes_of.setdefault(record_id, []).append(node)
    owner = Scope(owner=scope.owner)
    gone = set(await records.erased(owner, sorted(nodes_of)))
    for record_id in nodes_of.keys() - gone:
        record = await records.record(owner, record_id)
        if record is not None and record.is_deleted and any(_says(record.text, one) for one in nodes_of[record_id]):
            gone.add(record_id)
    return gone


def _nodes(data: Any) -> Iterator[dict[str, Any]]:
    graph = data.get("graph") if isinstance(data, Mapping) else None
    nodes = graph.get("nodes") if isinstance(graph, Mapping) else None
    return (node for node in nodes if isinstance(node, dict)) if isinstance(nodes, list) else iter(())


def _ids(node: Mapping[str, Any]) -> list[str]:
    return [one for name in _SPELLINGS for one in node.get(name) or () if isinstance(one, str)]


def _is_message_id(record_id: str) -> bool:
    try:
        message_number(record_id)
    except InvalidInput:
        return False
    return True


def _says(text: str, node: Mapping[str, Any]) -> bool:
    if node.get("type") not in ("query", "answer"):
        return str(node.get("text") or "").casefold() in text.casefold()
    named = f"{node['type']}_{canonical_key(text)}"
    return named in (node.get("id"), *(one for name in _MERGED for one in node.get(name) or ()))


async def _record_texts(records: RecordReader, scope: Scope, record_ids: Iterable[str]) -> dict[str, str]:
    """The texts by record id, without forgotten, erased, internal and unknown records."""
    texts: dict[str, str] = {}
    for record_id in sorted(record_ids):
        record = await records.record(scope, record_id)
        if record is not None and not record.is_deleted and record.visibility is Visibility.CHAT:
            texts[record_id] = record.text
    return texts
