"""One agent's graphs: the long-term graph, those of its sessions, and their snapshots."""
