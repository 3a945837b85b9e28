-- Erasures whose words may still be in a file: a snapshot, a page of this file, its log. A row is written by the
-- transaction that erases, and goes once the files are clean. text_keys is a JSON array of hashes of the erased texts, by
-- which they are found in snapshots.
CREATE TABLE unswept (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    text_keys TEXT NOT NULL
) STRICT;

-- An older release may have been interrupted.
INSERT INTO unswept (text_keys) SELECT '[]' WHERE EXISTS (SELECT 1 FROM tombstones);
