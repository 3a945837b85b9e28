-- Derived: vector_moves and vector_leftovers. Empty unless vectors are kept outside this file, such as in Qdrant.

-- An index whose vectors are there. Of its rows in record_vectors those up to moved_key are: in them `vector` is the id
-- of the point, 16 bytes. Later rows still have the vector itself. place says where it is, in words.
CREATE TABLE vector_moves (
    index_key INTEGER PRIMARY KEY REFERENCES vector_indexes (key) ON DELETE CASCADE,
    place TEXT NOT NULL,
    moved_key INTEGER NOT NULL
) STRICT;

-- Points that are still to be removed there, because their rows are gone.
CREATE TABLE vector_leftovers (
    place TEXT NOT NULL,
    point BLOB NOT NULL,
    PRIMARY KEY (place, point)
) STRICT, WITHOUT ROWID;

-- A point is noted in the transaction that takes its row, so an erasure that is cut short is finished later.
CREATE TRIGGER record_vectors_moved_removed AFTER DELETE ON record_vectors
WHEN EXISTS (SELECT 1 FROM vector_moves WHERE index_key = old.index_key AND moved_key >= old.key)
BEGIN
    INSERT OR IGNORE INTO vector_leftovers (place, point)
    SELECT place, old.vector FROM vector_moves WHERE index_key = old.index_key;
END;
