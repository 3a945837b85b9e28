-- Neither canonical nor derived: who did what to which ids. An export has none of it.

-- number counts from 1 without gaps. hash is over the hash before it and over all other columns. changes is JSON:
-- [["added",2,"pin_1","pin_2"]]. count: how many equal calls the row stands for.
CREATE TABLE audit_log (
    number INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    principal TEXT NOT NULL,
    owner TEXT NOT NULL,
    client TEXT,
    action TEXT NOT NULL,
    outcome TEXT NOT NULL,
    count INTEGER NOT NULL,
    changes TEXT NOT NULL,
    hash BLOB NOT NULL
) STRICT;

-- One row: number and hash of the newest entry, so that a cut end is seen.
CREATE TABLE audit_head (count INTEGER NOT NULL, hash BLOB NOT NULL) STRICT;
INSERT INTO audit_head (count, hash) VALUES (0, zeroblob(32));
