-- Everything but vectors and spaces. Names, columns and checks are those of the SQLite store, so that rows and their
-- hashes are equal. Flags are 0 or 1. Moments are milliseconds since 1970-01-01T00:00:00Z.
--
-- Protected tables have the key of an owner in each key, and only the rows of one owner at a time: the one whose key is
-- in `kalito.owner` for this transaction. Without it, a statement fails. At the end are the tables without an owner, and
-- what is read before it is known who asks.

-- revision counts the transactions that wrote for the owner. Whoever writes has this row locked, so that the writes of
-- one owner are one after the other, and keys ascend. owes: background work of sessions may be due, and holder does it
-- until leased_until. Who has read records up to a revision before reindexed_revision reads all of them again.
CREATE TABLE owners (
    key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text COLLATE "C" NOT NULL UNIQUE,
    revision bigint NOT NULL DEFAULT 0,
    owes boolean NOT NULL DEFAULT false,
    holder uuid,
    leased_until timestamptz NOT NULL DEFAULT '-infinity',
    reindexed_revision bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 70);
CREATE INDEX owners_owing ON owners (key) WHERE owes;

-- Lets a transaction write for an owner: with the setting that the policies compare, the lock of the owner's row, and the
-- lease of the owner's owed work unless another process has it; by NULL owes nothing. A row with the new revision, and if
-- another process has the lease, the same row again; no row if the owner is gone.
CREATE FUNCTION write_as(of_owner bigint, by uuid, lease_s double precision) RETURNS SETOF bigint
LANGUAGE plpgsql AS $$
DECLARE
    written bigint;
    is_leased boolean;
BEGIN
    PERFORM set_config('kalito.owner', of_owner::text, true);
    UPDATE owners SET revision = revision + 1, owes = owes OR by IS NOT NULL,
        holder = CASE
            WHEN by IS NULL OR owes AND holder <> by AND leased_until > statement_timestamp() THEN holder ELSE by
        END,
        leased_until = CASE
            WHEN by IS NULL OR owes AND holder <> by AND leased_until > statement_timestamp() THEN leased_until
            ELSE statement_timestamp() + make_interval(secs => lease_s)
        END
    WHERE key = of_owner RETURNING revision, holder = by INTO written, is_leased;
    IF FOUND THEN
        PERFORM set_config('kalito.revision', written::text, true);
        RETURN NEXT written;
        IF NOT is_leased THEN
            RETURN NEXT written;
        END IF;
    END IF;
END $$;

-- Keys ascend within an owner. They are not unique across owners: a memory that is moved here keeps its own.
CREATE SEQUENCE record_keys;
CREATE SEQUENCE session_keys;
CREATE SEQUENCE graph_keys;
CREATE SEQUENCE other_keys;

CREATE TABLE agents (
    owner_key bigint NOT NULL REFERENCES owners (key),
    key bigint NOT NULL DEFAULT nextval('other_keys'),
    id text COLLATE "C" NOT NULL,
    record_count bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (owner_key, key),
    UNIQUE (owner_key, id)
) WITH (fillfactor = 80);

CREATE TABLE projects (
    owner_key bigint NOT NULL REFERENCES owners (key),
    key bigint NOT NULL DEFAULT nextval('other_keys'),
    id text COLLATE "C" NOT NULL,
    PRIMARY KEY (owner_key, key),
    UNIQUE (owner_key, id)
);

-- said_at is a column: under row level security, a condition with coalesce(...) uses no index, because PostgreSQL does
-- not know that it gives nothing away.
CREATE TABLE sessions (
    owner_key bigint NOT NULL,
    key bigint NOT NULL DEFAULT nextval('session_keys'),
    id text COLLATE "C" NOT NULL,
    agent_key bigint NOT NULL,
    state text NOT NULL DEFAULT 'OPEN' CHECK (state IN ('OPEN', 'FINALIZING', 'FINALIZED')),
    model text,
    message_count bigint NOT NULL DEFAULT 0,
    summary_count bigint NOT NULL DEFAULT 0,
    pin_count bigint NOT NULL DEFAULT 0,
    importance_sum double precision NOT NULL DEFAULT 0,
    summarized_seq bigint NOT NULL DEFAULT 0,
    pinned_seq bigint NOT NULL DEFAULT 0,
    oldest_message_at bigint,
    newest_message_at bigint,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    revision bigint NOT NULL DEFAULT 0,
    observed_seq bigint NOT NULL DEFAULT 0,
    stage text CHECK (stage IN ('summaries', 'sleep', 'promotion', 'checkpoint')),
    hidden_count bigint NOT NULL DEFAULT 0,
    project_key bigint,
    is_placed smallint NOT NULL DEFAULT 0,
    said_at bigint NOT NULL GENERATED ALWAYS AS (coalesce(newest_message_at, updated_at)) STORED,
    PRIMARY KEY (owner_key, key),
    UNIQUE (owner_key, id),
    FOREIGN KEY (owner_key, agent_key) REFERENCES agents (owner_key, key),
    FOREIGN KEY (owner_key, project_key) REFERENCES projects (owner_key, key)
) WITH (fillfactor = 80);
CREATE INDEX sessions_said ON sessions (owner_key, said_at DESC, key DESC);
CREATE INDEX sessions_of_projects ON sessions (owner_key, project_key) WHERE project_key IS NOT NULL;

-- A message is `msg_<key>` and has no id of its own. changed_at_revision is the owner's revision when a column that a
-- search keeps in memory was last written: who has read up to a revision reads what is later.
CREATE TABLE records (
    owner_key bigint NOT NULL,
    key bigint NOT NULL DEFAULT nextval('record_keys'),
    agent_key bigint NOT NULL,
    session_key bigint,
    type text NOT NULL CHECK (type IN ('message', 'pin', 'summary', 'thought', 'document', 'task')),
    id text COLLATE "C",
    seq bigint,
    end_seq bigint,
    level bigint,
    is_covered smallint,
    role text CHECK (role IN ('user', 'assistant', 'system')),
    name text,
    text text COLLATE "C" NOT NULL,
    importance double precision NOT NULL CHECK (importance BETWEEN 0 AND 1),
    tokens bigint NOT NULL,
    created_at bigint NOT NULL,
    client_key text COLLATE "C",
    attributes text,
    hash bytea NOT NULL,
    origin text CHECK (origin IN ('user', 'assistant', 'tool', 'document', 'import')),
    client text,
    recorded_at bigint,
    revision bigint NOT NULL DEFAULT 1,
    deleted_at bigint,
    purged_at bigint,
    is_internal smallint NOT NULL DEFAULT 0,
    is_critical smallint NOT NULL DEFAULT 0,
    tags text,
    caused_by bigint,
    source text COLLATE "C",
    document_id text COLLATE "C",
    project_key bigint,
    reach text CHECK (reach IN ('project', 'person')),
    changed_at_revision bigint NOT NULL DEFAULT current_setting('kalito.revision')::bigint,
    PRIMARY KEY (owner_key, key),
    FOREIGN KEY (owner_key, agent_key) REFERENCES agents (owner_key, key),
    FOREIGN KEY (owner_key, session_key) REFERENCES sessions (owner_key, key),
    CHECK (session_key IS NOT NULL OR type IN ('thought', 'document', 'task')),
    CHECK (type <> 'message' OR (seq IS NOT NULL AND role IS NOT NULL AND id IS NULL)),
    CHECK (type = 'message' OR id IS NOT NULL),
    CHECK (type <> 'summary' OR (seq <= end_seq AND level >= 0 AND is_covered IN (0, 1))),
    CHECK (purged_at IS NULL OR deleted_at IS NOT NULL)
);
CREATE UNIQUE INDEX records_messages ON records (owner_key, session_key, seq) WHERE type = 'message';
CREATE INDEX records_pins ON records (owner_key, session_key, importance DESC, created_at DESC, key DESC)
    WHERE type = 'pin';
CREATE UNIQUE INDEX records_summaries ON records (owner_key, session_key, level, seq) WHERE type = 'summary';
CREATE INDEX records_uncovered ON records (owner_key, session_key, seq) WHERE type = 'summary' AND is_covered = 0;
CREATE UNIQUE INDEX records_client_keys ON records (owner_key, session_key, type, client_key)
    WHERE client_key IS NOT NULL AND session_key IS NOT NULL;
CREATE UNIQUE INDEX records_client_keys_of_agents ON records (owner_key, agent_key, type, client_key)
    WHERE client_key IS NOT NULL AND session_key IS NULL;
CREATE UNIQUE INDEX records_ids ON records (owner_key, id) WHERE id IS NOT NULL;
CREATE INDEX records_of_types ON records (owner_key, agent_key, type, key) WHERE id IS NOT NULL AND deleted_at IS NULL;
CREATE INDEX records_caused ON records (owner_key, caused_by, key) WHERE caused_by IS NOT NULL;
CREATE INDEX records_parts ON records (owner_key, document_id, seq) WHERE document_id IS NOT NULL;
CREATE UNIQUE INDEX records_sources ON records (owner_key, agent_key, source, seq, (coalesce(project_key, 0)))
    WHERE source IS NOT NULL;
CREATE INDEX records_known ON records (owner_key, agent_key, importance DESC, created_at DESC, key DESC)
    WHERE reach IS NOT NULL AND deleted_at IS NULL;
CREATE INDEX records_lasting ON records (owner_key, agent_key, key) WHERE reach IS NOT NULL AND deleted_at IS NULL;
CREATE INDEX records_of_agents ON records (owner_key, agent_key, key);
CREATE INDEX records_forgotten ON records (owner_key, agent_key, key) WHERE deleted_at IS NOT NULL;
CREATE INDEX records_changed ON records (owner_key, agent_key, changed_at_revision);
CREATE INDEX records_of_projects ON records (owner_key, project_key) WHERE project_key IS NOT NULL;

-- Records that were removed, for those who keep their columns in memory.
CREATE TABLE removed_records (
    owner_key bigint NOT NULL,
    agent_key bigint NOT NULL,
    removed_at_revision bigint NOT NULL,
    record_key bigint NOT NULL,
    PRIMARY KEY (owner_key, agent_key, removed_at_revision, record_key)
);

CREATE FUNCTION note_changed_record() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (new.text, new.name, new.importance, new.deleted_at, new.is_internal, new.tags, new.project_key)
        IS DISTINCT FROM
        (old.text, old.name, old.importance, old.deleted_at, old.is_internal, old.tags, old.project_key)
    THEN
        new.changed_at_revision := current_setting('kalito.revision')::bigint;
    END IF;
    RETURN new;
END $$;
CREATE TRIGGER records_changed BEFORE UPDATE ON records FOR EACH ROW EXECUTE FUNCTION note_changed_record();

CREATE FUNCTION note_removed_record() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO removed_records (owner_key, agent_key, removed_at_revision, record_key)
    VALUES (old.owner_key, old.agent_key, current_setting('kalito.revision')::bigint, old.key);
    RETURN NULL;
END $$;
CREATE TRIGGER records_removed AFTER DELETE ON records FOR EACH ROW EXECUTE FUNCTION note_removed_record();

CREATE TABLE memory_edits (
    owner_key bigint NOT NULL,
    record_key bigint NOT NULL,
    version bigint NOT NULL CHECK (version >= 2),
    edit_type text NOT NULL CHECK (edit_type IN ('update', 'delete', 'restore', 'revert')),
    editor_type text NOT NULL CHECK (editor_type IN ('human', 'agent', 'system')),
    editor_id text,
    changes text NOT NULL,
    edited_at bigint NOT NULL,
    hash bytea NOT NULL,
    PRIMARY KEY (owner_key, record_key, version),
    FOREIGN KEY (owner_key, record_key) REFERENCES records (owner_key, key) ON DELETE CASCADE
);

CREATE TABLE record_usage (
    owner_key bigint NOT NULL,
    record_key bigint NOT NULL,
    usage_count bigint NOT NULL,
    last_used bigint NOT NULL,
    PRIMARY KEY (owner_key, record_key),
    FOREIGN KEY (owner_key, record_key) REFERENCES records (owner_key, key) ON DELETE CASCADE
) WITH (fillfactor = 80);

CREATE TABLE feedback (
    owner_key bigint NOT NULL,
    record_key bigint NOT NULL,
    label text NOT NULL CHECK (label IN ('up', 'down', 'retry')),
    count bigint NOT NULL,
    last_at bigint NOT NULL,
    PRIMARY KEY (owner_key, record_key, label),
    FOREIGN KEY (owner_key, record_key) REFERENCES records (owner_key, key) ON DELETE CASCADE
);

CREATE TABLE superseded_records (
    owner_key bigint NOT NULL,
    by_key bigint NOT NULL,
    record_key bigint NOT NULL,
    PRIMARY KEY (owner_key, by_key, record_key)
);
CREATE INDEX superseded_records_keys ON superseded_records (owner_key, record_key);

CREATE TABLE tombstones (
    owner_key bigint NOT NULL REFERENCES owners (key),
    record_id text COLLATE "C" NOT NULL,
    text_hash text COLLATE "C" NOT NULL,
    type text NOT NULL,
    number bigint,
    seq bigint,
    client_key_hash text,
    created_at bigint NOT NULL,
    purged_at bigint NOT NULL,
    PRIMARY KEY (owner_key, record_id, text_hash)
);
CREATE INDEX tombstones_of_texts ON tombstones (owner_key, text_hash);

CREATE TABLE forgotten_values (
    owner_key bigint NOT NULL,
    key bigint NOT NULL DEFAULT nextval('other_keys'),
    value_hash text COLLATE "C" NOT NULL CHECK (length(value_hash) = 32),
    agent_key bigint NOT NULL,
    project_key bigint,
    forgotten_at bigint NOT NULL,
    is_erased smallint NOT NULL CHECK (is_erased IN (0, 1)),
    PRIMARY KEY (owner_key, key),
    FOREIGN KEY (owner_key, agent_key) REFERENCES agents (owner_key, key),
    FOREIGN KEY (owner_key, project_key) REFERENCES projects (owner_key, key)
);
CREATE UNIQUE INDEX forgotten_values_places
    ON forgotten_values (owner_key, value_hash, agent_key, (coalesce(project_key, 0)));

CREATE TABLE graphs (
    owner_key bigint NOT NULL,
    key bigint NOT NULL DEFAULT nextval('graph_keys'),
    agent_key bigint NOT NULL,
    session_key bigint,
    revision bigint NOT NULL DEFAULT 0,
    removed_revision bigint NOT NULL DEFAULT 0,
    slept_at bigint,
    embedder text,
    PRIMARY KEY (owner_key, key),
    FOREIGN KEY (owner_key, agent_key) REFERENCES agents (owner_key, key),
    FOREIGN KEY (owner_key, session_key) REFERENCES sessions (owner_key, key)
);
CREATE UNIQUE INDEX graphs_of_agents ON graphs (owner_key, agent_key) WHERE session_key IS NULL;
CREATE UNIQUE INDEX graphs_of_sessions ON graphs (owner_key, agent_key, session_key) WHERE session_key IS NOT NULL;

CREATE TABLE graph_nodes (
    owner_key bigint NOT NULL,
    key bigint NOT NULL DEFAULT nextval('other_keys'),
    graph_key bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    type text NOT NULL CHECK (type IN ('query', 'answer', 'feedback', 'entity')),
    text text,
    canonical_key text,
    summary text,
    source_node_ids text,
    source_record_ids text,
    repeat double precision NOT NULL,
    feedback double precision NOT NULL,
    is_pinned smallint NOT NULL CHECK (is_pinned IN (0, 1)),
    created_at bigint NOT NULL,
    last_access bigint NOT NULL,
    embedding bytea,
    revision bigint NOT NULL,
    hash bytea NOT NULL,
    PRIMARY KEY (owner_key, key),
    FOREIGN KEY (owner_key, graph_key) REFERENCES graphs (owner_key, key)
);
CREATE UNIQUE INDEX graph_nodes_ids ON graph_nodes (owner_key, graph_key, id);

CREATE TABLE graph_edges (
    owner_key bigint NOT NULL,
    from_key bigint NOT NULL,
    type text NOT NULL CHECK (type IN ('similar_to', 'responded_with', 'has_feedback', 'refers_to_entity')),
    to_key bigint NOT NULL,
    graph_key bigint NOT NULL,
    weight double precision NOT NULL CHECK (weight <> 'NaN'),
    created_at bigint NOT NULL,
    last_access bigint NOT NULL,
    revision bigint NOT NULL,
    hash bytea NOT NULL,
    PRIMARY KEY (owner_key, from_key, type, to_key),
    FOREIGN KEY (owner_key, from_key) REFERENCES graph_nodes (owner_key, key) ON DELETE CASCADE,
    FOREIGN KEY (owner_key, to_key) REFERENCES graph_nodes (owner_key, key) ON DELETE CASCADE
);
CREATE INDEX graph_edges_to ON graph_edges (owner_key, to_key);
CREATE INDEX graph_edges_of_graphs ON graph_edges (owner_key, graph_key);

CREATE TABLE imports (
    owner_key bigint NOT NULL REFERENCES owners (key),
    source text COLLATE "C" NOT NULL,
    place text COLLATE "C" NOT NULL,
    size bigint NOT NULL CHECK (size >= 0),
    modified_ns bigint NOT NULL,
    read_to bigint NOT NULL CHECK (read_to >= 0),
    fingerprint text NOT NULL,
    imported_at bigint NOT NULL,
    PRIMARY KEY (owner_key, source, place)
);

CREATE TABLE given (
    owner_key bigint NOT NULL REFERENCES owners (key),
    key bigint NOT NULL DEFAULT nextval('other_keys'),
    agent text NOT NULL,
    project text,
    session text,
    kind text NOT NULL,
    at bigint NOT NULL,
    client text,
    budget bigint,
    tokens bigint NOT NULL,
    parts text NOT NULL,
    left_out text NOT NULL,
    PRIMARY KEY (owner_key, key)
);
CREATE INDEX given_newest ON given (owner_key, at, key);

-- Derived: which records contain a term (see term_pages.py). New records wait in fresh_terms until they are folded in. A
-- page that is written again finds room in its block, where the next one clears the old version away.
CREATE TABLE term_pages (
    owner_key bigint NOT NULL,
    agent_key bigint NOT NULL,
    term text COLLATE "C" NOT NULL,
    first bigint NOT NULL,
    terms text NOT NULL,
    keys bytea NOT NULL,
    PRIMARY KEY (owner_key, agent_key, term, first)
) WITH (fillfactor = 50);

-- Vacuumed often: it stays small only if the rows that come take the place of those that are folded.
CREATE TABLE fresh_terms (
    owner_key bigint NOT NULL,
    agent_key bigint NOT NULL,
    record_key bigint NOT NULL,
    terms text NOT NULL,
    PRIMARY KEY (owner_key, agent_key, record_key)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);

CREATE TABLE record_shapes (
    owner_key bigint NOT NULL,
    record_key bigint NOT NULL,
    word_count bigint NOT NULL,
    is_first_person smallint NOT NULL CHECK (is_first_person IN (0, 1)),
    PRIMARY KEY (owner_key, record_key)
);

DO $$
DECLARE
    protected text;
BEGIN
    FOREACH protected IN ARRAY ARRAY[
        'agents', 'projects', 'sessions', 'records', 'removed_records', 'memory_edits', 'record_usage', 'feedback',
        'superseded_records', 'tombstones', 'forgotten_values', 'graphs', 'graph_nodes', 'graph_edges', 'imports',
        'given', 'term_pages', 'fresh_terms', 'record_shapes'
    ] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', protected);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', protected);
        EXECUTE format(
            'CREATE POLICY of_owner ON %I USING (owner_key = current_setting(''kalito.owner'')::bigint)', protected
        );
    END LOOP;
END $$;

-- Whether no owner has anything. Policies show one owner at a time; the setting is as before after the function, which
-- an ordinary role cannot have with a SET clause.
CREATE FUNCTION is_nothing_stored() RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    earlier text := coalesce(current_setting('kalito.owner', true), '');
    one bigint;
    is_filled boolean := false;
BEGIN
    FOR one IN SELECT key FROM owners LOOP
        PERFORM set_config('kalito.owner', one::text, true);
        is_filled := EXISTS (SELECT FROM agents WHERE owner_key = one)
            OR EXISTS (SELECT FROM projects WHERE owner_key = one)
            OR EXISTS (SELECT FROM tombstones WHERE owner_key = one);
        EXIT WHEN is_filled;
    END LOOP;
    PERFORM set_config('kalito.owner', earlier, true);
    RETURN NOT is_filled;
END $$;

-- One row. The secret makes the fence of a context that no remembered text can know.
CREATE TABLE identity (secret bytea NOT NULL, analysis bigint NOT NULL DEFAULT 1);
INSERT INTO identity (secret)
SELECT substr(sha256((gen_random_uuid()::text || gen_random_uuid())::bytea), 1, 16);
CREATE TABLE state_secret (secret bytea NOT NULL);
INSERT INTO state_secret (secret) SELECT sha256((gen_random_uuid()::text || gen_random_uuid())::bytea);

-- Erasures that are not finished: hashes by which their texts are found outside the database.
CREATE TABLE unswept (
    key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    text_keys text NOT NULL
);

CREATE TABLE access_tokens (
    key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id text NOT NULL UNIQUE,
    text_hash bytea NOT NULL UNIQUE,
    prefix text NOT NULL,
    name text NOT NULL,
    kind text NOT NULL CHECK (kind IN ('static', 'access', 'refresh')),
    owner text COLLATE "C" NOT NULL,
    permission text NOT NULL CHECK (permission IN ('read', 'write', 'admin')),
    agent text,
    project text,
    client text,
    grant_id text,
    resource text,
    created_at bigint NOT NULL,
    expires_at bigint,
    last_used_at bigint,
    revoked_at bigint
);
CREATE INDEX access_tokens_by_grant ON access_tokens (grant_id);
CREATE INDEX access_tokens_by_owner ON access_tokens (owner);
CREATE INDEX access_tokens_ending ON access_tokens (expires_at) WHERE kind <> 'static';

CREATE TABLE passphrases (
    owner text COLLATE "C" PRIMARY KEY,
    salt bytea NOT NULL,
    hash bytea NOT NULL,
    n bigint NOT NULL,
    r bigint NOT NULL,
    p bigint NOT NULL,
    changed_at bigint NOT NULL
);

CREATE TABLE oauth_clients (
    id text COLLATE "C" PRIMARY KEY,
    name text NOT NULL,
    redirect_uris text NOT NULL,
    is_document smallint NOT NULL,
    created_at bigint NOT NULL,
    checked_at bigint NOT NULL
);

CREATE TABLE oauth_requests (
    handle_hash bytea PRIMARY KEY,
    client text NOT NULL,
    client_name text NOT NULL,
    redirect_uri text NOT NULL,
    is_redirect_explicit smallint NOT NULL,
    challenge text NOT NULL,
    permission text NOT NULL CHECK (permission IN ('read', 'write', 'admin')),
    resource text NOT NULL,
    state text,
    expires_at bigint NOT NULL,
    browser_hash bytea
);
CREATE INDEX oauth_requests_ending ON oauth_requests (expires_at);

-- ends_at is when the last of its tokens ends. So a consent of the past is found without a look at all of them.
CREATE TABLE oauth_grants (
    key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id text NOT NULL UNIQUE,
    owner text COLLATE "C" NOT NULL,
    client text NOT NULL,
    client_name text NOT NULL,
    permission text NOT NULL CHECK (permission IN ('read', 'write', 'admin')),
    resource text NOT NULL,
    created_at bigint NOT NULL,
    last_used_at bigint,
    revoked_at bigint,
    ends_at bigint NOT NULL DEFAULT 0
);
CREATE INDEX oauth_grants_by_owner ON oauth_grants (owner, key);
CREATE INDEX oauth_grants_by_client ON oauth_grants (client);
CREATE INDEX oauth_grants_ending ON oauth_grants (ends_at);

CREATE TABLE oauth_codes (
    code_hash bytea PRIMARY KEY,
    grant_id text NOT NULL REFERENCES oauth_grants (id) ON DELETE CASCADE,
    redirect_uri text NOT NULL,
    is_redirect_explicit smallint NOT NULL,
    challenge text NOT NULL,
    expires_at bigint NOT NULL,
    used_at bigint
);
CREATE INDEX oauth_codes_by_grant ON oauth_codes (grant_id);
CREATE INDEX oauth_codes_ending ON oauth_codes (expires_at);

CREATE TABLE access_attempts (
    subject text COLLATE "C" PRIMARY KEY,
    count bigint NOT NULL,
    since bigint NOT NULL,
    last_at bigint NOT NULL
);
CREATE INDEX access_attempts_last ON access_attempts (last_at DESC);
