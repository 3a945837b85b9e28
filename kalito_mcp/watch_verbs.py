"""The verbs of `Memory` for a server that tells its hosts what changed, and lists sessions page by page."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from hashlib import blake2b
from typing import Final

from kalito_mcp.domain.scope import NO_LIMITS, Scope
from kalito_mcp.domain.search import Hit
from kalito_mcp.domain.sessions import Session
from kalito_mcp.domain.watching import Watched, WatchedKind
from kalito_mcp.errors import KalitoError, SessionNotFound
from kalito_mcp.orchestrator.orchestrators import Orchestrators
from kalito_mcp.pins.profile import read_profile
from kalito_mcp.ports.store import ReadView
from kalito_mcp.project_verbs import ProjectVerbs
from kalito_mcp.records.historian import get_record
from kalito_mcp.records.reached import look_up
from kalito_mcp.text.titles import is_named, title_of

_MOST_RECENT: Final = 100
_MOST_COMPLETED: Final = 200
_TITLES_AT_ONCE: Final = 200


class WatchVerbs(ProjectVerbs):
    """The part of `Memory` that compares what is shown now with what was shown before.

    What lies beyond the limits of this memory has no version here, and changes none.
    """

    _orchestrators: Orchestrators

    async def revision(self) -> int:
        """A number that changes whenever any process commits a write to the database, of any owner."""
        return await self._store.revision()

    async def versions(self, asked: Iterable[Watched]) -> Mapping[Watched, int]:
        """A number for each: it differs from the one before if what is shown differs, and is 0 for what is not found.

        Only comparable within one process. Some change needlessly: a session's when its owed work is done.
        """
        wanted = list(asked)

        async def look(view: ReadView) -> Mapping[Watched, int]:
            return {one: await self._version(view, one) for one in wanted}

        return await self._store.read(look)

    async def sessions_before(self, session_id: str | None = None, *, limit: int) -> Sequence[Session]:
        """At most `limit` sessions that were begun before a session, newest first; without one, from the newest.

        Raises:
            SessionNotFound: no such session.
        """
        scope = self._scope(None)

        async def look(view: ReadView) -> Sequence[Session]:
            before = None
            if session_id is not None:
                before = await self._session_within(view, session_id)
                if before is None:
                    raise SessionNotFound(session_id)
            return await view.sessions.list_begun(scope, before=before, limit=limit)

        return await self._store.read(look)

    async def titles(self, session_ids: Iterable[str]) -> Mapping[str, str]:
        """What these sessions are called, by id; those that have no title are left out (see `titles.title_of`)."""
        return await self._titles(self._scope(None).anywhere(), session_ids)

    async def _titles(self, scope: Scope, session_ids: Iterable[str]) -> Mapping[str, str]:
        asked = list(dict.fromkeys(session_ids))
        said: dict[str, Sequence[str]] = {}
        unnamed = [one for one in asked if not is_named(one)]
        for place in range(0, len(unnamed), _TITLES_AT_ONCE):
            part = unnamed[place : place + _TITLES_AT_ONCE]
            said.update(await self._store.read(partial(_first_texts, scope, part)))
        found = {one: title_of(one, said.get(one, ())) for one in asked}
        return {session_id: title for session_id, title in found.items() if title is not None}

    async def _titled(self, scope: Scope, hits: Sequence[Hit]) -> tuple[Hit, ...]:
        """The hits of a search with the titles of their sessions, except where the id is the title. What the person is
        may have been said in another project: that session's title, which quotes it, stays there."""
        ids = {hit.session_id for hit in hits if hit.session_id is not None and not is_named(hit.session_id)}
        reached = scope if scope.session is None else scope.anywhere()
        titles = await self._titles(reached, sorted(ids)) if ids else {}
        return tuple(replace(hit, session_title=titles.get(hit.session_id or "")) for hit in hits)

    async def record_ids(self, prefix: str) -> Sequence[str]:
        """Those of the newest two hundred thoughts, documents, tasks, pins and summaries whose id starts with the
        prefix, newest first."""
        scope = self._scope(None)
        found = await self._store.read(
            lambda view: view.records.list_records(scope, frozenset(), limit=_MOST_COMPLETED)
        )
        return [one.id for one in found if one.id.startswith(prefix)]

    async def derived_key(self, purpose: str) -> bytes:
        """32 bytes that only who reads the database can know, always the same for a purpose of at most 16 characters.
        Never show them."""
        secret = await self._store.read(lambda view: view.access.state_secret())
        return blake2b(key=secret, person=purpose.encode(), digest_size=32).digest()

    async def _version(self, view: ReadView, watched: Watched) -> int:
        try:
            shown = await self._shown(view, watched)
        except KalitoError:  # what cannot be read is shown as an error, whichever it is
            return 0
        # Of the text, not of the values: not all of them can be hashed.
        return 0 if shown is None else hash(repr(shown)) or 1

    async def _shown(self, view: ReadView, watched: Watched) -> object:
        """What the version is taken of; None if there is nothing."""
        limits, scope = self._limits, self._scope(None)
        shown: object = None
        match watched.kind:
            case WatchedKind.SESSIONS:
                shown = await view.sessions.list_recent(scope, limit=_MOST_RECENT)
            case WatchedKind.SESSION_LIST:
                shown = await view.sessions.census(scope)
            case WatchedKind.SESSION:
                shown = await self._session_within(view, watched.id)
            case WatchedKind.SESSION_GRAPH:
                session = await self._session_within(view, watched.id)
                # It is made of the messages when it is asked for, and stored when the session is finalized.
                stored = session and await view.graphs.state(Scope(self._owner, session.agent, session.id))
                shown = session and (session, stored)
            # The graph of an agent and its snapshots are of all projects: more than some limits show.
            case WatchedKind.AGENT_GRAPH if limits.project is None:
                shown = await view.graphs.state(Scope(self._owner, limits.agent))
            case WatchedKind.SNAPSHOTS if limits == NO_LIMITS:
                shown = self._orchestrators.of(Scope(self._owner)).list_snapshots()
            case WatchedKind.SNAPSHOT if limits == NO_LIMITS:
                files = self._orchestrators.of(Scope(self._owner)).list_snapshots()
                shown = next((one for one in files if one.name == watched.id), None)
            case WatchedKind.PROFILE:
                shown = (await read_profile(view, scope)).to_dict()
            case WatchedKind.RECORD:
                shown = await self._record_within(view, watched.id)
        return shown

    async def _session_within(self, view: ReadView, session_id: str) -> Session | None:
        scope = self._scope(session_id)
        session = await view.sessions.get(scope)
        if session is None and self._limits != NO_LIMITS:
            session = await view.sessions.get(scope.of_session(self._limits.own_session(session_id)))
        return session

    async def _record_within(self, view: ReadView, record_id: str) -> object:
        """The record with the number of its edits, which a purge of other words can lower."""
        scope = self._scope(None)
        record = await get_record(view.records, scope, record_id)
        seen = (await look_up(view, scope, [record])).record(record)
        return seen.to_dict(), len(await view.records.edits(record))


async def _first_texts(scope: Scope, session_ids: Sequence[str], view: ReadView) -> Mapping[str, Sequence[str]]:
    return await view.sessions.first_texts(scope, session_ids)
