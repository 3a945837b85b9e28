"""Statements that read sessions, and which of them are owed work."""

from collections.abc import Collection, Sequence
from typing import Final

from kalito_mcp.domain.sessions import Session
from kalito_mcp.storage import sessions
from kalito_mcp.storage.numbered import key_of
from kalito_mcp.storage.postgres.queries import within
from kalito_mcp.storage.sessions import IS_SHOWN, sessions_of

SESSION_COLUMNS: Final = """
    s.key, (SELECT o.name FROM owners o WHERE o.key = s.owner_key), s.id, a.id, s.state, s.created_at, s.updated_at,
    s.model, s.message_count, s.summary_count, s.pin_count, s.importance_sum, s.summarized_seq, s.pinned_seq,
    s.observed_seq, s.stage, s.oldest_message_at, s.newest_message_at, s.revision, s.hidden_count,
    (SELECT p.id FROM projects p WHERE p.owner_key = s.owner_key AND p.key = s.project_key), s.is_placed
"""
SESSIONS_WITH_AGENTS: Final = "sessions s JOIN agents a ON a.owner_key = s.owner_key AND a.key = s.agent_key"
# The limits are compared with what is joined: with a subquery for each, a plan for all values looks more expensive than
# one for these, and PostgreSQL plans each time, for 0.2 ms.
SELECT_SESSION: Final = f"""
SELECT {SESSION_COLUMNS} FROM {SESSIONS_WITH_AGENTS}
    LEFT JOIN projects q ON q.owner_key = :owner AND q.key = s.project_key
WHERE s.owner_key = :owner AND s.id = :session AND (:agent IS NULL OR a.id = :agent)
    AND (:limit_agent IS NULL OR a.id = :limit_agent)
    AND (:limit_project IS NULL OR s.project_key IS NULL OR q.id = :limit_project)
"""
SELECT_SESSIONS_NAMED: Final = f"""
SELECT {SESSION_COLUMNS} FROM {SESSIONS_WITH_AGENTS}
WHERE s.owner_key = :owner AND s.id = ANY(:ids) AND (:agent IS NULL OR a.id = :agent) AND {within("s")}
"""
IN_SCOPE: Final = f"""(:project IS NULL OR s.project_key IS NULL OR s.project_key = (
        SELECT key FROM projects WHERE owner_key = :owner AND id = :project
    )) AND {within("s")}"""
SELECT_RECENT_SESSIONS: Final = f"""
SELECT {SESSION_COLUMNS} FROM {SESSIONS_WITH_AGENTS}
WHERE s.owner_key = :owner AND (:agent IS NULL OR a.id = :agent) AND starts_with(s.id, :prefix)
    AND {IN_SCOPE} AND (s.said_at, s.key) < (
        :said_at, (SELECT coalesce(max(key), 0) FROM sessions WHERE owner_key = :owner AND id = :before)
    )
    AND (:has_forgotten OR {IS_SHOWN})
ORDER BY s.said_at DESC, s.key DESC LIMIT :limit
"""
SELECT_FIRST_TEXTS: Final = f"""
SELECT s.id, substr(r.text, 1, :chars)
FROM sessions s JOIN records r ON r.owner_key = :owner AND r.session_key = s.key AND r.type = 'message'
    AND r.seq <= :messages
WHERE s.owner_key = :owner AND s.id = ANY(:ids) AND r.role = 'user' AND r.origin IS NULL AND r.deleted_at IS NULL
    AND r.is_internal = 0 AND {IN_SCOPE}
ORDER BY s.key, r.seq
"""
SELECT_SESSIONS_BEGUN: Final = f"""
SELECT {SESSION_COLUMNS} FROM {SESSIONS_WITH_AGENTS}
WHERE s.owner_key = :owner AND s.key < :before_key AND (:agent IS NULL OR a.id = :agent) AND {IN_SCOPE}
    AND (:has_forgotten OR {IS_SHOWN})
ORDER BY s.key DESC LIMIT :limit
"""
# One that comes and one that goes would leave the count as it is, and two of each perhaps also the sum.
SELECT_CENSUS: Final = f"""
SELECT count(*)::double precision, coalesce(sum(s.key::double precision), 0),
    coalesce(sum(s.key::double precision * s.key), 0)
FROM {SESSIONS_WITH_AGENTS}
WHERE s.owner_key = :owner AND (:agent IS NULL OR a.id = :agent) AND {IN_SCOPE} AND {IS_SHOWN}
"""
SELECT_OWNERS_OWING: Final = """
SELECT key, name FROM owners WHERE owes AND key >= :after_key AND (:names::text[] IS NULL OR name = ANY(:names))
ORDER BY key
"""
SELECT_OWNER_KEY: Final = "SELECT key FROM owners WHERE name = :name"
SELECT_OWING_SESSIONS: Final = f"""
SELECT {SESSION_COLUMNS} FROM {SESSIONS_WITH_AGENTS}
WHERE s.owner_key = :owner AND s.key > :after_key AND s.state = 'OPEN' AND (
    (s.message_count > s.summarized_seq AND s.message_count - s.summarized_seq >= :threshold)
    OR s.message_count > s.pinned_seq
    OR s.key IN (
        SELECT session_key FROM records WHERE owner_key = :owner AND type = 'summary' AND is_covered = 0
        GROUP BY session_key, level HAVING count(*) > :max_summaries
    )
)
ORDER BY s.key LIMIT :limit
"""
# An agent or a project without anything within the limits does not exist there. An agent may be older than what is
# of it within a limit to a project, and its place among others would show that: there they are listed by name.
SELECT_AGENTS: Final = """
SELECT a.id FROM agents a
WHERE a.owner_key = :owner AND (:limit_agent IS NULL OR a.id = :limit_agent) AND (:limit_project IS NULL OR EXISTS (
    SELECT 1 FROM records r
    WHERE r.owner_key = :owner AND r.agent_key = a.key AND (r.project_key IS NULL OR r.project_key = (
        SELECT key FROM projects WHERE owner_key = :owner AND id = :limit_project
    ))
))
ORDER BY CASE WHEN :limit_project IS NULL THEN -a.key END, a.id LIMIT :limit
"""
SELECT_TOTALS: Final = f"""
SELECT count(*), coalesce(sum(s.message_count - s.hidden_count), 0), coalesce(sum(s.pin_count), 0),
    coalesce(sum(s.summary_count), 0)
FROM sessions s WHERE s.owner_key = :owner AND {within("s")}
"""
# A document has a row for each part, and a note is one whose source begins with "note:".
SELECT_OTHER_TOTALS: Final = f"""
SELECT count(DISTINCT r.source) FILTER (WHERE r.type = 'document' AND starts_with(r.source, 'note:')),
    count(*) FILTER (WHERE r.type = 'task'),
    count(DISTINCT r.source) FILTER (WHERE r.type = 'document' AND NOT starts_with(r.source, 'note:')),
    count(DISTINCT r.source) FILTER (WHERE starts_with(r.source, 'note:') AND r.reach IS NOT NULL)
FROM agents a JOIN records r ON r.owner_key = :owner AND r.agent_key = a.key
WHERE a.owner_key = :owner AND r.type IN ('document', 'task') AND r.id IS NOT NULL AND r.deleted_at IS NULL
    AND {within("r")}
"""
SELECT_SESSION_SIZES: Final = f"""
SELECT a.id, p.id, count(*), sum(s.message_count - s.hidden_count)::bigint, max(s.updated_at)
FROM {SESSIONS_WITH_AGENTS} LEFT JOIN projects p ON p.owner_key = s.owner_key AND p.key = s.project_key
WHERE s.owner_key = :owner AND {within("s")} GROUP BY a.id, p.id
"""
SELECT_RECORD_SIZES: Final = f"""
SELECT a.id, p.id, count(*)
FROM agents a JOIN records r ON r.owner_key = :owner AND r.agent_key = a.key
    LEFT JOIN projects p ON p.owner_key = r.owner_key AND p.key = r.project_key
WHERE a.owner_key = :owner AND r.type IN ('document', 'task', 'thought') AND r.id IS NOT NULL
    AND r.deleted_at IS NULL AND r.session_key IS NULL AND {within("r")}
GROUP BY a.id, p.id
"""
_LIMIT_AGENT: Final = "(SELECT key FROM agents WHERE owner_key = :owner AND id = :limit_agent)"
SELECT_PROJECTS: Final = f"""
SELECT p.id, (
    SELECT count(*) FROM sessions s
    WHERE s.owner_key = :owner AND s.project_key = p.key
        AND (:limit_agent IS NULL OR s.agent_key = {_LIMIT_AGENT})
) FROM projects p
WHERE p.owner_key = :owner AND (:limit_project IS NULL OR p.id = :limit_project)
    AND (:limit_agent IS NULL OR EXISTS (
        SELECT 1 FROM records r
        WHERE r.owner_key = :owner AND r.project_key = p.key AND r.agent_key = {_LIMIT_AGENT}
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
        first, after_key = 0, 0
        if after is not None:
            [[first]] = await self._all(SELECT_OWNER_KEY, name=after.owner)
            after_key = key_of(after)
        parameters = {"threshold": threshold, "max_summaries": max_summaries}
        found: list[Session] = []
        names = None if owners is None else list(owners)
        for owner_key, owner in await self._all(SELECT_OWNERS_OWING, after_key=first, names=names):
            rows = await self._all(
                SELECT_OWING_SESSIONS,
                owner=owner,
                after_key=after_key if owner_key == first else 0,
                limit=limit - len(found),
                **parameters,
            )
            found += sessions_of(rows)
            if len(found) >= limit:
                break
        return found
