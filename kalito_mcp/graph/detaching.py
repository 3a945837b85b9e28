"""Removes records from a graph. Pure, in memory.

A node stays while one of its records still supports it, and is removed with the last one, even if it is pinned. A
record supports a question or an answer if it has its words, or the words of a node merged into it. It supports any
other node whose text it contains. A removed question or answer takes along its feedback, and entities that nothing else
refers to.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Final

from kalito_mcp.domain.graph import EdgeType, GraphNode, NodeType
from kalito_mcp.graph.canonical import canonical_key
from kalito_mcp.graph.indexed_graph import IndexedGraph, node_text

_BY_WORDS: Final = (NodeType.QUERY, NodeType.ANSWER)
_BELONGINGS: Final = (EdgeType.HAS_FEEDBACK, EdgeType.REFERS_TO_ENTITY)


def other_sources(
    graph: IndexedGraph, record_ids: Collection[str], erased_keys: Collection[str] = ()
) -> frozenset[str]:
    """The other source records of the affected nodes: `detach_records` needs their texts."""
    affected = _affected(graph, record_ids, erased_keys)
    return frozenset(one for node in affected for one in node.source_record_ids).difference(record_ids)


def detach_records(
    graph: IndexedGraph, record_ids: Collection[str], text_of: Mapping[str, str], erased_keys: Collection[str] = ()
) -> int:
    """Remove the records from the graph. Returns the number of nodes affected.

    `text_of` maps the ids of the records that stay to their texts. A source that is missing there, or whose text no
    longer supports the node, is removed too. `erased_keys` are the canonical keys of erased texts: their nodes are
    affected even if they do not list the record, because a node lists at most `MAX_SOURCES` records.
    """
    affected = [node.id for node in _affected(graph, record_ids, erased_keys)]
    staying = {one: text for one, text in text_of.items() if one not in record_ids}
    for node_id in affected:
        node = graph.network.nodes.get(node_id)
        if node is None:
            continue  # removed with another node, or merged into it
        left = _supporting(node, staying)
        if not left:
            _drop(graph, node)
        elif node.type in _BY_WORDS:
            _rederive(graph, node, left, erased_keys)
        else:
            graph.put(_with_sources(node, left))
    return len(affected)


def supported_by(graph: IndexedGraph, text_of: Mapping[str, str]) -> set[str]:
    """The records whose text supports a node that lists them."""
    return {record_id for node in graph.network.nodes.values() for record_id in _supporting(node, text_of)}


def keep_sources(graph: IndexedGraph, text_of: Mapping[str, str]) -> None:
    """Keep of each node's sources those whose text is given and supports it. All nodes stay."""
    for node in tuple(graph.network.nodes.values()):
        if node.source_record_ids:
            graph.put(replace(node, source_record_ids=tuple(_supporting(node, text_of))))


def _supporting(node: GraphNode, text_of: Mapping[str, str]) -> dict[str, str]:
    """The node's sources whose text is given and supports it, with their texts."""
    given = {one: text_of[one] for one in node.source_record_ids if one in text_of}
    return {record_id: text for record_id, text in given.items() if _supports(text, node)}


def _affected(graph: IndexedGraph, record_ids: Collection[str], erased_keys: Collection[str]) -> list[GraphNode]:
    gone = frozenset(record_ids)
    names = {f"{kind}_{key}" for key in erased_keys for kind in NodeType}
    return [
        node
        for node in graph.network.nodes.values()
        if not gone.isdisjoint(node.source_record_ids)
        or (names and (node.id in names or not names.isdisjoint(node.source_node_ids)))
    ]


def _supports(text: str, node: GraphNode) -> bool:
    if node.type in _BY_WORDS:
        return f"{node.type}_{canonical_key(text)}" in (node.id, *node.source_node_ids)
    return _folded(node.text or "") in _folded(text)


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())


def _with_sources(node: GraphNode, left: Collection[str]) -> GraphNode:
    """The node with only these records; each removed record also lowers `repeat` by 1."""
    weights = replace(node.weights)
    weights.gain(repeat=len(left) - len(node.source_record_ids))
    return replace(node, source_record_ids=tuple(left), weights=weights)


def _rederive(graph: IndexedGraph, node: GraphNode, left: Mapping[str, str], erased_keys: Collection[str]) -> None:
    """Derive the text, key and vector of a question or an answer again from one of its remaining records."""
    texts: dict[str, str] = {}
    for text in left.values():
        texts.setdefault(canonical_key(text), text)
    key = node.canonical_key if node.canonical_key in texts else next(iter(texts))
    gone = {f"{node.type}_{one}" for one in erased_keys if one not in texts}
    replacement = replace(
        _with_sources(node, left),
        id=f"{node.type}_{key}",
        text=node_text(texts[key]),
        canonical_key=key,
        # A summary mixes the texts of all merged nodes: the erased words cannot be told apart in it.
        summary=None,
        source_node_ids=tuple(one for one in node.source_node_ids if one not in gone),
    )
    if replacement.id != node.id:
        replacement = _replace_node(graph, node, replacement)
    else:
        graph.put(replacement)
        if replacement.type is NodeType.QUERY and replacement.text != node.text:
            graph.relink_similar(replacement)
    for edge in tuple(graph.network.edges_of(replacement.id)):
        if edge.type is EdgeType.REFERS_TO_ENTITY and edge.from_id == replacement.id:
            entity = graph.network.nodes[edge.to_id]
            if not any(_supports(text, entity) for text in left.values()):
                graph.network.remove_edge(edge.key)
                _drop_orphans(graph, [edge.to_id])


def _replace_node(graph: IndexedGraph, node: GraphNode, replacement: GraphNode) -> GraphNode:
    """Replace a node with one of another id and move its edges. Similarity edges are computed again."""
    edges = [edge for edge in graph.network.edges_of(node.id) if edge.type is not EdgeType.SIMILAR_TO]
    graph.drop(node.id)
    placed = graph.merge(replacement, carry_weights=True, keep=())
    for edge in edges:
        from_id, to_id = (placed.id if end == node.id else end for end in (edge.from_id, edge.to_id))
        if from_id != to_id and graph.link(from_id, to_id, edge.type, edge.weight, at_ms=edge.created_at):
            # Keep the edge's old times and weight.
            graph.network.put_edge(replace(edge, from_id=from_id, to_id=to_id))
    return placed


def _drop(graph: IndexedGraph, node: GraphNode) -> None:
    belongings = [
        edge.to_id for edge in graph.network.edges_of(node.id) if edge.from_id == node.id and edge.type in _BELONGINGS
    ]
    graph.drop(node.id)
    _drop_orphans(graph, belongings)


def _drop_orphans(graph: IndexedGraph, node_ids: Collection[str]) -> None:
    for node_id in node_ids:
        if node_id in graph.network.nodes and not any(
            edge.to_id == node_id for edge in graph.network.edges_of(node_id)
        ):
            graph.drop(node_id)
