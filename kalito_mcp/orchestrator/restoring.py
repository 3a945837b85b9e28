"""A snapshot from elsewhere names messages by numbers that mean others here: only those are kept that are meant."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kalito_mcp.domain.records import RecordType
from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.search import SearchFilters
from kalito_mcp.domain.validation import message_number
from kalito_mcp.errors import InvalidInput
from kalito_mcp.graph.canonical import canonical_key
from kalito_mcp.ports.store import ReadView

_SPELLINGS: Final = ("source_record_ids", "sourceRecordIds")
_MERGED: Final = ("source_node_ids", "sourceNodeIds")
_PAGE: Final = 400


async def of_this_memory(data: Mapping[str, Any], view: ReadView, scope: Scope) -> Mapping[str, Any]:
    """The snapshot, whose nodes name only messages of the scope's agent that say what the node says: a question or an
    answer its words, anything else a part of them. What is no snapshot stays as it is, to be refused by who reads it.
    """
    nodes = [node for node in _nodes(data) if any(node.get(name) for name in _SPELLINGS)]
    numbers = sorted({number for node in nodes for number in map(_number, _ids(node)) if number is not None})
    texts: dict[str, str] = {}
    for start in range(0, len(numbers), _PAGE):
        filters = SearchFilters(types=frozenset({RecordType.MESSAGE}))
        found = await view.records.candidates(scope, numbers[start : start + _PAGE], filters)
        texts |= {one.record_id: one.text for one in found}
    for node in nodes:
        kept = [record_id for record_id in _ids(node) if record_id in texts and _says(texts[record_id], node)]
        for name in _SPELLINGS:
            node.pop(name, None)
        if kept:
            node["source_record_ids"] = kept
    return data


def _nodes(data: Any) -> Iterator[dict[str, Any]]:
    graph = data.get("graph") if isinstance(data, Mapping) else None
    nodes = graph.get("nodes") if isinstance(graph, Mapping) else None
    return (node for node in nodes if isinstance(node, dict)) if isinstance(nodes, list) else iter(())


def _ids(node: Mapping[str, Any]) -> list[str]:
    return [one for name in _SPELLINGS for one in node.get(name) or () if isinstance(one, str)]


def _number(record_id: str) -> int | None:
    try:
        return message_number(record_id)
    except InvalidInput:
        return None


def _says(text: str, node: Mapping[str, Any]) -> bool:
    if node.get("type") not in ("query", "answer"):
        return str(node.get("text") or "").casefold() in text.casefold()
    named = f"{node['type']}_{canonical_key(text)}"
    return named in (node.get("id"), *(one for name in _MERGED for one in node.get(name) or ()))
