"""Reads conversations with what came of them, for a person who looks through them. Implements `ports.timeline`."""

from collections.abc import Sequence

from kalito_mcp.domain.known import KnownRecord
from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.sessions import SessionCursor
from kalito_mcp.ports.timeline import BegunSession
from kalito_mcp.storage import record_rows as rows
from kalito_mcp.storage.queries import Queries, places_of
from kalito_mcp.storage.sessions import NEWEST
from kalito_mcp.storage.timeline_rows import add_quarters, begun, counts_of_spans


class TimelineQueries(Queries):
    """`ports.timeline.TimelineReader`."""

    async def begun(self, scope: Scope) -> BegunSession | None:
        found = await self._all(self._sql.timeline.SELECT_BEGUN, **places_of(scope))
        return next(iter(begun(found)), None)

    async def sessions(
        self,
        scope: Scope,
        *,
        client: str | None = None,
        begun_until: int | None = None,
        before: SessionCursor | None = None,
        limit: int,
    ) -> Sequence[BegunSession]:
        place = before or NEWEST
        return begun(
            await self._all(
                self._sql.timeline.SELECT_TIMELINE,
                client=client,
                begun_until=begun_until,
                said_at=place.said_at,
                before=place.session_id,
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
        counts, across = counts_of_spans(
            moments, await self._all(self._sql.timeline.SELECT_SPANS, **ends, **places_of(scope))
        )
        quarters = await self._all(self._sql.timeline.SELECT_QUARTERS, owner=scope.owner, keys=across, **ends)
        add_quarters(counts, moments, quarters)
        return counts
