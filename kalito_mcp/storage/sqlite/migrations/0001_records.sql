-- Canonical: agents, sessions, records. Derived: records_text.
-- Moments are milliseconds since 1970-01-01T00:00:00Z.

-- One row. The secret makes the fence of a context that no remembered text can know.
CREATE TABLE identity (secret BLOB NOT NULL) STRICT;
INSERT INTO identity (secret) VALUES (randomblob(16));

CREATE TABLE agents (
    key INTEGER PRIMARY KEY,
    owner TEXT NOT NULL,
    id TEXT NOT NULL,
    record_count INTEGER NOT NULL DEFAULT 0,
    UNIQUE (owner, id)
) STRICT;

CREATE TABLE sessions (
    key INTEGER PRIMARY KEY,
    owner TEXT NOT NULL,
    id TEXT NOT NULL,
    agent_key INTEGER NOT NULL REFERENCES agents (key),
    state TEXT NOT NULL DEFAULT 'OPEN' CHECK (state IN ('OPEN', 'FINALIZING', 'FINALIZED')),
    model TEXT,
    message_count INTEGER NOT NULL DEFAULT 0,
    summary_count INTEGER NOT NULL DEFAULT 0,
    pin_count INTEGER NOT NULL DEFAULT 0,
    importance_sum REAL NOT NULL DEFAULT 0,
    summarized_seq INTEGER NOT NULL DEFAULT 0,
    pinned_seq INTEGER NOT NULL DEFAULT 0,
    oldest_message_at INTEGER,
    newest_message_at INTEGER,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    revision INTEGER NOT NULL DEFAULT 0,
    UNIQUE (owner, id)
) STRICT;

CREATE INDEX sessions_recent ON sessions (owner, updated_at DESC, key DESC);
CREATE INDEX sessions_unsummarized ON sessions (message_count - summarized_seq) WHERE message_count > summarized_seq;
CREATE INDEX sessions_unpinned ON sessions (key) WHERE message_count > pinned_seq;

-- A message is `msg_<key>` and has no id of its own; seq is its place in the session, from 1, without gaps.
-- The checks spell OR out: IN with three texts costs 5 microseconds a row, as much as writing the row.
-- A summary covers the seqs seq..end_seq of its level; is_covered once a higher level covers it.
CREATE TABLE records (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    session_key INTEGER NOT NULL REFERENCES sessions (key),
    type TEXT NOT NULL CHECK (type = 'message' OR type = 'pin' OR type = 'summary'),
    id TEXT,
    seq INTEGER,
    end_seq INTEGER,
    level INTEGER,
    is_covered INTEGER,
    role TEXT CHECK (role = 'user' OR role = 'assistant' OR role = 'system'),
    name TEXT,
    text TEXT NOT NULL,
    importance REAL NOT NULL CHECK (importance BETWEEN 0 AND 1),
    tokens INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    client_key TEXT,
    attributes TEXT,
    hash BLOB NOT NULL,
    CHECK (type <> 'message' OR (seq IS NOT NULL AND role IS NOT NULL AND id IS NULL)),
    CHECK (type <> 'summary' OR (seq <= end_seq AND level >= 0 AND is_covered IN (0, 1) AND id IS NOT NULL)),
    CHECK (type <> 'pin' OR id IS NOT NULL)
) STRICT;

CREATE UNIQUE INDEX records_messages ON records (session_key, seq) WHERE type = 'message';
CREATE INDEX records_pins ON records (session_key, importance DESC, created_at DESC, key DESC) WHERE type = 'pin';
CREATE UNIQUE INDEX records_summaries ON records (session_key, level, seq) WHERE type = 'summary';
CREATE INDEX records_uncovered ON records (session_key, seq) WHERE type = 'summary' AND is_covered = 0;
CREATE UNIQUE INDEX records_client_keys ON records (session_key, type, client_key) WHERE client_key IS NOT NULL;
CREATE UNIQUE INDEX records_ids ON records (id) WHERE id IS NOT NULL;

-- Terms are analysed before they get here (text/analysis.py) and carry their agent: `<agent key>:<term>`,
-- beside `s:<session key>` and `<agent key>:t:<type>`. Only which record holds a term is kept: detail=none.
CREATE VIRTUAL TABLE records_text USING fts5 (
    terms, content = '', detail = none, columnsize = 0, tokenize = "ascii tokenchars ':'"
);
