"""Statements that read sessions, and which of them are owed work."""

import json
from collections.abc import Collection, Sequence
from typing import Final

from kalito_mcp.domain.sessions import Session
from kalito_mcp.storage import sessions
from kalito_mcp.storage.numbered import key_of
from kalito_mcp.storage.sessions import IS_SHOWN, sessions_of
from kalito_mcp.storage.sqlite.queries import within

SESSION_COLUMNS: Final = """
    s.key, s.owner, s.id, a.id, s.state, s.created_at, s.updated_at, s.model, s.message_count, s.summary_count,
    s.pin_count, s.importance_sum, s.summarized_seq, s.pinned_seq, s.observed_seq, s.stage, s.oldest_message_at,
    s.newest_message_at, s.revision, s.hidden_count, (SELECT p.id FROM projects p WHERE p.key = s.project_key),
    s.is_placed
"""
SELECT_SESSION: Final = f"""
SELECT {SESSION_COLUMNS} FROM sessions s JOIN agents a ON a.key = s.agent_key
WHERE s.owner = :owner AND s.id = :session AND (:agent IS NULL OR a.id = :agent) AND {within("s")}
"""
SELECT_SESSIONS_NAMED: Final = f"""
SELECT {SESSION_COLUMNS} FROM json_each(:ids) named
CROSS JOIN sessions s ON s.owner = :owner AND s.id = named.value JOIN agents a ON a.key = s.agent_key
WHERE (:agent IS NULL OR a.id = :agent) AND {within("s")}
"""
_IN_SCOPE: Final = f"""(:project IS NULL OR s.project_key IS NULL OR s.project_key = (
        SELECT key FROM projects WHERE owner = :owner AND id = :project
    )) AND {within("s")}"""
SELECT_RECENT_SESSIONS: Final = f"""
SELECT {SESSION_COLUMNS} FROM sessions s INDEXED BY sessions_said JOIN agents a ON a.key = s.agent_key
WHERE s.owner = :owner AND (:agent IS NULL OR a.id = :agent) AND substr(s.id, 1, length(:prefix)) = :prefix
    AND {_IN_SCOPE} AND (coalesce(s.newest_message_at, s.updated_at), s.key) < (
        :said_at, coalesce((SELECT key FROM sessions WHERE owner = :owner AND id = :before), 0)
    )
    AND (:has_forgotten OR {IS_SHOWN})
ORDER BY coalesce(s.newest_message_at, s.updated_at) DESC, s.key DESC LIMIT :limit
"""
SELECT_FIRST_TEXTS: Final = f"""
SELECT s.id, substr(r.text, 1, :chars) FROM json_each(:ids) named
CROSS JOIN sessions s ON s.owner = :owner AND s.id = named.value
CROSS JOIN records r ON r.session_key = s.key AND r.type = 'message' AND r.seq <= :messages
WHERE r.role = 'user' AND r.origin IS NULL AND r.deleted_at IS NULL AND r.is_internal = 0 AND {_IN_SCOPE}
ORDER BY s.key, r.seq
"""
# By key, from the newest down to the last of the page: an index by owner would have to be sorted for every page.
SELECT_SESSIONS_BEGUN: Final = f"""
SELECT {SESSION_COLUMNS} FROM sessions s NOT INDEXED CROSS JOIN agents a ON a.key = s.agent_key
WHERE s.key < :before_key AND s.owner = :owner AND (:agent IS NULL OR a.id = :agent) AND {_IN_SCOPE}
    AND (:has_forgotten OR {IS_SHOWN})
ORDER BY s.key DESC LIMIT :limit
"""
# One that comes and one that goes would leave the count as it is, and two of each perhaps also the sum.
SELECT_CENSUS: Final = f"""
SELECT count(*), total(s.key), total(s.key * s.key) FROM sessions s JOIN agents a ON a.key = s.agent_key
WHERE s.owner = :owner AND (:agent IS NULL OR a.id = :agent) AND {_IN_SCOPE} AND {IS_SHOWN}
"""
SELECT_OWING_SESSIONS: Final = f"""
SELECT {SESSION_COLUMNS} FROM sessions s JOIN agents a ON a.key = s.agent_key
WHERE s.key > :after_key AND s.state = 'OPEN'
    AND (:owners IS NULL OR s.owner IN (SELECT value FROM json_each(:owners))) AND s.key IN (
    SELECT key FROM sessions
    WHERE message_count > summarized_seq AND message_count - summarized_seq >= :threshold
    UNION
    SELECT key FROM sessions WHERE message_count > pinned_seq
    UNION
    SELECT session_key FROM records INDEXED BY records_uncovered WHERE type = 'summary' AND is_covered = 0
    GROUP BY session_key, level HAVING count(*) > :max_summaries
)
ORDER BY s.key LIMIT :limit
"""
# An agent or a project without anything within the limits does not exist there. An agent may be older than what is
# of it within a limit to a project, and its place among others would show that: there they are listed by name.
SELECT_AGENTS: Final = """
SELECT a.id FROM agents a
WHERE a.owner = :owner AND (:limit_agent IS NULL OR a.id = :limit_agent) AND (:limit_project IS NULL OR EXISTS (
    SELECT 1 FROM records r INDEXED BY records_columns
    WHERE r.agent_key = a.key AND (r.project_key IS NULL OR r.project_key = (
        SELECT key FROM projects WHERE owner = :owner AND id = :limit_project
    ))
))
ORDER BY CASE WHEN :limit_project IS NULL THEN -a.key END, a.id LIMIT :limit
"""
SELECT_TOTALS: Final = f"""
SELECT count(*), total(s.message_count - s.hidden_count), total(s.pin_count), total(s.summary_count) FROM sessions s
WHERE s.owner = :owner AND {within("s")}
"""
# The index has no message. A document has a row for each part, and a note is one whose source begins with "note:".
SELECT_OTHER_TOTALS: Final = f"""
SELECT count(DISTINCT CASE WHEN r.type = 'document' AND r.source LIKE 'note:%' THEN r.source END),
    count(CASE WHEN r.type = 'task' THEN 1 END),
    count(DISTINCT CASE WHEN r.type = 'document' AND r.source NOT LIKE 'note:%' THEN r.source END),
    count(DISTINCT CASE WHEN r.source LIKE 'note:%' AND r.reach IS NOT NULL THEN r.source END)
FROM records r INDEXED BY records_of_types
WHERE r.agent_key IN (SELECT key FROM agents WHERE owner = :owner) AND r.type IN ('document', 'task')
    AND r.id IS NOT NULL AND r.deleted_at IS NULL AND {within("r")}
"""
SELECT_SESSION_SIZES: Final = f"""
SELECT a.id, p.id, count(*), sum(s.message_count - s.hidden_count), max(s.updated_at)
FROM sessions s JOIN agents a ON a.key = s.agent_key LEFT JOIN projects p ON p.key = s.project_key
WHERE s.owner = :owner AND {within("s")} GROUP BY s.agent_key, s.project_key
"""
SELECT_RECORD_SIZES: Final = f"""
SELECT a.id, p.id, c.records FROM (
    SELECT r.agent_key AS agent_key, r.project_key AS project_key, count(*) AS records
    FROM records r INDEXED BY records_of_types
    WHERE r.agent_key IN (SELECT key FROM agents WHERE owner = :owner) AND r.type IN ('document', 'task', 'thought')
        AND r.id IS NOT NULL AND r.deleted_at IS NULL AND r.session_key IS NULL AND {within("r")}
    GROUP BY r.agent_key, r.project_key
) c JOIN agents a ON a.key = c.agent_key LEFT JOIN projects p ON p.key = c.project_key
"""
_LIMIT_AGENT: Final = "(SELECT key FROM agents WHERE owner = :owner AND id = :limit_agent)"
SELECT_PROJECTS: Final = f"""
SELECT p.id, (
    SELECT count(*) FROM sessions s
    WHERE s.project_key = p.key AND (:limit_agent IS NULL OR s.agent_key = {_LIMIT_AGENT})
) FROM projects p
WHERE p.owner = :owner AND (:limit_project IS NULL OR p.id = :limit_project) AND (:limit_agent IS NULL OR EXISTS (
    SELECT 1 FROM records r INDEXED BY records_columns WHERE r.agent_key = {_LIMIT_AGENT} AND r.project_key = p.key
))
ORDER BY p.key DESC LIMIT :limit
"""


class SessionQueries(sessions.SessionQueries):
    """`ports.sessions.SessionReader`."""

    async def list_owing(
        self,
        *,
        threshold: int,
        max_summaries: int,
        after: Session | None,
        limit: int,
        owners: Collection[str] | None = None,
    ) -> Sequence[Session]:
        parameters: dict[str, object] = {"threshold": threshold, "max_summaries": max_summaries, "limit": limit}
        parameters["after_key"] = 0 if after is None else key_of(after)
        parameters["owners"] = None if owners is None else json.dumps(list(owners))
        return list(sessions_of(await self._all(SELECT_OWING_SESSIONS, **parameters)))
