-- Derived: vector_indexes, record_vectors, vector_debts. All empty until an embedder is configured.

-- One for each embedder. The one that is active is served; one that is building becomes active when it is complete;
-- one that is dropped goes as soon as its vectors have. A key is never used again: AUTOINCREMENT.
-- Every record from first_key to done_key has its vector, or is a debt.
CREATE TABLE vector_indexes (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    fingerprint TEXT NOT NULL,
    dimension INTEGER NOT NULL CHECK (dimension > 0),
    state TEXT NOT NULL CHECK (state = 'active' OR state = 'building' OR state = 'dropped'),
    first_key INTEGER NOT NULL,
    done_key INTEGER NOT NULL
) STRICT;

CREATE UNIQUE INDEX vector_indexes_states ON vector_indexes (state) WHERE state <> 'dropped';
CREATE UNIQUE INDEX vector_indexes_fingerprints ON vector_indexes (fingerprint) WHERE state <> 'dropped';

-- vector is `dimension` signed bytes, in the direction of the embedding. A row is never changed, and its key never used
-- again: who holds some of them needs only the later ones. The agent and the session are the record's own.
CREATE TABLE record_vectors (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    index_key INTEGER NOT NULL REFERENCES vector_indexes (key),
    record_key INTEGER NOT NULL,
    agent_key INTEGER NOT NULL,
    session_key INTEGER,
    vector BLOB NOT NULL
) STRICT;

CREATE UNIQUE INDEX record_vectors_of_records ON record_vectors (index_key, record_key);
CREATE UNIQUE INDEX record_vectors_of_sessions ON record_vectors (session_key, key) WHERE session_key IS NOT NULL;

CREATE TABLE vector_debts (
    index_key INTEGER NOT NULL REFERENCES vector_indexes (key),
    record_key INTEGER NOT NULL,
    PRIMARY KEY (index_key, record_key)
) STRICT, WITHOUT ROWID;

-- A vector gives its text away: it goes in the transaction that changes or takes the text. There is no trigger for new
-- records: their keys are beyond done_key.
CREATE TRIGGER records_vectors_changed AFTER UPDATE OF text, name, deleted_at ON records
WHEN new.text IS NOT old.text OR new.name IS NOT old.name OR new.deleted_at IS NOT old.deleted_at
BEGIN
    DELETE FROM record_vectors WHERE index_key IN (SELECT key FROM vector_indexes) AND record_key = old.key;
    DELETE FROM vector_debts WHERE index_key IN (SELECT key FROM vector_indexes) AND record_key = old.key;
    INSERT INTO vector_debts (index_key, record_key)
    SELECT key, new.key FROM vector_indexes
    WHERE new.deleted_at IS NULL AND state <> 'dropped' AND new.key BETWEEN first_key AND done_key;
END;

CREATE TRIGGER records_vectors_removed AFTER DELETE ON records
BEGIN
    DELETE FROM record_vectors WHERE index_key IN (SELECT key FROM vector_indexes) AND record_key = old.key;
    DELETE FROM vector_debts WHERE index_key IN (SELECT key FROM vector_indexes) AND record_key = old.key;
END;
