"""Reads sessions and their counters; `session_changes` writes them."""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.sessions import Session, SessionCursor
from kalito_mcp.domain.sizes import PartSize
from kalito_mcp.storage.numbered import key_of
from kalito_mcp.storage.postgres.queries import Queries, limits_of, within
from kalito_mcp.storage.session_rows import sessions_of
from kalito_mcp.text.titles import FIRST_MESSAGES, READ_CHARS

SESSION_COLUMNS: Final = """
    s.key, (SELECT o.name FROM owners o WHERE o.key = s.owner_key), s.id, a.id, s.state, s.created_at, s.updated_at,
    s.model, s.message_count, s.summary_count, s.pin_count, s.importance_sum, s.summarized_seq, s.pinned_seq,
    s.observed_seq, s.stage, s.oldest_message_at, s.newest_message_at, s.revision, s.hidden_count,
    (SELECT p.id FROM projects p WHERE p.owner_key = s.owner_key AND p.key = s.project_key), s.is_placed
"""
SESSIONS_WITH_AGENTS: Final = "sessions s JOIN agents a ON a.owner_key = s.owner_key AND a.key = s.agent_key"
_BEYOND_ALL: Final = (1 << 63) - 1
"""A key that no session reaches."""
NEWEST: Final = SessionCursor((1 << 63) - 1, "")
SELECT_SESSION: Final = f"""
SELECT {SESSION_COLUMNS} FROM {SESSIONS_WITH_AGENTS}
WHERE s.owner_key = :owner AND s.id = :session AND (:agent IS NULL OR a.id = :agent) AND {within("s")}
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
ORDER BY s.key DESC LIMIT :limit
"""
# One that comes and one that goes would leave the count as it is, and two of each perhaps also the sum.
SELECT_CENSUS: Final = f"""
SELECT count(*)::double precision, coalesce(sum(s.key::double precision), 0),
    coalesce(sum(s.key::double precision * s.key), 0)
FROM {SESSIONS_WITH_AGENTS}
WHERE s.owner_key = :owner AND (:agent IS NULL OR a.id = :agent) AND {IN_SCOPE}
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
    count(DISTINCT r.source) FILTER (WHERE r.type = 'document' AND NOT starts_with(r.source, 'note:'))
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


class SessionQueries(Queries):
    """`ports.sessions.SessionReader`."""

    async def get(self, scope: Scope) -> Session | None:
        parameters = {"owner": scope.owner, "agent": scope.agent, "session": scope.session}
        return next(sessions_of(await self._all(SELECT_SESSION, **parameters, **limits_of(scope))), None)

    async def list_recent(
        self, scope: Scope, *, prefix: str = "", limit: int, before: SessionCursor | None = None
    ) -> Sequence[Session]:
        place = before or NEWEST
        rows = await self._all(
            SELECT_RECENT_SESSIONS,
            owner=scope.owner,
            agent=scope.agent,
            prefix=prefix,
            limit=limit,
            project=scope.project,
            said_at=place.said_at,
            before=place.session_id,
            **limits_of(scope),
        )
        return list(sessions_of(rows))

    async def list_begun(self, scope: Scope, *, before: Session | None, limit: int) -> Sequence[Session]:
        parameters = {"owner": scope.owner, "agent": scope.agent, "project": scope.project, "limit": limit}
        parameters |= limits_of(scope)
        key = _BEYOND_ALL if before is None else key_of(before)
        return list(sessions_of(await self._all(SELECT_SESSIONS_BEGUN, **parameters, before_key=key)))

    async def first_texts(self, scope: Scope, session_ids: Sequence[str]) -> Mapping[str, Sequence[str]]:
        found: dict[str, list[str]] = {}
        parameters = {"owner": scope.owner, "project": scope.project, **limits_of(scope)}
        parts = {"ids": list(session_ids), "messages": FIRST_MESSAGES, "chars": READ_CHARS}
        for session_id, text in await self._all(SELECT_FIRST_TEXTS, **parts, **parameters):
            found.setdefault(session_id, []).append(text)
        return found

    async def census(self, scope: Scope) -> tuple[float, ...]:
        parameters = {"owner": scope.owner, "agent": scope.agent, "project": scope.project, **limits_of(scope)}
        [counted] = await self._all(SELECT_CENSUS, **parameters)
        return tuple(counted)

    async def agents(self, scope: Scope, *, limit: int) -> Sequence[str]:
        found = await self._all(SELECT_AGENTS, owner=scope.owner, limit=limit, **limits_of(scope))
        return [agent for [agent] in found]

    async def projects(self, scope: Scope, *, limit: int) -> Sequence[tuple[str, int]]:
        found = await self._all(SELECT_PROJECTS, owner=scope.owner, limit=limit, **limits_of(scope))
        return [(project, sessions) for project, sessions in found]

    async def sizes(self, scope: Scope) -> Sequence[PartSize]:
        parameters = {"owner": scope.owner, **limits_of(scope)}
        records = {
            (agent, project): count for agent, project, count in await self._all(SELECT_RECORD_SIZES, **parameters)
        }
        found = [
            PartSize(agent, project, sessions, messages, records.pop((agent, project), 0), newest_at)
            for agent, project, sessions, messages, newest_at in await self._all(SELECT_SESSION_SIZES, **parameters)
        ]
        return [*found, *(PartSize(agent, project, records=count) for (agent, project), count in records.items())]

    async def totals(self, scope: Scope) -> dict[str, int]:
        [of_sessions] = await self._all(SELECT_TOTALS, owner=scope.owner, **limits_of(scope))
        [others] = await self._all(SELECT_OTHER_TOTALS, owner=scope.owner, **limits_of(scope))
        names = ("sessions", "messages", "pins", "summaries", "notes", "tasks", "documents")
        return {name: int(count) for name, count in zip(names, (*of_sessions, *others), strict=True)}

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
