"""What the memory gave back."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kalito_mcp.domain.given import GivenEntry, GivenKind, GivenPart, LeftOut, PartName, Why
from kalito_mcp.domain.scope import Scope
from kalito_mcp.storage.intact_rows import intact_rows
from kalito_mcp.storage.numbered import message_key
from kalito_mcp.storage.queries import Queries, places_of


class GivenQueries(Queries):
    """`ports.given.GivenReader`."""

    async def entries(
        self, scope: Scope, *, before: int | None = None, record_id: str | None = None, limit: int
    ) -> Sequence[GivenEntry]:
        named = None if record_id is None else _end_of_record(record_id)
        rows = await self._all(
            self._sql.given.SELECT_GIVEN, **places_of(scope), before_key=before, named=named, limit=limit
        )
        return list(map(_entry, rows))

    async def entry(self, scope: Scope, entry_id: int) -> GivenEntry | None:
        rows = await self._all(self._sql.given.SELECT_GIVEN_ONCE, **places_of(scope), key=entry_id)
        return next(map(_entry, rows), None)

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
                "parts": _parts_json(one.parts, of_entry),
                "left_out": _left_out_json(one.left_out),
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


def _parts_json(parts: Iterable[GivenPart], revisions: Mapping[str, int]) -> str:
    """The parts of an entry, with the revision of each record by id."""
    return _json(
        [one.name, one.tokens, one.count, *([revisions.get(record_id), record_id] for record_id in one.ids)]
        for one in parts
    )


def _left_out_json(left_out: Iterable[LeftOut]) -> str:
    """What was left out of an entry."""
    return _json([out.part, out.why, out.count, *out.ids] for out in left_out)


def _end_of_record(record_id: str) -> str:
    """What `_parts_json` writes for a record, and for nothing else: the name of a part is not followed by a bracket."""
    return f",{json.dumps(record_id)}]"


def _entry(row: Sequence[Any]) -> GivenEntry:
    """An entry from a row: kind, moment, tokens, parts, left out, and the other fields of `GivenEntry` in order."""
    kind, at, tokens, parts, left_out, *others = row
    with intact_rows():
        given = tuple(
            GivenPart(PartName(name), share, count, tuple(one[1] for one in records), tuple(one[0] for one in records))
            for name, share, count, *records in json.loads(parts)
        )
        out = tuple(
            LeftOut(PartName(part), Why(why), count, tuple(ids)) for part, why, count, *ids in json.loads(left_out)
        )
        return GivenEntry(GivenKind(kind), at, tokens, given, out, *others)


def _json(rows: Iterable[Sequence[Any]]) -> str:
    return json.dumps(list(rows), separators=(",", ":"))
