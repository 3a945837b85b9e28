-- Derived: what records state about things, from their texts. A row goes with its record.

-- The statements of one agent, project (0: personal), subject and attribute are a line. `ordered_at` is when it was
-- said, except that clocks which go back do not change the order. `superseded_by` is the key of the record with the
-- statement that ended it, `superseded_at` when that was said; `conflict_key` that of a record which says otherwise.
CREATE TABLE facts (
    record_key INTEGER NOT NULL,
    place INTEGER NOT NULL,
    agent_key INTEGER NOT NULL,
    project_key INTEGER NOT NULL,
    session_key INTEGER,
    subject TEXT NOT NULL,
    attribute TEXT NOT NULL,
    value TEXT NOT NULL,
    polarity TEXT NOT NULL,
    is_change INTEGER NOT NULL,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    ordered_at INTEGER NOT NULL,
    is_live INTEGER NOT NULL,
    is_echo INTEGER NOT NULL,
    superseded_by INTEGER,
    superseded_at INTEGER,
    conflict_key INTEGER,
    PRIMARY KEY (record_key, place)
) STRICT, WITHOUT ROWID;

CREATE INDEX facts_lines ON facts (agent_key, project_key, subject, attribute, ordered_at, record_key);
CREATE INDEX facts_standing ON facts (agent_key, project_key, subject, attribute, value, polarity)
    WHERE superseded_by IS NULL;
CREATE INDEX facts_superseding ON facts (superseded_by) WHERE superseded_by IS NOT NULL;
CREATE INDEX facts_conflicts ON facts (conflict_key) WHERE conflict_key IS NOT NULL;

-- Derived: records that another one names in its field `supersedes`.
CREATE TABLE superseded_records (
    by_key INTEGER NOT NULL,
    record_key INTEGER NOT NULL,
    ordered_at INTEGER NOT NULL,
    PRIMARY KEY (by_key, record_key)
) STRICT, WITHOUT ROWID;

CREATE INDEX superseded_records_keys ON superseded_records (record_key);

-- Which rules made the facts, and up to which record (done_key) a rebuild has come that ends at last_key.
CREATE TABLE facts_state (
    rules INTEGER NOT NULL,
    done_key INTEGER NOT NULL,
    last_key INTEGER NOT NULL
) STRICT;

INSERT INTO facts_state (rules, done_key, last_key) SELECT 0, 0, coalesce(max(key), 0) FROM records;
