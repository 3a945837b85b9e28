"""The best of a graph, as a graph of its own: what a checkpoint holds. Pure."""

from kalito_mcp.domain.graph import EdgeType, GraphContents, GraphState, NodeType
from kalito_mcp.graph.store import GraphStore


def best(graph: GraphStore, top_k: int) -> GraphStore:
    """The `top_k` queries of the highest rank with their answers, what both refer to and what was thought of them, and
    all edges between them. None for a `top_k` of 0 or less."""
    kept = {node.id for _, node in graph.ranked(NodeType.QUERY)[: max(0, top_k)]}
    # From the queries to their answers, and from those to what belongs to them.
    for _ in range(2):
        for node_id in tuple(kept):
            kept |= {
                edge.to_id
                for edge in graph.edges_of(node_id)
                if edge.from_id == node_id and edge.type is not EdgeType.SIMILAR_TO
            }
    contents = GraphContents(
        nodes=[node for node in graph.nodes() if node.id in kept],
        edges=[edge for edge in graph.edges() if edge.from_id in kept and edge.to_id in kept],
        state=GraphState(embedder=graph.embedder.fingerprint),
    )
    chosen = GraphStore(graph.config, graph.embedder)
    chosen.absorb(contents, is_whole=True)
    return chosen
