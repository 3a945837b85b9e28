"""Reads conversations with what came of them, for a person who looks through them. Implements `ports.timeline`."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import Any, Final

from kalito_mcp.domain.known import KnownRecord
from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.sessions import SessionCursor
from kalito_mcp.ports.timeline import BegunSession
from kalito_mcp.storage import record_rows as rows
from kalito_mcp.storage.queries import Queries, places_of
from kalito_mcp.storage.sessions import NEWEST, sessions_of

QUARTER_MS: Final = 900_000


class TimelineQueries(Queries):
    """`ports.timeline.TimelineReader`."""

    async def begun(self, scope: Scope) -> BegunSession | None:
        found = await self._all(self._sql.timeline.SELECT_BEGUN, **places_of(scope))
        return next(iter(_begun(found)), None)

    async def sessions(
        self,
        scope: Scope,
        *,
        client: str | None = None,
        begun_until: int | None = None,
        before: SessionCursor | None = None,
        is_forgotten: bool | None = None,
        limit: int,
    ) -> Sequence[BegunSession]:
        place = before or NEWEST
        return _begun(
            await self._all(
                self._sql.timeline.SELECT_TIMELINE,
                client=client,
                begun_until=begun_until,
                said_at=place.said_at,
                before=place.session_id,
                is_forgotten=is_forgotten,
                limit=limit,
                **places_of(scope),
            )
        )

    async def clients(self, scope: Scope, *, among: int) -> Sequence[str]:
        return [
            client for [client] in await self._all(self._sql.timeline.SELECT_CLIENTS, among=among, **places_of(scope))
        ]

    async def notes(self, scope: Scope, session_ids: Sequence[str], *, limit: int) -> Sequence[KnownRecord]:
        parameters = {**places_of(scope), "ids": list(session_ids), "limit": limit}
        return [rows.known(row) for row in await self._all(self._sql.timeline.SELECT_NOTES, **parameters)]

    async def open_points(self, scope: Scope, *, limit: int) -> Sequence[KnownRecord]:
        return [
            rows.known(row)
            for row in await self._all(self._sql.timeline.SELECT_OPEN_POINTS, limit=limit, **places_of(scope))
        ]

    async def messages_between(self, scope: Scope, moments: Sequence[int]) -> Sequence[int]:
        ends = {"since": moments[0], "until": moments[-1]}
        counts, across = _counts_of_spans(
            moments, await self._all(self._sql.timeline.SELECT_SPANS, **ends, **places_of(scope))
        )
        quarters = await self._all(self._sql.timeline.SELECT_QUARTERS, owner=scope.owner, keys=across, **ends)
        _add_quarters(counts, moments, quarters)
        return counts


def _begun(rows: Sequence[Any]) -> list[BegunSession]:
    """The sessions of rows with a client, then the columns of a session."""
    sessions = sessions_of(row[1:] for row in rows)
    return [BegunSession(session, row[0]) for row, session in zip(rows, sessions, strict=True)]


def _counts_of_spans(moments: Sequence[int], spans: Iterable[Sequence[Any]]) -> tuple[list[int], list[int]]:
    """How many messages sessions have from each moment until the next, and the keys of the sessions that are not within
    one such time. A span is a session's key, its oldest and its newest moment, and the count of its messages."""
    counts = [0] * (len(moments) - 1)
    across: list[int] = []
    # Most conversations are of one day, and their row says how many messages they have.
    for key, oldest, newest, count in spans:
        place = bisect_right(moments, newest) - 1
        if bisect_right(moments, oldest) - 1 == place and 0 <= place < len(counts):
            counts[place] += count
        else:
            across.append(key)
    return counts, across


def _add_quarters(counts: list[int], moments: Sequence[int], quarters: Iterable[Sequence[Any]]) -> None:
    """Add the messages of quarters of an hour, each with its first moment and its count."""
    for moment, count in quarters:
        counts[bisect_right(moments, moment) - 1] += count
