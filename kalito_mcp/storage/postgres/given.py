"""What the memory gave back."""

from collections.abc import Mapping, Sequence
from typing import Final

from kalito_mcp.domain.given import GivenEntry, GivenKind
from kalito_mcp.domain.scope import Scope
from kalito_mcp.storage import given_rows
from kalito_mcp.storage.intact_rows import intact_rows
from kalito_mcp.storage.numbered import message_key
from kalito_mcp.storage.postgres.queries import Queries, limits_of

_PROJECT: Final = "CASE WHEN s.key IS NULL THEN g.project ELSE coalesce(p.id, 'personal') END"
_COLUMNS: Final = f"""
    g.kind, g.at, g.tokens, g.parts, g.left_out, g.agent, {_PROJECT}, g.session, g.client, g.budget, g.key
"""
_OF_SCOPE: Final = f"""
FROM given g
    LEFT JOIN sessions s ON s.owner_key = :owner AND s.id = g.session
    LEFT JOIN projects p ON p.owner_key = :owner AND p.key = s.project_key
WHERE g.owner_key = :owner AND (:agent IS NULL OR g.agent = :agent) AND (:session IS NULL OR g.session = :session)
    AND (:project IS NULL OR {_PROJECT} IN (:project, 'personal'))
    AND (:limit_agent IS NULL OR g.agent = :limit_agent)
    AND (:limit_project IS NULL OR (
        g.project IN (:limit_project, 'personal') AND {_PROJECT} IN (:limit_project, 'personal')
    ))
"""
SELECT_GIVEN: Final = f"""
SELECT {_COLUMNS} {_OF_SCOPE}
    AND (:before_key IS NULL OR (g.at, g.key) < (
        SELECT at, key FROM given WHERE owner_key = :owner AND key = :before_key
    ))
    AND (:named::text IS NULL OR strpos(g.parts, :named) > 0)
ORDER BY g.at DESC, g.key DESC LIMIT :limit
"""
SELECT_GIVEN_ONCE: Final = f"SELECT {_COLUMNS} {_OF_SCOPE} AND g.key = :key"
SELECT_GIVEN_TOKENS: Final = f"SELECT g.at, g.kind, g.tokens {_OF_SCOPE} ORDER BY g.at, g.key"
# The number of an id is the key of a message, which has no id of its own. Records are looked up one by one (LIMIT): no
# plan may read all records of an owner.
SELECT_REVISIONS: Final = """
SELECT named.place, named.id, r.revision - (
    SELECT count(*) FROM memory_edits e
    WHERE e.owner_key = :owner AND e.record_key = r.key AND e.edited_at > named.at
) FROM unnest(:places::integer[], :ids, :numbers, :moments::bigint[]) AS named (place, id, number, at)
CROSS JOIN LATERAL (
    (SELECT key, revision FROM records WHERE owner_key = :owner AND id = named.id LIMIT 1)
    UNION ALL
    (SELECT key, revision FROM records WHERE owner_key = :owner AND key = named.number AND id IS NULL LIMIT 1)
) r
"""
INSERT_GIVEN: Final = """
INSERT INTO given (owner_key, agent, project, session, kind, at, client, budget, tokens, parts, left_out)
VALUES (:owner, :agent, :project, :session, :kind, :at, :client, :budget, :tokens, :parts, :left_out)
"""
DELETE_OLD_GIVEN: Final = "DELETE FROM given WHERE owner_key = :owner AND at < :since_ms"
DELETE_MOST_GIVEN: Final = """
DELETE FROM given WHERE owner_key = :owner AND (at, key) <= (
    SELECT at, key FROM given WHERE owner_key = :owner ORDER BY at DESC, key DESC LIMIT 1 OFFSET :most
)
"""


class GivenQueries(Queries):
    """`ports.given.GivenReader`."""

    async def entries(
        self, scope: Scope, *, before: int | None = None, record_id: str | None = None, limit: int
    ) -> Sequence[GivenEntry]:
        named = None if record_id is None else given_rows.end_of_record(record_id)
        rows = await self._all(SELECT_GIVEN, **_parameters(scope), before_key=before, named=named, limit=limit)
        return list(map(given_rows.entry, rows))

    async def entry(self, scope: Scope, entry_id: int) -> GivenEntry | None:
        rows = await self._all(SELECT_GIVEN_ONCE, **_parameters(scope), key=entry_id)
        return next(map(given_rows.entry, rows), None)

    async def tokens(self, scope: Scope) -> Sequence[tuple[int, GivenKind, int]]:
        rows = await self._all(SELECT_GIVEN_TOKENS, **_parameters(scope))
        with intact_rows():
            return [(at, GivenKind(kind), tokens) for at, kind, tokens in rows]


class GivenStatements(GivenQueries):
    """`ports.given.GivenWriter`."""

    async def add(self, owner: str, entries: Sequence[GivenEntry], *, since_ms: int, most: int) -> None:
        revisions = await self._revisions(owner, entries)
        rows = [
            {
                "agent": one.agent,
                "project": one.project,
                "session": one.session_id,
                "kind": one.kind,
                "at": one.at,
                "client": one.client,
                "budget": one.budget,
                "tokens": one.tokens,
                "parts": given_rows.parts_json(one.parts, of_entry),
                "left_out": given_rows.left_out_json(one.left_out),
            }
            for one, of_entry in zip(entries, revisions, strict=True)
        ]
        await self._many(INSERT_GIVEN, rows, owner=owner)
        await self._all(DELETE_OLD_GIVEN, owner=owner, since_ms=since_ms)
        await self._all(DELETE_MOST_GIVEN, owner=owner, most=most)

    async def _revisions(self, owner: str, entries: Sequence[GivenEntry]) -> Sequence[Mapping[str, int]]:
        """For each entry, the revisions that its records had then, by id."""
        found: list[dict[str, int]] = [{} for _ in entries]
        named = [(place, record_id, one.at) for place, one in enumerate(entries) for record_id in one.record_ids]
        for place, record_id, revision in await self._all(
            SELECT_REVISIONS,
            owner=owner,
            places=[place for place, _, _ in named],
            ids=[record_id for _, record_id, _ in named],
            numbers=[message_key(record_id) for _, record_id, _ in named],
            moments=[at for _, _, at in named],
        ):
            found[place][record_id] = revision
        return found


def _parameters(scope: Scope) -> dict[str, str | None]:
    place = {"owner": scope.owner, "agent": scope.agent, "session": scope.session, "project": scope.project}
    return {**place, **limits_of(scope)}
