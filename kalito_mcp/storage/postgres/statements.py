"""What this store does in its own way, found by name by the ports that are written once for both stores."""

from kalito_mcp.storage.postgres import (  # noqa: F401
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
    spaces,
    superseded,
    text_index,
    timeline,
    tombstones,
)
