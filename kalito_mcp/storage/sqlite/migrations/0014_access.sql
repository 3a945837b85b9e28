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
-- Seals what clients carry from one round of a call to the next. An export has the secret of `identity`, not this one.
CREATE TABLE state_secret (secret BLOB NOT NULL) STRICT;
INSERT INTO state_secret (secret) VALUES (randomblob(32));
