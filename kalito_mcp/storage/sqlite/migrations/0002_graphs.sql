-- Canonical: graphs, graph_nodes, graph_edges.

-- Messages up to observed_seq are in the graph. Those of an older release are in none: they are owed.
ALTER TABLE sessions ADD COLUMN observed_seq INTEGER NOT NULL DEFAULT 0;
-- How far finalize_session has come.
ALTER TABLE sessions ADD COLUMN stage TEXT CHECK (
    stage IS NULL OR stage = 'summaries' OR stage = 'sleep' OR stage = 'promotion' OR stage = 'checkpoint'
);
CREATE INDEX sessions_unobserved ON sessions (key) WHERE message_count > observed_seq;

-- One for each session, and one for each agent: session_key NULL. A key is never used again: AUTOINCREMENT.
-- removed_revision was the last revision that removed something.
CREATE TABLE graphs (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    agent_key INTEGER NOT NULL REFERENCES agents (key),
    session_key INTEGER REFERENCES sessions (key),
    revision INTEGER NOT NULL DEFAULT 0,
    removed_revision INTEGER NOT NULL DEFAULT 0,
    slept_at INTEGER,
    embedder TEXT
) STRICT;

CREATE UNIQUE INDEX graphs_of_agents ON graphs (agent_key) WHERE session_key IS NULL;
CREATE UNIQUE INDEX graphs_of_sessions ON graphs (agent_key, session_key) WHERE session_key IS NOT NULL;

-- Both lists of ids are JSON, NULL where empty. embedding is packed by sparse_vectors.py.
CREATE TABLE graph_nodes (
    key INTEGER PRIMARY KEY,
    graph_key INTEGER NOT NULL REFERENCES graphs (key),
    id TEXT NOT NULL,
    type TEXT NOT NULL CHECK (type = 'query' OR type = 'answer' OR type = 'feedback' OR type = 'entity'),
    text TEXT,
    canonical_key TEXT,
    summary TEXT,
    source_node_ids TEXT,
    source_record_ids TEXT,
    repeat REAL NOT NULL,
    feedback REAL NOT NULL,
    is_pinned INTEGER NOT NULL CHECK (is_pinned = 0 OR is_pinned = 1),
    created_at INTEGER NOT NULL,
    last_access INTEGER NOT NULL,
    embedding BLOB,
    revision INTEGER NOT NULL,
    hash BLOB NOT NULL
) STRICT;

CREATE UNIQUE INDEX graph_nodes_ids ON graph_nodes (graph_key, id);
CREATE INDEX graph_nodes_changed ON graph_nodes (graph_key, revision);

-- Ends are keys, not ids: a third of the size, and a removed node takes its edges along.
CREATE TABLE graph_edges (
    from_key INTEGER NOT NULL REFERENCES graph_nodes (key) ON DELETE CASCADE,
    type TEXT NOT NULL CHECK (
        type = 'similar_to' OR type = 'responded_with' OR type = 'has_feedback' OR type = 'refers_to_entity'
    ),
    to_key INTEGER NOT NULL REFERENCES graph_nodes (key) ON DELETE CASCADE,
    graph_key INTEGER NOT NULL,
    weight REAL NOT NULL,
    created_at INTEGER NOT NULL,
    last_access INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    hash BLOB NOT NULL,
    PRIMARY KEY (from_key, type, to_key)
) STRICT, WITHOUT ROWID;

CREATE INDEX graph_edges_to ON graph_edges (to_key);
CREATE INDEX graph_edges_changed ON graph_edges (graph_key, revision);
