"""Statements on graphs."""

from typing import Final

from kalito_mcp.domain.scope import DEFAULT_AGENT
from kalito_mcp.storage.graph_rows import EDGE_COLUMNS, NODE_COLUMNS
from kalito_mcp.storage.postgres.queries import within
from kalito_mcp.storage.postgres.sessions import SESSIONS_WITH_AGENTS

_AGENT_OR_DEFAULT: Final = f"coalesce(:agent, :limit_agent, '{DEFAULT_AGENT}')"
# An agent's graph is made of all its projects.
_AGENT_WITHIN: Final = "(:limit_agent IS NULL OR a.id = :limit_agent) AND :limit_project IS NULL"
_SESSION: Final = f"""
    s.owner_key = :owner AND s.id = :session AND (:agent IS NULL OR a.id = :agent) AND {within("s")}
"""
_AGENT: Final = f":session IS NULL AND a.owner_key = :owner AND a.id = {_AGENT_OR_DEFAULT} AND {_AGENT_WITHIN}"
_GRAPH_KEY: Final = f"""
    SELECT g.key FROM {SESSIONS_WITH_AGENTS}
    JOIN graphs g ON g.owner_key = :owner AND g.agent_key = s.agent_key AND g.session_key = s.key
    WHERE {_SESSION}
    UNION ALL
    SELECT g.key FROM agents a
    JOIN graphs g ON g.owner_key = :owner AND g.agent_key = a.key AND g.session_key IS NULL
    WHERE {_AGENT}
"""
_STATE_COLUMNS: Final = "key, revision, slept_at, embedder"
SELECT_GRAPH: Final = f"SELECT {_STATE_COLUMNS} FROM graphs WHERE owner_key = :owner AND key = ({_GRAPH_KEY})"
SELECT_NODE_KEYS: Final = """
SELECT key, id FROM graph_nodes WHERE owner_key = :owner AND graph_key = :graph_key ORDER BY id COLLATE "C"
"""
SELECT_KEYS_OF_NODES: Final = """
SELECT id, key FROM graph_nodes WHERE owner_key = :owner AND graph_key = :graph_key AND id = ANY(:ids)
"""
SELECT_NODES: Final = f"""
SELECT {NODE_COLUMNS} FROM graph_nodes n WHERE n.owner_key = :owner AND n.key = ANY(:keys) ORDER BY n.key
"""
SELECT_EDGES_FROM: Final = f"""
SELECT {EDGE_COLUMNS} FROM graph_edges e WHERE e.owner_key = :owner AND e.from_key = ANY(:keys)
"""
SELECT_IDLE_SESSIONS: Final = f"""
SELECT s.id FROM agents a
JOIN graphs g ON g.owner_key = :owner AND g.agent_key = a.key AND g.session_key IS NOT NULL
JOIN sessions s ON s.owner_key = :owner AND s.key = g.session_key
WHERE a.owner_key = :owner AND a.id = {_AGENT_OR_DEFAULT} AND s.state = 'FINALIZED'
    AND s.updated_at < :before_ms AND {within("s")}
ORDER BY s.updated_at, s.key LIMIT :limit
"""
# The newest write of the owner stands for all agents: finding that of one takes a walk over its sessions.
SELECT_DUE: Final = """
SELECT agent, session, slept_at FROM (
    SELECT a.id AS agent, s.id AS session, g.slept_at, s.updated_at, s.key
    FROM sessions s JOIN agents a ON a.owner_key = :owner AND a.key = s.agent_key
    LEFT JOIN graphs g ON g.owner_key = :owner AND g.agent_key = s.agent_key AND g.session_key = s.key
    WHERE s.owner_key = :owner AND s.updated_at >= :since_ms AND s.state = 'OPEN' AND s.newest_message_at >= :since_ms
        AND s.updated_at > coalesce(g.slept_at, 0) AND coalesce(g.slept_at, s.created_at) < :before_ms
    UNION ALL
    SELECT a.id, NULL, g.slept_at, NULL, NULL
    FROM agents a JOIN graphs g ON g.owner_key = :owner AND g.agent_key = a.key AND g.session_key IS NULL
    WHERE a.owner_key = :owner AND coalesce(g.slept_at, 0) < :before_ms
        AND coalesce(g.slept_at, 0) < (SELECT max(updated_at) FROM sessions WHERE owner_key = :owner)
) AS due
ORDER BY updated_at NULLS LAST, key LIMIT :limit
"""
INSERT_GRAPH: Final = f"""
INSERT INTO graphs (owner_key, agent_key, session_key)
SELECT :owner, s.agent_key, s.key FROM {SESSIONS_WITH_AGENTS} WHERE {_SESSION}
UNION ALL
SELECT :owner, a.key, NULL FROM agents a WHERE {_AGENT}
RETURNING key
"""
UPDATE_REVISION: Final = f"""
UPDATE graphs SET
    revision = revision + 1,
    removed_revision = CASE WHEN :removes::boolean THEN revision + 1 ELSE removed_revision END,
    embedder = :embedder
WHERE owner_key = :owner AND key = ({_GRAPH_KEY})
RETURNING {_STATE_COLUMNS}
"""
UPDATE_SLEPT_AT: Final = f"""
UPDATE graphs SET slept_at = :slept_at WHERE owner_key = :owner AND key = ({_GRAPH_KEY}) RETURNING key
"""
UPSERT_NODE: Final = """
INSERT INTO graph_nodes (
    owner_key, graph_key, id, type, text, canonical_key, summary, source_node_ids, source_record_ids, repeat, feedback,
    is_pinned, created_at, last_access, embedding, revision, hash
) VALUES (
    :owner, :graph_key, :id, :type, :text, :canonical_key, :summary, :source_node_ids, :source_record_ids, :repeat,
    :feedback, :is_pinned, :created_at, :last_access, :embedding, :revision, :hash
)
ON CONFLICT (owner_key, graph_key, id) DO UPDATE SET
    type = excluded.type, text = excluded.text, canonical_key = excluded.canonical_key, summary = excluded.summary,
    source_node_ids = excluded.source_node_ids, source_record_ids = excluded.source_record_ids,
    repeat = excluded.repeat, feedback = excluded.feedback, is_pinned = excluded.is_pinned,
    created_at = excluded.created_at, last_access = excluded.last_access, embedding = excluded.embedding,
    revision = excluded.revision, hash = excluded.hash
"""
UPSERT_EDGE: Final = """
INSERT INTO graph_edges (
    owner_key, from_key, type, to_key, graph_key, weight, created_at, last_access, revision, hash
) VALUES (:owner, :from_key, :type, :to_key, :graph_key, :weight, :created_at, :last_access, :revision, :hash)
ON CONFLICT (owner_key, from_key, type, to_key) DO UPDATE SET
    weight = excluded.weight, created_at = excluded.created_at, last_access = excluded.last_access,
    revision = excluded.revision, hash = excluded.hash
"""
SELECT_FEEDBACK: Final = """
SELECT 'msg_' || record_key, label, count FROM feedback WHERE owner_key = :owner AND record_key = ANY(:numbers)
"""
UPSERT_FEEDBACK: Final = """
INSERT INTO feedback (owner_key, record_key, label, count, last_at)
SELECT :owner, key, :label, 1, :at_ms FROM records
WHERE owner_key = :owner AND key = :number AND type = 'message' AND purged_at IS NULL
ON CONFLICT (owner_key, record_key, label)
DO UPDATE SET count = feedback.count + 1, last_at = greatest(feedback.last_at, excluded.last_at)
"""
DELETE_LAST_FEEDBACK: Final = """
DELETE FROM feedback WHERE owner_key = :owner AND record_key = :number AND label = :label AND count <= 1
"""
UPDATE_FEEDBACK: Final = """
UPDATE feedback SET count = count - 1 WHERE owner_key = :owner AND record_key = :number AND label = :label
"""
DELETE_EDGE: Final = """
DELETE FROM graph_edges
WHERE owner_key = :owner AND type = :type AND from_key = (
    SELECT key FROM graph_nodes WHERE owner_key = :owner AND graph_key = :graph_key AND id = :from_id
) AND to_key = (
    SELECT key FROM graph_nodes WHERE owner_key = :owner AND graph_key = :graph_key AND id = :to_id
)
"""
DELETE_NAMED_NODES: Final = """
DELETE FROM graph_nodes WHERE owner_key = :owner AND graph_key = :graph_key AND id = ANY(:ids)
"""
DELETE_NODES: Final = "DELETE FROM graph_nodes WHERE owner_key = :owner AND graph_key = :graph_key"
DELETE_GRAPH: Final = "DELETE FROM graphs WHERE owner_key = :owner AND key = :graph_key"
