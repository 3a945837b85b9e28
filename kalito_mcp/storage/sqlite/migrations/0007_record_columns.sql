-- Derived, with records_text: what a search weighs of a record before it reads its text. word_count is that of the text
-- and the speaker's name. Rebuilding the text index fills it.
CREATE TABLE record_shapes (
    record_key INTEGER PRIMARY KEY,
    word_count INTEGER NOT NULL,
    is_first_person INTEGER NOT NULL CHECK (is_first_person IN (0, 1))
) STRICT;

-- All columns that a search weighs, without the texts between them.
CREATE INDEX records_columns ON records (
    agent_key, key, session_key, type, seq, role, name, created_at, importance, origin, is_internal, deleted_at, tags
);

-- The newest changes of records, for the processes that keep these columns in memory. New records are not among them:
-- they have the greatest keys.
CREATE TABLE record_changes (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    record_key INTEGER NOT NULL
) STRICT;

CREATE TRIGGER record_changes_kept AFTER INSERT ON record_changes
BEGIN
    DELETE FROM record_changes WHERE number <= new.number - 1000;
END;

CREATE TRIGGER records_columns_changed AFTER UPDATE OF text, name, importance, deleted_at, is_internal, tags ON records
BEGIN
    INSERT INTO record_changes (record_key) VALUES (new.key);
END;

CREATE TRIGGER records_columns_removed AFTER DELETE ON records
BEGIN
    INSERT INTO record_changes (record_key) VALUES (old.key);
END;
