"""Changes, for a server that notifies its hosts of them."""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final

from kalito_mcp.domain.arguments import checks_arguments
from kalito_mcp.domain.scope import NO_LIMITS, Scope
from kalito_mcp.domain.watching import Watched, WatchedKind
from kalito_mcp.errors import KalitoError
from kalito_mcp.memory.part import Part
from kalito_mcp.pins.profile import read_profile
from kalito_mcp.ports.store import ReadView
from kalito_mcp.records.historian import get_record
from kalito_mcp.records.reached import look_up

_MOST_RECENT: Final = 100


@checks_arguments
class Changes(Part):
    """Compares what is shown now with what was shown before. What lies beyond the limits has no version here."""

    async def revision(self) -> int:
        """A number that changes whenever any process changes this owner's memory, tokens, consents or memberships, or a
        space that they are in. It may change when another owner's memory does."""
        return await self.place.store.revision(self.place.owner)

    async def listen(self, owners: Callable[[], Collection[str]], heard: Callable[[], None]) -> None:
        """Until cancelled, call `heard` soon after any process has changed the memory of one of the owners. Returns at
        once where nothing says so; some changes may be missed, so look at `revision` now and then."""
        await self.place.store.listen(owners, heard)

    async def versions(self, resources: Iterable[Watched]) -> Mapping[Watched, int]:
        """A number for each: it differs from the one before if what is shown differs, and is 0 for what is not found.

        Only comparable within one process. Some change needlessly: a session's when its owed work is done.
        """
        wanted = list(resources)

        async def look(view: ReadView) -> Mapping[Watched, int]:
            return {one: await self._version(view, one) for one in wanted}

        return await self.place.store.read(look)

    async def _version(self, view: ReadView, watched: Watched) -> int:
        try:
            shown = await self._shown(view, watched)
        except KalitoError:  # what cannot be read is shown as an error, whichever it is
            return 0
        # Of the text, not of the values: not all of them can be hashed.
        return 0 if shown is None else hash(repr(shown)) or 1

    async def _shown(self, view: ReadView, watched: Watched) -> object:
        """What the version is taken of; None if there is nothing."""
        limits, scope = self.place.limits, self.place.scope()
        shown: object = None
        match watched.kind:
            case WatchedKind.SESSIONS:
                shown = await view.sessions.list_recent(scope, limit=_MOST_RECENT, has_forgotten=False)
            case WatchedKind.SESSION_LIST:
                shown = await view.sessions.census(scope)
            case WatchedKind.SESSION:
                shown = await self.place.session_within(view, watched.id)
            case WatchedKind.SESSION_GRAPH:
                session = await self.place.session_within(view, watched.id)
                # It is made of the messages when it is asked for, and stored when the session is finalized.
                stored = session and await view.graphs.state(Scope(self.place.owner, session.agent, session.id))
                shown = session and (session, stored)
            # The graph of an agent and its snapshots are of all projects: more than some limits show.
            case WatchedKind.AGENT_GRAPH if limits.project is None:
                shown = await view.graphs.state(Scope(self.place.owner, limits.agent))
            case WatchedKind.SNAPSHOTS if limits == NO_LIMITS:
                shown = self._services.orchestrators.of(Scope(self.place.owner)).list_snapshots()
            case WatchedKind.SNAPSHOT if limits == NO_LIMITS:
                files = self._services.orchestrators.of(Scope(self.place.owner)).list_snapshots()
                shown = next((one for one in files if one.name == watched.id), None)
            case WatchedKind.PROFILE:
                shown = (await read_profile(view, scope)).to_dict()
            case WatchedKind.RECORD:
                shown = await self._record_within(view, watched.id)
        return shown

    async def _record_within(self, view: ReadView, record_id: str) -> object:
        """The record with the number of its edits, which a purge of other words can lower."""
        scope = self.place.scope()
        record = await get_record(view.records, scope, record_id)
        seen = (await look_up(view, scope, [record])).record(record)
        return seen.to_dict(), len(await view.records.edits(record))
