"""Statements that change sessions."""

from typing import Final

from kalito_mcp.storage import sessions
from kalito_mcp.storage.postgres.sessions import SessionQueries

INSERT_AGENT: Final = "INSERT INTO agents (owner_key, id) VALUES (:owner, :agent) ON CONFLICT DO NOTHING"
INSERT_PROJECT: Final = "INSERT INTO projects (owner_key, id) VALUES (:owner, :project) ON CONFLICT DO NOTHING"
PROJECT_KEY: Final = "(SELECT key FROM projects WHERE owner_key = :owner AND id = :project)"
INSERT_SESSION: Final = f"""
INSERT INTO sessions (owner_key, id, agent_key, project_key, is_placed, created_at, updated_at)
SELECT :owner, :session, key, {PROJECT_KEY}, 1, :now_ms, :now_ms FROM agents
WHERE owner_key = :owner AND id = :agent
"""
UPDATE_PROJECT_OF_SESSION: Final = f"""
UPDATE sessions SET project_key = {PROJECT_KEY}, is_placed = 1, revision = revision + 1
WHERE owner_key = :owner AND key = :key
"""
# What is the person's stays in every project.
UPDATE_PROJECT_OF_RECORDS: Final = f"""
UPDATE records SET project_key = {PROJECT_KEY}
WHERE owner_key = :owner AND session_key = :key AND reach IS DISTINCT FROM 'person'
"""
UPDATE_STATE: Final = """
UPDATE sessions SET state = :state, updated_at = :now_ms, revision = revision + 1
WHERE owner_key = :owner AND key = :key
"""
UPDATE_PINNED_SEQ: Final = """
UPDATE sessions SET pinned_seq = :seq
WHERE owner_key = :owner AND key = :key AND pinned_seq = :searched AND state <> 'FINALIZED'
RETURNING key
"""
UPDATE_OBSERVED_SEQ: Final = """
UPDATE sessions SET observed_seq = greatest(observed_seq, :seq) WHERE owner_key = :owner AND key = :key
"""
UPDATE_STAGE: Final = "UPDATE sessions SET stage = :stage WHERE owner_key = :owner AND key = :key"


class SessionStatements(sessions.SessionStatements, SessionQueries):
    """`ports.sessions.SessionWriter`."""
