"""Statements on graphs."""

from typing import Final

from kalito_mcp.domain.scope import DEFAULT_AGENT
from kalito_mcp.storage.graph_rows import EDGE_COLUMNS, NODE_COLUMNS
from kalito_mcp.storage.sqlite.queries import owned, within

_AGENT_OR_DEFAULT: Final = f"coalesce(:agent, :limit_agent, '{DEFAULT_AGENT}')"
# An agent's graph is made of all its projects.
_AGENT_WITHIN: Final = "(:limit_agent IS NULL OR a.id = :limit_agent) AND :limit_project IS NULL"
_GRAPH_KEY: Final = f"""
    SELECT g.key FROM sessions s JOIN agents a ON a.key = s.agent_key
    JOIN graphs g ON g.agent_key = s.agent_key AND g.session_key = s.key
    WHERE s.owner = :owner AND s.id = :session AND (:agent IS NULL OR a.id = :agent) AND {within("s")}
    UNION ALL
    SELECT g.key FROM agents a JOIN graphs g ON g.agent_key = a.key AND g.session_key IS NULL
    WHERE :session IS NULL AND a.owner = :owner AND a.id = {_AGENT_OR_DEFAULT} AND {_AGENT_WITHIN}
"""
_STATE_COLUMNS: Final = "key, revision, slept_at, embedder"
SELECT_GRAPH: Final = f"SELECT {_STATE_COLUMNS} FROM graphs WHERE key = ({_GRAPH_KEY})"
SELECT_NODE_KEYS: Final = "SELECT n.key, n.id FROM graph_nodes n WHERE n.graph_key = :graph_key ORDER BY n.id"
SELECT_KEYS_OF_NODES: Final = """
SELECT id, key FROM graph_nodes WHERE graph_key = :graph_key AND id IN (SELECT value FROM json_each(:ids))
"""
SELECT_NODES: Final = f"""
SELECT {NODE_COLUMNS} FROM graph_nodes n WHERE n.key IN (SELECT value FROM json_each(:keys)) ORDER BY n.key
"""
SELECT_EDGES_FROM: Final = f"""
SELECT {EDGE_COLUMNS} FROM graph_edges e WHERE e.from_key IN (SELECT value FROM json_each(:keys))
"""
SELECT_IDLE_SESSIONS: Final = f"""
SELECT s.id FROM agents a JOIN graphs g ON g.agent_key = a.key AND g.session_key IS NOT NULL
JOIN sessions s ON s.key = g.session_key
WHERE a.owner = :owner AND a.id = {_AGENT_OR_DEFAULT} AND s.state = 'FINALIZED' AND s.updated_at < :before_ms
    AND {within("s")}
ORDER BY s.updated_at, s.key LIMIT :limit
"""
# The newest write of the owner stands for all agents: finding that of one takes a walk over its sessions.
SELECT_DUE: Final = """
SELECT agent, session, slept_at FROM (
    SELECT a.id AS agent, s.id AS session, g.slept_at, s.updated_at, s.key
    FROM sessions s JOIN agents a ON a.key = s.agent_key
    LEFT JOIN graphs g ON g.agent_key = s.agent_key AND g.session_key = s.key
    WHERE s.owner = :owner AND s.updated_at >= :since_ms AND s.state = 'OPEN' AND s.newest_message_at >= :since_ms
        AND s.updated_at > coalesce(g.slept_at, 0) AND coalesce(g.slept_at, s.created_at) < :before_ms
    UNION ALL
    SELECT a.id, NULL, g.slept_at, NULL, NULL
    FROM agents a JOIN graphs g ON g.agent_key = a.key AND g.session_key IS NULL
    WHERE a.owner = :owner AND coalesce(g.slept_at, 0) < :before_ms
        AND coalesce(g.slept_at, 0) < (SELECT max(updated_at) FROM sessions WHERE owner = :owner)
) AS due
ORDER BY updated_at NULLS LAST, key LIMIT :limit
"""
INSERT_GRAPH: Final = f"""
INSERT INTO graphs (agent_key, session_key)
SELECT s.agent_key, s.key FROM sessions s JOIN agents a ON a.key = s.agent_key
WHERE s.owner = :owner AND s.id = :session AND (:agent IS NULL OR a.id = :agent) AND {within("s")}
UNION ALL
SELECT a.key, NULL FROM agents a
WHERE :session IS NULL AND a.owner = :owner AND a.id = {_AGENT_OR_DEFAULT} AND {_AGENT_WITHIN}
RETURNING key
"""
UPDATE_REVISION: Final = f"""
UPDATE graphs SET
    revision = revision + 1,
    removed_revision = CASE WHEN :removes THEN revision + 1 ELSE removed_revision END,
    embedder = :embedder
WHERE key = ({_GRAPH_KEY})
RETURNING {_STATE_COLUMNS}
"""
UPDATE_SLEPT_AT: Final = f"UPDATE graphs SET slept_at = :slept_at WHERE key = ({_GRAPH_KEY}) RETURNING key"
UPSERT_NODE: Final = """
INSERT INTO graph_nodes (
    graph_key, id, type, text, canonical_key, summary, source_node_ids, source_record_ids, repeat, feedback, is_pinned,
    created_at, last_access, embedding, revision, hash
) VALUES (
    :graph_key, :id, :type, :text, :canonical_key, :summary, :source_node_ids, :source_record_ids, :repeat, :feedback,
    :is_pinned, :created_at, :last_access, :embedding, :revision, :hash
)
ON CONFLICT (graph_key, id) DO UPDATE SET
    type = excluded.type, text = excluded.text, canonical_key = excluded.canonical_key, summary = excluded.summary,
    source_node_ids = excluded.source_node_ids, source_record_ids = excluded.source_record_ids,
    repeat = excluded.repeat, feedback = excluded.feedback, is_pinned = excluded.is_pinned,
    created_at = excluded.created_at, last_access = excluded.last_access, embedding = excluded.embedding,
    revision = excluded.revision, hash = excluded.hash
"""
UPSERT_EDGE: Final = """
INSERT INTO graph_edges (from_key, type, to_key, graph_key, weight, created_at, last_access, revision, hash)
VALUES (:from_key, :type, :to_key, :graph_key, :weight, :created_at, :last_access, :revision, :hash)
ON CONFLICT (from_key, type, to_key) DO UPDATE SET
    weight = excluded.weight, created_at = excluded.created_at, last_access = excluded.last_access,
    revision = excluded.revision, hash = excluded.hash
"""
_OF_OWNED: Final = f"EXISTS (SELECT 1 FROM records r WHERE r.key = feedback.record_key AND {owned('r')})"
SELECT_FEEDBACK: Final = f"""
SELECT 'msg_' || record_key, label, count FROM feedback
WHERE record_key IN (SELECT value FROM json_each(:numbers)) AND {_OF_OWNED}
"""
UPSERT_FEEDBACK: Final = f"""
INSERT INTO feedback (record_key, label, count, last_at)
SELECT key, :label, 1, :at_ms FROM records
WHERE key = :number AND type = 'message' AND purged_at IS NULL AND {owned("records")}
ON CONFLICT (record_key, label) DO UPDATE SET count = count + 1, last_at = max(last_at, excluded.last_at)
"""
UPDATE_FEEDBACK: Final = f"""
UPDATE feedback SET count = count - 1 WHERE record_key = :number AND label = :label AND {_OF_OWNED}
"""
DELETE_LAST_FEEDBACK: Final = f"""
DELETE FROM feedback WHERE record_key = :number AND label = :label AND count <= 1 AND {_OF_OWNED}
"""
DELETE_NAMED_NODES: Final = """
DELETE FROM graph_nodes WHERE graph_key = :graph_key AND id IN (SELECT value FROM json_each(:ids))
"""
DELETE_EDGE: Final = """
DELETE FROM graph_edges
WHERE from_key = (SELECT key FROM graph_nodes WHERE graph_key = :graph_key AND id = :from_id) AND type = :type
    AND to_key = (SELECT key FROM graph_nodes WHERE graph_key = :graph_key AND id = :to_id)
"""
DELETE_NODES: Final = "DELETE FROM graph_nodes WHERE graph_key = :graph_key"
DELETE_GRAPH: Final = "DELETE FROM graphs WHERE key = :graph_key"
