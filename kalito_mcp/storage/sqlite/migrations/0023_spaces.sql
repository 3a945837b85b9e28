-- Neither canonical nor derived: who shares what with whom. Names and ids alone: the records of a space are the memory of
-- the owner 'space:' || name. An export has none of it.
CREATE TABLE spaces (
    name TEXT PRIMARY KEY,
    project TEXT,
    created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE space_members (
    space TEXT NOT NULL REFERENCES spaces (name),
    member TEXT NOT NULL,
    role TEXT NOT NULL CHECK (role IN ('reader', 'writer', 'curator')),
    since INTEGER NOT NULL,
    PRIMARY KEY (space, member)
) STRICT, WITHOUT ROWID;
CREATE INDEX space_members_by_member ON space_members (member, space);

-- member shared the record source_id of their own. They may have left the space.
CREATE TABLE shared_copies (
    space TEXT NOT NULL,
    record_id TEXT NOT NULL,
    member TEXT NOT NULL,
    source_id TEXT NOT NULL,
    shared_at INTEGER NOT NULL,
    PRIMARY KEY (space, record_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX shared_copies_by_source ON shared_copies (member, source_id);
