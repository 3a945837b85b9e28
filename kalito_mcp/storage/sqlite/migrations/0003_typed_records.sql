-- Canonical: memory_edits, record_usage, tombstones. Records also as thoughts, documents and tasks, and with what an
-- edit of them needs.

-- A record without a session belongs to its agent as a whole. origin NULL: the role's (user, assistant; tool for
-- system), assistant where there is no role. recorded_at NULL: created_at. revision is the number of its version.
-- deleted_at: forgotten since, and in no index; purged_at: erased, an empty row that keeps a place. tags is a JSON
-- array, NULL where empty. caused_by is a record's key. A part of a document has its source, the id that it shares with
-- the other parts, and as seq its number. (No indexes on expressions: what a schema may call without being trusted
-- does not include JSON.)
CREATE TABLE typed_records (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    agent_key INTEGER NOT NULL REFERENCES agents (key),
    session_key INTEGER REFERENCES sessions (key),
    type TEXT NOT NULL CHECK (
        type = 'message' OR type = 'pin' OR type = 'summary' OR type = 'thought' OR type = 'document' OR type = 'task'
    ),
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
    origin TEXT CHECK (
        origin = 'user' OR origin = 'assistant' OR origin = 'tool' OR origin = 'document' OR origin = 'import'
    ),
    client TEXT,
    recorded_at INTEGER,
    revision INTEGER NOT NULL DEFAULT 1,
    deleted_at INTEGER,
    purged_at INTEGER,
    is_internal INTEGER NOT NULL DEFAULT 0,
    is_critical INTEGER NOT NULL DEFAULT 0,
    tags TEXT,
    caused_by INTEGER,
    source TEXT,
    document_id TEXT,
    CHECK (session_key IS NOT NULL OR type = 'thought' OR type = 'document' OR type = 'task'),
    CHECK (type <> 'message' OR (seq IS NOT NULL AND role IS NOT NULL AND id IS NULL)),
    CHECK (type = 'message' OR id IS NOT NULL),
    CHECK (type <> 'summary' OR (seq <= end_seq AND level >= 0 AND is_covered IN (0, 1))),
    CHECK (purged_at IS NULL OR deleted_at IS NOT NULL)
) STRICT;

INSERT INTO typed_records (
    key, agent_key, session_key, type, id, seq, end_seq, level, is_covered, role, name, text, importance, tokens,
    created_at, client_key, attributes, hash
)
SELECT r.key, s.agent_key, r.session_key, r.type, r.id, r.seq, r.end_seq, r.level, r.is_covered, r.role, r.name, r.text,
    r.importance, r.tokens, r.created_at, r.client_key, r.attributes, r.hash
FROM records r JOIN sessions s ON s.key = r.session_key ORDER BY r.key;

-- The newest record may be gone: its key is not used again.
DELETE FROM sqlite_sequence WHERE name = 'typed_records';
INSERT INTO sqlite_sequence (name, seq) SELECT 'typed_records', seq FROM sqlite_sequence WHERE name = 'records';
DROP TABLE records;
ALTER TABLE typed_records RENAME TO records;

CREATE UNIQUE INDEX records_messages ON records (session_key, seq) WHERE type = 'message';
CREATE INDEX records_pins ON records (session_key, importance DESC, created_at DESC, key DESC) WHERE type = 'pin';
CREATE UNIQUE INDEX records_summaries ON records (session_key, level, seq) WHERE type = 'summary';
CREATE INDEX records_uncovered ON records (session_key, seq) WHERE type = 'summary' AND is_covered = 0;
CREATE UNIQUE INDEX records_client_keys ON records (session_key, type, client_key) WHERE client_key IS NOT NULL;
CREATE UNIQUE INDEX records_client_keys_of_agents ON records (agent_key, type, client_key)
    WHERE client_key IS NOT NULL AND session_key IS NULL;
CREATE UNIQUE INDEX records_ids ON records (id) WHERE id IS NOT NULL;
CREATE INDEX records_of_types ON records (agent_key, type, key) WHERE id IS NOT NULL AND deleted_at IS NULL;
CREATE INDEX records_caused ON records (caused_by) WHERE caused_by IS NOT NULL;
CREATE UNIQUE INDEX records_sources ON records (agent_key, source, seq) WHERE source IS NOT NULL;
CREATE INDEX records_parts ON records (document_id, seq) WHERE document_id IS NOT NULL;

-- Messages that were forgotten or erased; they are in message_count all the same, which is also the last seq.
ALTER TABLE sessions ADD COLUMN hidden_count INTEGER NOT NULL DEFAULT 0;

-- What made each version but the first; changes has the fields that it changed, as they were before, as JSON.
CREATE TABLE memory_edits (
    record_key INTEGER NOT NULL REFERENCES records (key) ON DELETE CASCADE,
    version INTEGER NOT NULL CHECK (version >= 2),
    edit_type TEXT NOT NULL CHECK (
        edit_type = 'update' OR edit_type = 'delete' OR edit_type = 'restore' OR edit_type = 'revert'
    ),
    editor_type TEXT NOT NULL CHECK (editor_type = 'human' OR editor_type = 'agent' OR editor_type = 'system'),
    editor_id TEXT,
    changes TEXT NOT NULL,
    edited_at INTEGER NOT NULL,
    hash BLOB NOT NULL,
    PRIMARY KEY (record_key, version)
) STRICT, WITHOUT ROWID;

CREATE TABLE record_usage (
    record_key INTEGER PRIMARY KEY REFERENCES records (key) ON DELETE CASCADE,
    usage_count INTEGER NOT NULL,
    last_used INTEGER NOT NULL
) STRICT;

-- What is left of erased records: a row for each text that one ever had, as a hash with the database's secret.
CREATE TABLE tombstones (
    record_id TEXT NOT NULL,
    text_hash TEXT NOT NULL,
    owner TEXT NOT NULL,
    type TEXT NOT NULL,
    number INTEGER,
    seq INTEGER,
    client_key_hash TEXT,
    created_at INTEGER NOT NULL,
    purged_at INTEGER NOT NULL,
    PRIMARY KEY (record_id, text_hash)
) STRICT, WITHOUT ROWID;

CREATE INDEX tombstones_of_texts ON tombstones (text_hash);
