"""The modules with the statements of this store, for the ports that are written once for all stores in SQL."""

from kalito_mcp.storage.postgres import graphs, session_changes, sessions, sign_in

__all__ = ["graphs", "session_changes", "sessions", "sign_in"]
