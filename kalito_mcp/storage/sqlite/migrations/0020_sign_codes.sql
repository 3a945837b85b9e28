-- The mean direction of vectors of this index, as half floats. NULL until there are too many to compare each of them.
-- Rounded to a half float, the mean of thousands does not give away any of them.
ALTER TABLE vector_indexes ADD COLUMN centre BLOB;

-- Derived. Which rows of record_vectors went, for processes that have them in memory. Only of the active index: what
-- is dropped is not searched.
CREATE TABLE vector_removals (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    row_key INTEGER NOT NULL
) STRICT;

CREATE TRIGGER record_vectors_removed AFTER DELETE ON record_vectors
WHEN EXISTS (SELECT 1 FROM vector_indexes WHERE key = old.index_key AND state = 'active')
BEGIN
    INSERT INTO vector_removals (row_key) VALUES (old.key);
END;

-- A session is searched in memory, too.
DROP INDEX record_vectors_of_sessions;
