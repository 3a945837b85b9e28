-- The audit log: one chain for all owners. Whoever adds to it has the row of audit_head locked.
CREATE TABLE audit_log (
    number bigint PRIMARY KEY,
    at bigint NOT NULL,
    principal text NOT NULL,
    owner text COLLATE "C" NOT NULL,
    client text,
    action text NOT NULL,
    outcome text NOT NULL,
    count bigint NOT NULL,
    changes text NOT NULL,
    hash bytea NOT NULL
);
CREATE INDEX audit_log_of_owners ON audit_log (owner, number);
CREATE TABLE audit_head (count bigint NOT NULL, hash bytea NOT NULL);
INSERT INTO audit_head (count, hash) VALUES (0, decode(repeat('00', 32), 'hex'));

-- What the transaction that asks for it changed. A row is gone before its transaction ends, so nobody sees another's,
-- and a crash loses nothing. xact leads to the rows of one transaction past those that are not vacuumed yet.
CREATE UNLOGGED TABLE audit_noticed (
    xact xid8 NOT NULL DEFAULT pg_current_xact_id(),
    number bigint GENERATED ALWAYS AS IDENTITY,
    what text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    PRIMARY KEY (xact, number)
);

CREATE FUNCTION notice_record() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    what text := 'changed';
BEGIN
    IF tg_op = 'DELETE' THEN
        INSERT INTO audit_noticed (what, id) VALUES ('erased', coalesce(old.id, 'msg_' || old.key));
        RETURN NULL;
    END IF;
    IF tg_op = 'INSERT' THEN
        what := 'added';
    ELSIF new.purged_at IS NOT NULL AND old.purged_at IS NULL THEN
        what := 'erased';
    ELSIF new.deleted_at IS NOT NULL AND old.deleted_at IS NULL THEN
        what := 'forgotten';
    ELSIF new.deleted_at IS NULL AND old.deleted_at IS NOT NULL THEN
        what := 'restored';
    END IF;
    INSERT INTO audit_noticed (what, id) VALUES (what, coalesce(new.id, 'msg_' || new.key));
    RETURN NULL;
END $$;

-- Its arguments: what was done, the column that tells rows apart, what its value is called, and a further such column or
-- an empty text.
CREATE FUNCTION notice_row() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    changed jsonb := CASE tg_op WHEN 'DELETE' THEN to_jsonb(old) ELSE to_jsonb(new) END;
BEGIN
    INSERT INTO audit_noticed (what, id)
    VALUES (tg_argv[0], tg_argv[2] || (changed ->> tg_argv[1]) || coalesce('/' || (changed ->> tg_argv[3]), ''));
    RETURN NULL;
END $$;

-- A write that is not audited pays for one look at a setting a row.
CREATE TRIGGER notice AFTER INSERT OR UPDATE OR DELETE ON records FOR EACH ROW
    WHEN (current_setting('kalito.audited', true) = 'on') EXECUTE FUNCTION notice_record();

CREATE PROCEDURE notice_changes(
    of_table text, event text, what text, named text, called text, further text DEFAULT ''
) LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format(
        'CREATE TRIGGER %I AFTER %s ON %I FOR EACH ROW '
        'WHEN (current_setting(''kalito.audited'', true) = ''on'') EXECUTE FUNCTION notice_row(%L, %L, %L, %L)',
        'notice_' || what, event, of_table, what, named, called, further
    );
END $$;

-- The columns named here are those that count as a change: others are counters, use, and how far background work has
-- come. Of graphs not the ids of nodes: they are hashes of words, and a guess of the words could be tested against them.
CALL notice_changes('sessions', 'INSERT', 'added', 'id', '');
CALL notice_changes('sessions', 'UPDATE OF id, agent_key, state, project_key, stage', 'changed', 'id', '');
CALL notice_changes('sessions', 'DELETE', 'erased', 'id', '');
CALL notice_changes('projects', 'INSERT', 'added', 'key', 'project_');
CALL notice_changes('projects', 'UPDATE', 'changed', 'key', 'project_');
CALL notice_changes('projects', 'DELETE', 'erased', 'key', 'project_');
CALL notice_changes('graphs', 'INSERT', 'added', 'key', 'graph_');
CALL notice_changes('graphs', 'UPDATE', 'changed', 'key', 'graph_');
CALL notice_changes('graphs', 'DELETE', 'erased', 'key', 'graph_');
CALL notice_changes('forgotten_values', 'INSERT', 'added', 'key', 'forgotten_');
CALL notice_changes('forgotten_values', 'UPDATE', 'changed', 'key', 'forgotten_');
CALL notice_changes('forgotten_values', 'DELETE', 'erased', 'key', 'forgotten_');
CALL notice_changes('access_tokens', 'INSERT', 'added', 'id', '');
CALL notice_changes('access_tokens', 'UPDATE OF revoked_at', 'revoked', 'id', '');
CALL notice_changes('access_tokens', 'UPDATE OF owner, permission, agent, project, expires_at', 'changed', 'id', '');
CALL notice_changes('access_tokens', 'DELETE', 'erased', 'id', '');
CALL notice_changes('oauth_grants', 'INSERT', 'added', 'id', '');
CALL notice_changes('oauth_grants', 'UPDATE OF revoked_at', 'revoked', 'id', '');
CALL notice_changes('oauth_grants', 'DELETE', 'erased', 'id', '');
CALL notice_changes('passphrases', 'INSERT', 'added', 'owner', 'passphrase of ');
CALL notice_changes('passphrases', 'UPDATE', 'changed', 'owner', 'passphrase of ');
CALL notice_changes('passphrases', 'DELETE', 'erased', 'owner', 'passphrase of ');
