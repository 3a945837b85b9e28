-- Derived: vectors of records, and which are owed. All empty until an embedder is configured.

-- One for each embedder; see the SQLite store. centre is subtracted from vectors before they are compared by sign there;
-- here it is unused. It has no row of anybody's memory, so it has no owner.
CREATE TABLE vector_indexes (
    key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    fingerprint text NOT NULL,
    dimension bigint NOT NULL CHECK (dimension > 0),
    state text NOT NULL CHECK (state IN ('active', 'building', 'dropped'))
);
CREATE UNIQUE INDEX vector_indexes_states ON vector_indexes (state) WHERE state <> 'dropped';
CREATE UNIQUE INDEX vector_indexes_fingerprints ON vector_indexes (fingerprint) WHERE state <> 'dropped';

-- code is `dimension` signed bytes, which give the score; near is the same direction for comparisons in the database.
CREATE TABLE record_vectors (
    owner_key bigint NOT NULL,
    index_key bigint NOT NULL REFERENCES vector_indexes (key),
    record_key bigint NOT NULL,
    agent_key bigint NOT NULL,
    session_key bigint,
    project_key bigint,
    code bytea NOT NULL,
    near halfvec NOT NULL,
    PRIMARY KEY (owner_key, index_key, record_key)
);
CREATE INDEX record_vectors_of_agents ON record_vectors (owner_key, index_key, agent_key);

-- Records without a vector in an index, newest first. A vector gives its text away: it goes in the transaction that
-- changes or takes the text.
CREATE TABLE vector_debts (
    owner_key bigint NOT NULL,
    index_key bigint NOT NULL REFERENCES vector_indexes (key),
    record_key bigint NOT NULL,
    PRIMARY KEY (owner_key, index_key, record_key)
);

ALTER TABLE record_vectors ENABLE ROW LEVEL SECURITY;
ALTER TABLE record_vectors FORCE ROW LEVEL SECURITY;
CREATE POLICY of_owner ON record_vectors USING (owner_key = current_setting('kalito.owner')::bigint);
ALTER TABLE vector_debts ENABLE ROW LEVEL SECURITY;
ALTER TABLE vector_debts FORCE ROW LEVEL SECURITY;
CREATE POLICY of_owner ON vector_debts USING (owner_key = current_setting('kalito.owner')::bigint);
