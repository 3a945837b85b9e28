-- Neither canonical nor derived: how far each file of a source was read, so that the next import goes on from there.
-- Without a row a file is read from its beginning, and what is stored already is recognised by its client_key.
CREATE TABLE imports (
    key INTEGER PRIMARY KEY,
    owner TEXT NOT NULL,
    source TEXT NOT NULL,
    place TEXT NOT NULL,
    size INTEGER NOT NULL CHECK (size >= 0),
    modified_ns INTEGER NOT NULL,
    read_to INTEGER NOT NULL CHECK (read_to >= 0),
    fingerprint TEXT NOT NULL,
    imported_at INTEGER NOT NULL,
    UNIQUE (owner, source, place)
) STRICT;
