-- Neither canonical nor derived: who may connect over HTTP. An export has none of it.
CREATE TABLE access_tokens (
    key INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    text_hash BLOB NOT NULL UNIQUE,
    prefix TEXT NOT NULL,
    name TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('static', 'access', 'refresh')),
    owner TEXT NOT NULL,
    permission TEXT NOT NULL CHECK (permission IN ('read', 'write', 'admin')),
    agent TEXT,
    project TEXT,
    client TEXT,
    grant_id TEXT,
    resource TEXT,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    last_used_at INTEGER,
    revoked_at INTEGER
) STRICT;
