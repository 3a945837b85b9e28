"""One agent's graphs: the long-term graph, session graphs, and their snapshots."""
