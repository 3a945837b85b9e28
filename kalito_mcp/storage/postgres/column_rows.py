"""Reads what a search keeps of an agent's records in memory: all of it, or what has changed since a revision."""

from collections.abc import Mapping
from operator import itemgetter
from typing import Any, Final, NamedTuple

from kalito_mcp.domain.scope import DEFAULT_AGENT, Scope
from kalito_mcp.storage.packed_columns import packed
from kalito_mcp.storage.postgres.queries import Queries, within
from kalito_mcp.storage.queries import limits_of

_MOST_CHANGES: Final = 5_000
"""Changed records that are read as such. If there are more, all records are read."""


def _packed(word_count: str) -> str:
    return packed(is_shown="(r.deleted_at IS NULL)::int", word_count=f"coalesce({word_count}, 0)")


def _changes(agent: str) -> str:
    """The agent of a scope, how new the view is, the keys of the scope's projects, and in the same round trip what has
    changed of the agent's records since the revision that is known of this agent; in a row of a removed record, only
    the key is set. If one is known, later statements of the transaction have a time limit. Subqueries and LIMITs let
    one plan serve every number of rows; the range of one agent keeps it off the keys of the owner's other agents."""
    return f"""
SELECT a.key, a.revision, a.reindexed_revision, a.last_key, a.project_key, a.limit_project_key, a.since, c.*
FROM (
    SELECT b.*, CASE WHEN b.since IS NOT NULL THEN set_config('statement_timeout', (:most_ms::bigint)::text, true) END
    FROM (
        SELECT a.key, o.revision, o.reindexed_revision, coalesce((
                SELECT key FROM records WHERE owner_key = :owner AND agent_key BETWEEN a.key AND a.key
                ORDER BY agent_key DESC, key DESC LIMIT 1
            ), 0) AS last_key,
            (SELECT key FROM projects WHERE owner_key = :owner AND id = :project) AS project_key,
            (SELECT key FROM projects WHERE owner_key = :owner AND id = :limit_project) AS limit_project_key,
            (
                SELECT known.revision FROM unnest(:keys, :revisions::bigint[]) AS known (key, revision)
                WHERE known.key = a.key
            ) AS since
        FROM {agent}
    ) b
) a LEFT JOIN LATERAL (
    (
        SELECT r.key, r.created_at, {
        _packed("(SELECT word_count FROM record_shapes WHERE owner_key = :owner AND record_key = r.key)")
    }, r.importance, r.session_key, r.name, r.tags, r.project_key,
            (SELECT id FROM sessions WHERE owner_key = :owner AND key = r.session_key), r.changed_at_revision
        FROM records r
        WHERE r.owner_key = :owner AND r.agent_key = a.key AND r.changed_at_revision > a.since
        ORDER BY r.changed_at_revision LIMIT {_MOST_CHANGES}
    ) UNION ALL (
        SELECT record_key, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, removed_at_revision
        FROM removed_records
        WHERE owner_key = :owner AND agent_key = a.key AND removed_at_revision > a.since
        ORDER BY removed_at_revision LIMIT {_MOST_CHANGES}
    )
) c ON true
"""


SELECT_CHANGES_OF_AGENT: Final = _changes("""
    agents a JOIN owners o ON o.key = :owner
    WHERE a.owner_key = :owner AND a.id = :agent AND (:limit_agent IS NULL OR a.id = :limit_agent)
""")
SELECT_CHANGES_OF_AGENT_OF_SESSION: Final = _changes(f"""
    sessions s JOIN agents a ON a.owner_key = :owner AND a.key = s.agent_key JOIN owners o ON o.key = :owner
    WHERE s.owner_key = :owner AND s.id = :session AND (:agent IS NULL OR a.id = :agent) AND {within("s")}
""")
# The id of a session is in its first row.
SELECT_ALL_COLUMNS: Final = f"""
SELECT r.key, r.created_at, {_packed("w.word_count")}, r.importance, r.session_key, r.name, r.tags, r.project_key,
    CASE WHEN lag(r.session_key) OVER (ORDER BY r.key) IS DISTINCT FROM r.session_key THEN s.id END
FROM (SELECT set_config('statement_timeout', (:most_ms::bigint)::text, true)) AS time_limit CROSS JOIN records r
    LEFT JOIN record_shapes w ON w.owner_key = :owner AND w.record_key = r.key
    LEFT JOIN sessions s ON s.owner_key = :owner AND s.key = r.session_key
WHERE r.owner_key = :owner AND r.agent_key = :agent_key ORDER BY r.key
"""
LIFT_LIMIT: Final = "SELECT set_config('statement_timeout', (:most_ms::bigint)::text, true)"
_AGENT_COLUMNS: Final = 7


class AgentOfScope(NamedTuple):
    """The agent of a scope in one view: the owner's revision, that of the last rebuilding of the index, the greatest
    key of the agent's records, the keys of the scope's project and of the project of its limits, and the revision
    since which changes were read."""

    key: int
    revision: int
    reindexed_revision: int
    last_key: int
    project_key: int | None
    limit_project_key: int | None
    since: int | None


class ColumnReading(NamedTuple):
    """Rows of records, by key: all of the agent (`since` is None), or those changed after a revision. A row has the
    columns that `ColumnArrays` takes, then the id of its session, and if not all are read, the revision of its last
    change. `removed`: keys and revisions of records that are gone."""

    since: int | None
    rows: list[Any]
    removed: list[tuple[int, int]]


class ColumnQueries(Queries):
    """The reads of columns."""

    async def changes(
        self, scope: Scope, known: Mapping[int, int], *, most_s: float
    ) -> tuple[AgentOfScope, ColumnReading | None] | None:
        """The agent of the scope, and what has changed of its records since the revision that is known of this agent;
        None instead, if none is, or if more has changed than is read. None if there is no such agent or session. If a
        revision is known, later statements of this transaction may take this long."""
        is_agent = scope.session is None
        found = await self._all(
            SELECT_CHANGES_OF_AGENT if is_agent else SELECT_CHANGES_OF_AGENT_OF_SESSION,
            owner=scope.owner,
            agent=(scope.agent or scope.limits.agent or DEFAULT_AGENT) if is_agent else scope.agent,
            session=scope.session,
            project=scope.project,
            keys=list(known),
            revisions=list(known.values()),
            most_ms=self._milliseconds(most_s),
            **limits_of(scope),
        )
        if not found:
            return None
        agent = AgentOfScope(*found[0][:_AGENT_COLUMNS])
        rows: list[Any] = []
        removed: list[tuple[int, int]] = []
        for row in found:
            key, created_at = row[_AGENT_COLUMNS : _AGENT_COLUMNS + 2]
            if created_at is not None:
                rows.append(row[_AGENT_COLUMNS:])
            elif key is not None:
                removed.append((key, row[-1]))
        if agent.since is None or max(len(rows), len(removed)) >= _MOST_CHANGES:
            return agent, None
        rows.sort(key=itemgetter(0))
        return agent, ColumnReading(agent.since, rows, removed)

    async def everything(self, owner: str, agent: AgentOfScope, *, most_s: float) -> ColumnReading:
        """All records of the agent. Later statements of this transaction may take this long."""
        if agent.since is not None:
            await self._all(LIFT_LIMIT, most_ms=self._transaction.statement_ms)
        parameters = {"agent_key": agent.key, "most_ms": self._milliseconds(most_s)}
        return ColumnReading(None, await self._all(SELECT_ALL_COLUMNS, owner=owner, **parameters), [])

    def _milliseconds(self, most_s: float) -> int:
        """As PostgreSQL takes it. 0: as long as other statements may take."""
        return max(1, round(most_s * 1000)) if most_s else self._transaction.statement_ms
