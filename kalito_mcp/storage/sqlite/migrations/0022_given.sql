-- Neither canonical nor derived: what the memory gave back. Ids and numbers alone, so that erasing a record has nothing
-- to erase here. An export has none of it.

-- project: the one that was read, 'personal' for none, NULL for all. With a session, the session's counts.
-- parts is JSON: [["known",120,2,[3,"pin_1"],[null,"pin_2"]]]: name, tokens, number of records, revision and id of each.
-- left_out is JSON: [["found","did_not_fit",9,"msg_1"]]: part, reason, number, ids.
CREATE TABLE given (
    key INTEGER PRIMARY KEY,
    owner TEXT NOT NULL,
    agent TEXT NOT NULL,
    project TEXT,
    session TEXT,
    kind TEXT NOT NULL,
    at INTEGER NOT NULL,
    client TEXT,
    budget INTEGER,
    tokens INTEGER NOT NULL,
    parts TEXT NOT NULL,
    left_out TEXT NOT NULL
) STRICT;

-- For what was given with one record there is no index: it is looked for in the owner's 2,000 rows.
CREATE INDEX given_newest ON given (owner, at);
