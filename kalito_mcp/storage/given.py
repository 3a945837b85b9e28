"""What the memory gave back."""

from collections.abc import Mapping, Sequence

from kalito_mcp.domain.given import GivenEntry, GivenKind
from kalito_mcp.domain.scope import Scope
from kalito_mcp.storage import given_rows
from kalito_mcp.storage.intact_rows import intact_rows
from kalito_mcp.storage.numbered import message_key
from kalito_mcp.storage.queries import Queries, places_of


class GivenQueries(Queries):
    """`ports.given.GivenReader`."""

    async def entries(
        self, scope: Scope, *, before: int | None = None, record_id: str | None = None, limit: int
    ) -> Sequence[GivenEntry]:
        named = None if record_id is None else given_rows.end_of_record(record_id)
        rows = await self._all(
            self._sql.given.SELECT_GIVEN, **places_of(scope), before_key=before, named=named, limit=limit
        )
        return list(map(given_rows.entry, rows))

    async def entry(self, scope: Scope, entry_id: int) -> GivenEntry | None:
        rows = await self._all(self._sql.given.SELECT_GIVEN_ONCE, **places_of(scope), key=entry_id)
        return next(map(given_rows.entry, rows), None)

    async def tokens(self, scope: Scope) -> Sequence[tuple[int, GivenKind, int]]:
        rows = await self._all(self._sql.given.SELECT_GIVEN_TOKENS, **places_of(scope))
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
        await self._many(self._sql.given.INSERT_GIVEN, rows, owner=owner)
        await self._all(self._sql.given.DELETE_GIVEN, owner=owner, before_ms=since_ms - 1, most=most)

    async def _revisions(self, owner: str, entries: Sequence[GivenEntry]) -> Sequence[Mapping[str, int]]:
        """For each entry, the revisions that its records had then, by id."""
        found: list[dict[str, int]] = [{} for _ in entries]
        named = [(place, record_id, one.at) for place, one in enumerate(entries) for record_id in one.record_ids]
        for place, record_id, revision in await self._all(
            self._sql.given.SELECT_REVISIONS,
            owner=owner,
            places=[place for place, _, _ in named],
            ids=[record_id for _, record_id, _ in named],
            numbers=[message_key(record_id) for _, record_id, _ in named],
            moments=[at for _, _, at in named],
        ):
            found[place][record_id] = revision
        return found
