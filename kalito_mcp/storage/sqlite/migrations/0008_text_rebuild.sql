-- A rebuild of the text index that is not finished. It fills tables of its own, new_records_text and new_record_shapes,
-- which then take the place of records_text and record_shapes; until then these are whole and in use. No row: none is
-- under way. Every record up to done_key is in the new tables, `done` of about `total` records; -1: they are useless.
CREATE TABLE text_rebuild (
    analysis INTEGER NOT NULL,
    done_key INTEGER NOT NULL,
    done INTEGER NOT NULL,
    total INTEGER NOT NULL
) STRICT;

-- A process of any release may change a record that is in the new tables already.
CREATE TRIGGER text_rebuild_changed AFTER UPDATE OF agent_key, text, name, deleted_at ON records
WHEN old.key <= (SELECT done_key FROM text_rebuild) AND (
    new.text IS NOT old.text OR new.name IS NOT old.name OR new.deleted_at IS NOT old.deleted_at
    OR new.agent_key IS NOT old.agent_key
)
BEGIN
    UPDATE text_rebuild SET done_key = -1;
END;

CREATE TRIGGER text_rebuild_removed AFTER DELETE ON records
WHEN old.key <= (SELECT done_key FROM text_rebuild)
BEGIN
    UPDATE text_rebuild SET done_key = -1;
END;
