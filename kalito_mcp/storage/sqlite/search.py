"""Reads what a search needs: first stubs of records, then the candidates with their texts."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from kalito_mcp.domain.scope import DEFAULT_AGENT, Scope
from kalito_mcp.domain.search import Candidate, CandidateStub, SearchFilters
from kalito_mcp.storage.sqlite import conversation_rows as rows
from kalito_mcp.storage.sqlite.queries import Queries
from kalito_mcp.text.times.expressions import Span

_DEFAULT_AGENT_OR: Final = f"coalesce(:agent, '{DEFAULT_AGENT}')"
_MAX_SESSIONS_OF_A_TIME: Final = 50
_ADMITTED: Final = """
    (:types IS NULL OR r.type IN (SELECT value FROM json_each(:types)))
    AND (:roles IS NULL OR r.role IN (SELECT value FROM json_each(:roles)))
    AND (:since IS NULL OR r.created_at >= :since) AND (:until IS NULL OR r.created_at <= :until)
    AND (:tags IS NULL OR EXISTS (
        SELECT 1 FROM json_each(r.tags) tag WHERE tag.value IN (SELECT value FROM json_each(:tags))
    ))
    AND (:origins IS NULL OR coalesce(
        r.origin, CASE r.role WHEN 'user' THEN 'user' WHEN 'system' THEN 'tool' ELSE 'assistant' END
    ) IN (SELECT value FROM json_each(:origins)))
    AND r.importance >= :min_importance
"""
# SQLite runs these subqueries once; joins would run for every record.
_IN_SCOPE: Final = f"""
    r.deleted_at IS NULL
    AND (r.is_internal = 0 OR :include_internal OR (r.type = 'thought' AND :types IS NOT NULL))
    AND CASE WHEN :session IS NULL
        THEN r.agent_key = (SELECT key FROM agents WHERE owner = :owner AND id = {_DEFAULT_AGENT_OR})
        ELSE r.session_key = (
            SELECT s.key FROM sessions s JOIN agents a ON a.key = s.agent_key
            WHERE s.owner = :owner AND s.id = :session AND (:agent IS NULL OR a.id = :agent)
        ) END
"""
SELECT_CANDIDATE_STUBS: Final = f"""
SELECT r.key, r.session_key, CASE WHEN r.type = 'message' THEN r.seq END, r.tokens, r.name, {_ADMITTED}
FROM records r WHERE r.key IN (
    SELECT value FROM json_each(:keys)
    UNION SELECT n.key FROM json_each(:centres) c JOIN records m ON m.key = c.value
        JOIN records n ON n.session_key = m.session_key AND n.type = 'message'
            AND n.seq BETWEEN m.seq - :reach AND m.seq + :reach
    WHERE m.type = 'message'
) AND {_IN_SCOPE}
"""
SELECT_DATED: Final = f"""
SELECT r.key FROM (
    SELECT s.key FROM sessions s JOIN agents a ON a.key = s.agent_key
    WHERE s.owner = :owner AND (:session IS NOT NULL OR a.id = {_DEFAULT_AGENT_OR})
        AND (:agent IS NULL OR a.id = :agent) AND (:session IS NULL OR s.id = :session)
        AND s.newest_message_at >= :first AND s.oldest_message_at <= :last
    ORDER BY s.newest_message_at DESC LIMIT {_MAX_SESSIONS_OF_A_TIME}
) of_then JOIN records r ON r.session_key = of_then.key AND r.type = 'message'
WHERE r.created_at BETWEEN :first AND :last AND r.deleted_at IS NULL
ORDER BY r.created_at DESC, r.key DESC LIMIT :limit
"""
SELECT_LAST_KEY: Final = f"""
SELECT max((
    SELECT r.key FROM records r WHERE r.session_key = of_then.key AND r.type = 'message' ORDER BY r.seq DESC LIMIT 1
)) FROM (
    SELECT s.key FROM sessions s JOIN agents a ON a.key = s.agent_key
    WHERE s.owner = :owner AND (:session IS NOT NULL OR a.id = {_DEFAULT_AGENT_OR})
        AND (:agent IS NULL OR a.id = :agent) AND (:session IS NULL OR s.id = :session)
        AND s.newest_message_at <= :until
    ORDER BY s.newest_message_at DESC LIMIT {_MAX_SESSIONS_OF_A_TIME}
) of_then
"""
SELECT_CANDIDATES: Final = f"""
SELECT r.key, r.type, r.id, s.id, r.role, r.name, r.text, r.created_at, r.seq, r.client_key, r.origin, r.importance,
    r.is_critical, u.usage_count, u.last_used, r.revision, CASE WHEN r.type = 'task' THEN r.attributes END
FROM records r LEFT JOIN sessions s ON s.key = r.session_key LEFT JOIN record_usage u ON u.record_key = r.key
WHERE r.key IN (SELECT value FROM json_each(:keys)) AND {_IN_SCOPE} AND {_ADMITTED}
"""


class SearchQueries(Queries):
    """`ports.search.SearchReader`."""

    async def candidate_stubs(
        self, scope: Scope, keys: Sequence[int], centres: Sequence[int], *, reach: int, filters: SearchFilters
    ) -> Sequence[CandidateStub]:
        found = await self._all(
            SELECT_CANDIDATE_STUBS,
            **_filter_parameters(scope, filters),
            keys=json.dumps(list(keys)),
            centres=json.dumps(list(centres)),
            reach=reach,
        )
        names = _folded(filters)
        return [
            CandidateStub(key, session, seq, tokens, name, bool(is_admitted) and _is_one_of(names, name))
            for key, session, seq, tokens, name, is_admitted in found
        ]

    async def dated(self, scope: Scope, span: Span, *, limit: int) -> Sequence[int]:
        parameters = _scope_parameters(scope)
        rows = await self._all(SELECT_DATED, **parameters, first=span.first, last=span.last, limit=limit)
        return [row[0] for row in rows]

    async def last_key(self, scope: Scope, until: int) -> int | None:
        [[key]] = await self._all(SELECT_LAST_KEY, **_scope_parameters(scope), until=until)
        return None if key is None else int(key)

    async def candidates(self, scope: Scope, keys: Sequence[int], filters: SearchFilters) -> Sequence[Candidate]:
        asked = _filter_parameters(scope, filters)
        found = await self._all(SELECT_CANDIDATES, **asked, keys=json.dumps(list(keys)))
        names = _folded(filters)
        return rows.candidates(row for row in found if _is_one_of(names, row[5]))


def _scope_parameters(scope: Scope) -> dict[str, str | None]:
    return {"owner": scope.owner, "agent": scope.agent, "session": scope.session}


def _filter_parameters(scope: Scope, filters: SearchFilters) -> Mapping[str, Any]:
    return {
        **_scope_parameters(scope),
        "types": _listed(filters.types),
        "roles": _listed(filters.roles),
        "since": filters.since,
        "until": filters.until,
        "include_internal": filters.include_internal,
        "tags": _listed(filters.tags),
        "origins": _listed(filters.origins),
        "min_importance": filters.min_importance,
    }


def _folded(filters: SearchFilters) -> frozenset[str]:
    """The admitted names, folded; empty if all are. SQLite itself folds only the case of ASCII letters."""
    return frozenset(name.casefold() for name in filters.names)


def _is_one_of(names: frozenset[str], name: str | None) -> bool:
    return not names or (name is not None and name.casefold() in names)


def _listed(admitted: frozenset[str]) -> str | None:
    """A filter's values as JSON; None if it admits all."""
    return json.dumps(sorted(admitted)) if admitted else None
