-- Derived: vectors of records, and which are owed. All empty until an embedder is configured.

-- One for each embedder. The one that is active is served; one that is building becomes active when it is complete; one
-- that is dropped goes when its vectors have. No foreign key names it: its end would be checked by reading all vectors.
CREATE TABLE vector_indexes (
    key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    fingerprint text NOT NULL,
    dimension bigint NOT NULL CHECK (dimension > 0),
    state text NOT NULL CHECK (state IN ('active', 'building', 'dropped'))
);
CREATE UNIQUE INDEX vector_indexes_states ON vector_indexes (state) WHERE state <> 'dropped';
CREATE UNIQUE INDEX vector_indexes_fingerprints ON vector_indexes (fingerprint) WHERE state <> 'dropped';

-- code is `dimension` signed bytes, which give the score; near is the same direction with unit length, by which the
-- database chooses candidates. near stays in the row even where the row is over 2 kB: a search reads it of each record.
CREATE TABLE record_vectors (
    owner_key bigint NOT NULL,
    index_key bigint NOT NULL,
    record_key bigint NOT NULL,
    agent_key bigint NOT NULL,
    session_key bigint,
    code bytea STORAGE EXTERNAL NOT NULL,
    near halfvec STORAGE MAIN NOT NULL,
    PRIMARY KEY (owner_key, record_key, index_key)
);
CREATE INDEX record_vectors_of_sessions ON record_vectors (owner_key, index_key, agent_key, session_key);

-- Records without a vector in an index that is not dropped. kind: 0 new, 1 changed, 2 older than the index.
CREATE TABLE vector_debts (
    owner_key bigint NOT NULL,
    index_key bigint NOT NULL,
    record_key bigint NOT NULL,
    kind smallint NOT NULL CHECK (kind IN (0, 1, 2)),
    PRIMARY KEY (owner_key, record_key, index_key)
);
CREATE INDEX vector_debts_newest ON vector_debts (owner_key, index_key, kind, record_key);

-- Whose records vector_debts has, because it shows those of one owner at a time: a row for each kind of debt that the
-- owner has. newest is the key of the newest record that was owed. The lock of the owner's row protects it. holder makes
-- the vectors until leased_until.
CREATE TABLE vector_debtors (
    index_key bigint NOT NULL,
    kind smallint NOT NULL,
    owner bigint NOT NULL REFERENCES owners (key),
    newest bigint NOT NULL,
    holder uuid,
    leased_until timestamptz NOT NULL DEFAULT '-infinity',
    PRIMARY KEY (owner, index_key, kind)
) WITH (fillfactor = 70);
CREATE INDEX vector_debtors_of_indexes ON vector_debtors (index_key, kind);

ALTER TABLE record_vectors ENABLE ROW LEVEL SECURITY;
ALTER TABLE record_vectors FORCE ROW LEVEL SECURITY;
CREATE POLICY of_owner ON record_vectors USING (owner_key = current_setting('kalito.owner')::bigint);
ALTER TABLE vector_debts ENABLE ROW LEVEL SECURITY;
ALTER TABLE vector_debts FORCE ROW LEVEL SECURITY;
CREATE POLICY of_owner ON vector_debts USING (owner_key = current_setting('kalito.owner')::bigint);

CREATE FUNCTION owe_vectors_of_new_records() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO vector_debts (owner_key, index_key, record_key, kind)
    SELECT n.owner_key, i.key, n.key, 0 FROM vector_indexes i CROSS JOIN new_records n
    WHERE i.state <> 'dropped' AND n.deleted_at IS NULL AND n.text <> '';
    IF FOUND THEN
        INSERT INTO vector_debtors (index_key, kind, owner, newest)
        SELECT i.key, 0, n.owner_key, max(n.key) FROM vector_indexes i CROSS JOIN new_records n
        WHERE i.state <> 'dropped' AND n.deleted_at IS NULL AND n.text <> '' GROUP BY i.key, n.owner_key
        ON CONFLICT (owner, index_key, kind) DO UPDATE SET newest = excluded.newest;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER records_vectors_new AFTER INSERT ON records REFERENCING NEW TABLE AS new_records
    FOR EACH STATEMENT EXECUTE FUNCTION owe_vectors_of_new_records();

-- A vector gives its text away: it goes in the transaction that changes or takes the text, also from a dropped index.
CREATE FUNCTION take_vectors_of_record() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM record_vectors WHERE owner_key = old.owner_key AND record_key = old.key;
    IF TG_OP = 'UPDATE' AND new.deleted_at IS NULL AND new.text <> '' THEN
        INSERT INTO vector_debts (owner_key, index_key, record_key, kind)
        SELECT new.owner_key, key, new.key, 1 FROM vector_indexes WHERE state <> 'dropped'
        ON CONFLICT DO NOTHING;
        IF FOUND THEN
            INSERT INTO vector_debtors (index_key, kind, owner, newest)
            SELECT index_key, kind, owner_key, record_key FROM vector_debts
            WHERE owner_key = new.owner_key AND record_key = new.key
            ON CONFLICT (owner, index_key, kind) DO UPDATE SET newest = greatest(vector_debtors.newest, excluded.newest);
        END IF;
    ELSE
        DELETE FROM vector_debts WHERE owner_key = old.owner_key AND record_key = old.key;
        IF FOUND THEN
            DELETE FROM vector_debtors o WHERE owner = old.owner_key AND NOT EXISTS (
                SELECT 1 FROM vector_debts d
                WHERE d.owner_key = old.owner_key AND d.index_key = o.index_key AND d.kind = o.kind
            );
        END IF;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER records_vectors_changed AFTER UPDATE OF text, name, deleted_at ON records FOR EACH ROW
    WHEN ((new.text, new.name, new.deleted_at) IS DISTINCT FROM (old.text, old.name, old.deleted_at))
    EXECUTE FUNCTION take_vectors_of_record();
CREATE TRIGGER records_vectors_removed AFTER DELETE ON records FOR EACH ROW EXECUTE FUNCTION take_vectors_of_record();

-- The number that the statement gives for each owner, run as that owner. Its parameters: the owner and an index.
CREATE FUNCTION number_of_each_owner(statement text, of_index bigint) RETURNS TABLE (owner bigint, number bigint)
LANGUAGE plpgsql AS $$
DECLARE
    before text := coalesce(current_setting('kalito.owner', true), '');
BEGIN
    FOR owner IN SELECT o.key FROM owners o ORDER BY o.key LOOP
        PERFORM set_config('kalito.owner', owner::text, true);
        EXECUTE statement INTO number USING owner, of_index;
        RETURN NEXT;
    END LOOP;
    PERFORM set_config('kalito.owner', before, true);
END $$;
