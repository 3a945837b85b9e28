"""The modules of this store that the ports written once for all stores in SQL use: statements, and the few functions
that are not the same."""

from kalito_mcp.storage.postgres import (
    access,
    client_keys,
    conversations,
    forgotten_values,
    given,
    graphs,
    imports,
    projects,
    record_changes,
    record_statements,
    records,
    session_changes,
    sessions,
    sign_in,
    superseded,
    text_index,
    timeline,
    tombstones,
)

__all__ = [
    "access",
    "client_keys",
    "conversations",
    "forgotten_values",
    "given",
    "graphs",
    "imports",
    "projects",
    "record_changes",
    "record_statements",
    "records",
    "session_changes",
    "sessions",
    "sign_in",
    "superseded",
    "text_index",
    "timeline",
    "tombstones",
]
