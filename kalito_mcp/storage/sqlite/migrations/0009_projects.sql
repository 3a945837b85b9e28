-- Canonical: projects, and which one a session or a record belongs to.

-- The id is a repository's or folder's path, or a name that the caller chose.
CREATE TABLE projects (
    key INTEGER PRIMARY KEY,
    owner TEXT NOT NULL,
    id TEXT NOT NULL,
    UNIQUE (owner, id)
) STRICT;

-- NULL: personal. Sessions of older releases are not placed: the first project that goes on in one takes it along.
ALTER TABLE sessions ADD COLUMN project_key INTEGER REFERENCES projects (key);
ALTER TABLE sessions ADD COLUMN is_placed INTEGER NOT NULL DEFAULT 0;

-- NULL: personal. What belongs to a session has its session's.
ALTER TABLE records ADD COLUMN project_key INTEGER;

-- Two projects may have documents of one source.
DROP INDEX records_sources;
CREATE UNIQUE INDEX records_sources ON records (agent_key, source, seq, coalesce(project_key, 0))
    WHERE source IS NOT NULL;

DROP INDEX records_columns;
CREATE INDEX records_columns ON records (
    agent_key, key, session_key, type, seq, role, name, created_at, importance, origin, is_internal, deleted_at, tags,
    project_key
);

DROP TRIGGER records_columns_changed;
CREATE TRIGGER records_columns_changed
AFTER UPDATE OF text, name, importance, deleted_at, is_internal, tags, project_key ON records
BEGIN
    INSERT INTO record_changes (record_key) VALUES (new.key);
END;
