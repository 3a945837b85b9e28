-- Neither canonical nor derived: how people let programs in over HTTP. An export has none of it.
CREATE TABLE passphrases (
    owner TEXT PRIMARY KEY,
    salt BLOB NOT NULL,
    hash BLOB NOT NULL,
    n INTEGER NOT NULL,
    r INTEGER NOT NULL,
    p INTEGER NOT NULL,
    changed_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE oauth_clients (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    redirect_uris TEXT NOT NULL,
    is_document INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    checked_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE oauth_requests (
    handle_hash BLOB PRIMARY KEY,
    client TEXT NOT NULL,
    client_name TEXT NOT NULL,
    redirect_uri TEXT NOT NULL,
    is_redirect_explicit INTEGER NOT NULL,
    challenge TEXT NOT NULL,
    permission TEXT NOT NULL CHECK (permission IN ('read', 'write', 'admin')),
    resource TEXT NOT NULL,
    state TEXT,
    expires_at INTEGER NOT NULL,
    browser_hash BLOB
) STRICT, WITHOUT ROWID;
CREATE TABLE oauth_grants (
    key INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    owner TEXT NOT NULL,
    client TEXT NOT NULL,
    client_name TEXT NOT NULL,
    permission TEXT NOT NULL CHECK (permission IN ('read', 'write', 'admin')),
    resource TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    last_used_at INTEGER,
    revoked_at INTEGER
) STRICT;
CREATE INDEX access_tokens_by_grant ON access_tokens (grant_id);
CREATE TABLE oauth_codes (
    code_hash BLOB PRIMARY KEY,
    grant_id TEXT NOT NULL REFERENCES oauth_grants (id) ON DELETE CASCADE,
    redirect_uri TEXT NOT NULL,
    is_redirect_explicit INTEGER NOT NULL,
    challenge TEXT NOT NULL,
    expires_at INTEGER NOT NULL,
    used_at INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX oauth_codes_by_grant ON oauth_codes (grant_id);
CREATE TABLE access_attempts (
    subject TEXT PRIMARY KEY,
    count INTEGER NOT NULL,
    since INTEGER NOT NULL,
    last_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
