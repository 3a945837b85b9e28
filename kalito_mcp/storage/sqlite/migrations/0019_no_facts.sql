-- What a text states, and which statement still holds, is not derived any more: records are shown with their dates.
DROP TABLE facts;
DROP TABLE facts_state;

-- Derived: records that another one names in its field `supersedes`. Filled again, because reading an older database
-- could have been interrupted.
DROP TABLE superseded_records;
CREATE TABLE superseded_records (
    by_key INTEGER NOT NULL,
    record_key INTEGER NOT NULL,
    PRIMARY KEY (by_key, record_key)
) STRICT, WITHOUT ROWID;
CREATE INDEX superseded_records_keys ON superseded_records (record_key);

INSERT OR IGNORE INTO superseded_records (by_key, record_key)
SELECT n.key, r.key FROM records n JOIN json_each(n.attributes, '$.supersedes') named JOIN records r ON r.key = coalesce(
    (SELECT key FROM records WHERE id = named.value),
    CASE WHEN named.value GLOB 'msg_[1-9]*' THEN CAST(substr(named.value, 5) AS INTEGER) END
)
WHERE instr(n.attributes, '"supersedes"') AND json_valid(n.attributes)
    AND coalesce(r.id, 'msg_' || r.key) = named.value AND r.agent_key = n.agent_key AND r.key <> n.key AND r.purged_at IS NULL;
