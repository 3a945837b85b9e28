-- Who shares what with whom. Names and ids alone: the records of a space are the memory of the owner 'space:' || name.
-- These tables have no policy: they are read to know whose memories somebody may read.
CREATE TABLE spaces (
    name text COLLATE "C" PRIMARY KEY,
    project text,
    created_at bigint NOT NULL
);

CREATE TABLE space_members (
    space text COLLATE "C" NOT NULL REFERENCES spaces (name),
    member text COLLATE "C" NOT NULL,
    role text NOT NULL CHECK (role IN ('reader', 'writer', 'curator')),
    since bigint NOT NULL,
    PRIMARY KEY (space, member)
);
CREATE INDEX space_members_by_member ON space_members (member, space);

-- Lets a transaction read as the owner with this key: a row, and one for each space that the owner is in. Without rows,
-- the owner is gone. The driver counts them. A statement in its place would be planned each time.
CREATE FUNCTION read_as(owner_key bigint) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY SELECT set_config('kalito.owner', key::text, true) FROM owners WHERE key = owner_key
        UNION ALL SELECT space FROM space_members WHERE member = (SELECT name FROM owners WHERE key = owner_key);
END $$;

-- member shared the record source_id of their own. They may have left the space. It does not refer to spaces: that would
-- lock a row of spaces after the lock of an owner, and so in the wrong order.
CREATE TABLE shared_copies (
    space text COLLATE "C" NOT NULL,
    record_id text COLLATE "C" NOT NULL,
    member text COLLATE "C" NOT NULL,
    source_id text COLLATE "C" NOT NULL,
    shared_at bigint NOT NULL,
    PRIMARY KEY (space, record_id)
);
CREATE INDEX shared_copies_by_source ON shared_copies (member, source_id);

CALL notice_changes('spaces', 'INSERT', 'added', 'name', 'space:');
CALL notice_changes('spaces', 'UPDATE', 'changed', 'name', 'space:');
CALL notice_changes('spaces', 'DELETE', 'erased', 'name', 'space:');
CALL notice_changes('space_members', 'INSERT', 'added', 'space', '', 'member');
CALL notice_changes('space_members', 'UPDATE', 'changed', 'space', '', 'member');
CALL notice_changes('space_members', 'DELETE', 'erased', 'space', '', 'member');
