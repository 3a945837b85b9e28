"""Takes records out of a graph: what was said in them alone goes, what others say too stays as theirs. Pure, in memory.

A node lives by the records that say it. A question or an answer is said by a record of its words, or of the words of a
node that was merged into it; anything else by a record that contains it. What loses its last one goes, pinned or not,
with its feedback and with entities that nobody else refers to.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Final

from kalito_mcp.domain.graph import EdgeType, GraphNode, NodeType
from kalito_mcp.graph.canonical import canonical_key
from kalito_mcp.graph.indexed_graph import Keeper, kept

_SAID: Final = (NodeType.QUERY, NodeType.ANSWER)
_BELONGINGS: Final = (EdgeType.HAS_FEEDBACK, EdgeType.REFERS_TO_ENTITY)


def sources_beside(keeper: Keeper, record_ids: Collection[str], erased_keys: Collection[str] = ()) -> frozenset[str]:
    """The other records that the affected nodes name: `detached` wants the texts of those."""
    affected = _affected(keeper, record_ids, erased_keys)
    return frozenset(one for node in affected for one in node.source_record_ids).difference(record_ids)


def detached(
    keeper: Keeper, record_ids: Collection[str], text_of: Mapping[str, str], erased_keys: Collection[str] = ()
) -> int:
    """Take the records out; how many nodes that touched.

    `text_of` has the texts of the records that stay, by id: a source without one there, or that says something else,
    counts as gone. Nodes of an erased text, named by its canonical key, are touched even where they do not name its
    record, because they remember only so many.
    """
    affected = [node.id for node in _affected(keeper, record_ids, erased_keys)]
    for node_id in affected:
        node = keeper.network.nodes.get(node_id)
        if node is None:
            continue  # it went with another, or is part of another now
        left = {
            record_id: text_of[record_id]
            for record_id in node.source_record_ids
            if record_id not in record_ids and record_id in text_of and _says(text_of[record_id], node)
        }
        if not left:
            _drop(keeper, node)
        elif node.type in _SAID:
            _say_what_is_left(keeper, node, left, erased_keys)
        else:
            keeper.put(_with_sources(node, left))
    return len(affected)


def _affected(keeper: Keeper, record_ids: Collection[str], erased_keys: Collection[str]) -> list[GraphNode]:
    gone = frozenset(record_ids)
    names = {f"{kind}_{key}" for key in erased_keys for kind in NodeType}
    return [
        node
        for node in keeper.network.nodes.values()
        if not gone.isdisjoint(node.source_record_ids)
        or (names and (node.id in names or not names.isdisjoint(node.source_node_ids)))
    ]


def _says(text: str, node: GraphNode) -> bool:
    if node.type in _SAID:
        return f"{node.type}_{canonical_key(text)}" in (node.id, *node.source_node_ids)
    return _folded(node.text or "") in _folded(text)


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())


def _with_sources(node: GraphNode, left: Collection[str]) -> GraphNode:
    """The node with these records alone, and met as much less often."""
    weights = replace(node.weights)
    weights.gain(repeat=len(left) - len(node.source_record_ids))
    return replace(node, source_record_ids=tuple(left), weights=weights)


def _say_what_is_left(keeper: Keeper, node: GraphNode, left: Mapping[str, str], erased_keys: Collection[str]) -> None:
    """Let a question or an answer say what a record says that it still has, with what follows from its words."""
    said: dict[str, str] = {}
    for text in left.values():
        said.setdefault(canonical_key(text), text)
    key = node.canonical_key if node.canonical_key in said else next(iter(said))
    silenced = {f"{node.type}_{one}" for one in erased_keys if one not in said}
    now = replace(
        _with_sources(node, left),
        id=f"{node.type}_{key}",
        text=kept(said[key]),
        canonical_key=key,
        # It was made of all that was merged here, and nobody knows which words are whose.
        summary=None,
        source_node_ids=tuple(one for one in node.source_node_ids if one not in silenced),
    )
    if now.id != node.id:
        now = _renamed(keeper, node, now)
    else:
        keeper.put(now)
        if now.type is NodeType.QUERY and now.text != node.text:
            keeper.relate(now)
    for edge in tuple(keeper.network.edges_of(now.id)):
        if edge.type is EdgeType.REFERS_TO_ENTITY and edge.from_id == now.id:
            entity = keeper.network.nodes[edge.to_id]
            if not any(_says(text, entity) for text in left.values()):
                keeper.network.remove_edge((edge.from_id, edge.type, edge.to_id))
                _drop_orphans(keeper, [edge.to_id])


def _renamed(keeper: Keeper, node: GraphNode, now: GraphNode) -> GraphNode:
    """Put the node in the place of one whose words have gone; its edges come along, but for similarities, which are
    found anew."""
    edges = [edge for edge in keeper.network.edges_of(node.id) if edge.type is not EdgeType.SIMILAR_TO]
    keeper.drop(node.id)
    placed = keeper.merge(now, carry_weights=True, keep=())
    for edge in edges:
        from_id, to_id = (placed.id if end == node.id else end for end in (edge.from_id, edge.to_id))
        if from_id != to_id and keeper.linked(from_id, to_id, edge.type, edge.weight, at_ms=edge.created_at):
            # As old as it was.
            keeper.network.put_edge(replace(edge, from_id=from_id, to_id=to_id))
    return placed


def _drop(keeper: Keeper, node: GraphNode) -> None:
    belongings = [
        edge.to_id for edge in keeper.network.edges_of(node.id) if edge.from_id == node.id and edge.type in _BELONGINGS
    ]
    keeper.drop(node.id)
    _drop_orphans(keeper, belongings)


def _drop_orphans(keeper: Keeper, node_ids: Collection[str]) -> None:
    for node_id in node_ids:
        if node_id in keeper.network.nodes and not any(
            edge.to_id == node_id for edge in keeper.network.edges_of(node_id)
        ):
            keeper.drop(node_id)
