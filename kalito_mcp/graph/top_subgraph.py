"""The best queries of a graph and what belongs to them, as a graph of its own: a snapshot contains this. Pure."""

from kalito_mcp.domain.graph import EdgeType, GraphContents, GraphState, NodeType
from kalito_mcp.graph.store import GraphStore


def top_subgraph(graph: GraphStore, top_k: int) -> GraphStore:
    """The `top_k` queries of the highest rank, with their answers, and the entities and feedback of both.

    All edges between these nodes come along. A `top_k` of 0 or less makes an empty graph.
    """
    kept = {node.id for _, node in graph.ranked(NodeType.QUERY)[: max(0, top_k)]}
    # First from the queries to their answers, then from the answers to their entities and feedback.
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
        state=GraphState(embedder=graph.embedder_fingerprint),
    )
    chosen = GraphStore(graph.config, graph.embedder)
    chosen.absorb(contents)
    return chosen
