"""The modules with the statements of this store, for the ports that are written once for all stores in SQL."""

from kalito_mcp.storage.postgres import access, given, graphs, imports, session_changes, sessions, sign_in, timeline

__all__ = ["access", "given", "graphs", "imports", "session_changes", "sessions", "sign_in", "timeline"]
