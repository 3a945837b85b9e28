"""Reads everything for a context: the session, known facts, and matches of the query. Reads only.

One consistent view, in one trip to the database's thread. A session and the known facts are kept until a process
writes, so that a context without a query usually needs no trip.
"""

import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby
from typing import Any, Final, NamedTuple, TypeVar

from kalito_mcp.contexts.cache import CachePolicy, Moment, RevisionCache
from kalito_mcp.contexts.known import Known, KnownReader
from kalito_mcp.contexts.parts import ContextPolicy
from kalito_mcp.contexts.recaller import Query, Recalled, Recaller
from kalito_mcp.domain.context import Include
from kalito_mcp.domain.kinds import Kind
from kalito_mcp.domain.known import KnownRecord
from kalito_mcp.domain.records import MessageWithImportance, RecordType, SessionView
from kalito_mcp.domain.scope import DEFAULT_AGENT, PERSONAL, Scope
from kalito_mcp.domain.search import Hit, SearchFilters, SeenPart
from kalito_mcp.domain.sessions import Session, unrecorded_session
from kalito_mcp.domain.tasks import TaskStatus
from kalito_mcp.domain.time import from_iso
from kalito_mcp.domain.validation import checked_name
from kalito_mcp.errors import SessionNotFound, StorageDamaged
from kalito_mcp.pins.repeats import name_the_same, without_repeats
from kalito_mcp.ports.clock import Clock
from kalito_mcp.ports.store import ReadView, Store
from kalito_mcp.retrieval.known_names import find_session
from kalito_mcp.retrieval.latest import latest_ends
from kalito_mcp.retrieval.search import Searcher
from kalito_mcp.safety.trust import is_withheld, trusted

_log: Final = logging.getLogger("kalito.contexts")
_FIRST_TURN: Final = 2
"""Messages of it."""

_DIGEST: Final = 12
"""Of what the latest conversations left open, or what came out of them."""

_TASKS: Final = 100
_TASK_CHARS: Final = 400
"""The newest tasks, among which those are looked for that were completed, and the beginnings that are compared."""

_LEAST_TOKENS: Final = 24
"""Of a message in a context, with its label. Only a conversation of very short ones leaves some of the budget empty."""

_ENDS_OF_TIME: Final = 8
"""Conversations whose ends are shown if the query asks for conversations of a time."""

_NO_PARTS: Final = SessionView(tail=(), pins=(), summaries=())

T = TypeVar("T")
_Reading = Callable[[ReadView], Coroutine[Any, Any, T]]


@dataclass(frozen=True, slots=True)
class ContextRequest:
    """A request for a context. The model already sees `seen_messages` of the newest, and the newest is left out if it
    `is_pending`: the input that the model answers. Records that are `seen` are not matches either."""

    scope: Scope
    include: frozenset[Include] = frozenset()
    query: str | None = None
    seen_messages: int = 0
    is_pending: bool = False
    seen: frozenset[SeenPart] = frozenset()
    budget: int = 0
    """Tokens that the context may have."""
    also: tuple[str, ...] = ()
    """Other wordings of the query."""

    @property
    def has_query(self) -> bool:
        """Whether anything is searched for."""
        return bool(self.query and self.query.strip())


class SessionParts(NamedTuple):
    """A session and its parts, with up to `tail` of its newest messages. `withheld` are the untrusted parts."""

    session: Session
    parts: SessionView
    tail: int
    withheld: SessionView = _NO_PARTS

    def recent(self, request: ContextRequest) -> tuple[list[MessageWithImportance], list[MessageWithImportance]]:
        """The messages that may be shown, oldest first, and the pending one, if there is one."""
        recent = [one for one in self.parts.tail if one.seq <= self.seen_from(request)]
        pending = [recent.pop()] if request.is_pending and recent and recent[-1].role == "user" else []
        return recent, pending

    @property
    def has_begun(self) -> bool:
        """Whether the conversation has had more than its first turn."""
        return self.session.message_count > _FIRST_TURN

    def seen_from(self, request: ContextRequest) -> int:
        """The seq after which the model sees the messages itself."""
        return self.session.message_count - request.seen_messages


@dataclass(frozen=True, slots=True)
class Gathered:
    """The material of a context."""

    of_session: SessionParts
    known: Known = field(default_factory=Known)
    found: Recalled = field(default_factory=Recalled)
    digest: Sequence[KnownRecord] = ()
    latest: Sequence[Sequence[Hit]] = ()
    is_about_latest: bool = False


class Gatherer:
    """Gathers what a context is built from, for the sessions of a store."""

    def __init__(
        self,
        store: Store,
        searcher: Searcher,
        clock: Clock,
        cache: CachePolicy,
        *,
        policy: ContextPolicy,
    ) -> None:
        self._store = store
        self._searcher = searcher
        self._clock = clock
        self._policy = policy
        self._recaller = Recaller(searcher, wanted=policy.relevant_messages)
        self._known = KnownReader(cache)
        self._sessions: RevisionCache[tuple[Scope, frozenset[Include]], SessionParts] = RevisionCache(cache)

    async def gather(self, request: ContextRequest) -> Gathered:
        """Read what is not cached.

        Raises:
            SessionNotFound: the named session does not exist, and its name is mistyped or there is no query.
            InvalidInput: the agent is mistyped, or the session is of another project.
        """
        query = await self._recaller.prepare(request.scope, request.query, request.include, request.also)
        moment = Moment(await self._store.revision(request.scope.owner), self._clock.steady_s())
        if query is None:
            session = self._cached_session(request, moment)
            known = session and self._known.cached(_of_known(request, session), request.include, moment)
            if session is not None and known is not None and session.has_begun:
                return Gathered(session, known)
        try:
            return await self._store.read(lambda view: self._gather(request, query, moment, lambda work: work(view)))
        except StorageDamaged:
            # A damaged page of pins or summaries must not stop a conversation; `doctor --deep` names the page.
            _log.exception("session %s: some parts are damaged and were left out", request.scope.session)
            return await self._gather(request, query, moment, self._store.read)

    def forget_session(self, session_id: str) -> None:
        """Read the session again next time."""
        self._sessions.drop_where(lambda key: key[0].session == session_id)

    async def _gather(
        self,
        request: ContextRequest,
        query: Query | None,
        moment: Moment,
        read: Callable[[_Reading[Any]], Awaitable[Any]],
    ) -> Gathered:
        """Gather what is not cached through `read`: all parts in one view, or each part in its own, so that damaged
        ones are left out."""
        session = self._cached_session(request, moment)
        if session is None:
            try:
                session = await read(partial(self._session_parts, request))
                self._keep_session(request, session, moment)
            except StorageDamaged:
                session = await read(partial(self._newest, request))
        place = _of_known(request, session)
        known = self._known.cached(place, request.include, moment)
        if known is None:
            try:
                known = await read(partial(self._read_known, request, session))
                self._known.keep(place, request.include, known, moment)
            except StorageDamaged:
                known = Known()
        asks_for_latest = query is not None and query.prepared.question.asks_where_left_off
        digest: Sequence[KnownRecord] = ()
        latest: Sequence[Sequence[Hit]] = ()
        if asks_for_latest or not session.has_begun:
            latest = await read(partial(self._latest, request, query if asks_for_latest else None, session))
            since, without = min((one.created_at for end in latest for one in end), default=0), session.session.id
            digest = await read(lambda view: _read_digest(view, place, since, without=without, most=_DIGEST))
        asks_for_latest = asks_for_latest and bool(latest)
        found = Recalled()
        if query is not None and not (asks_for_latest and query.prepared.question.asks_nothing_else):
            found = await read(partial(self._recall, request, query, session, known))
        return Gathered(session, known, found, digest, latest, asks_for_latest)

    def _keep_session(self, request: ContextRequest, session: SessionParts, moment: Moment) -> None:
        if session.tail:  # it is recorded
            self._sessions.put(_of_session(request), session, revision=moment.revision, now_s=moment.steady_s)

    def _cached_session(self, request: ContextRequest, moment: Moment) -> SessionParts | None:
        scope = request.scope
        found = self._sessions.get(_of_session(request), revision=moment.revision, now_s=moment.steady_s)
        if found is None or scope.agent not in (None, found.session.agent):
            return None
        scope.admit(found.session)
        is_enough = found.tail >= min(self._tail(request), found.session.message_count)
        return found if is_enough else None

    def _tail(self, request: ContextRequest) -> int:
        """How many of the newest messages may fit. One more, because the newest may be the pending input."""
        return max(self._policy.recent_messages, request.budget // _LEAST_TOKENS) + request.seen_messages + 1

    async def _session_parts(self, request: ContextRequest, view: ReadView) -> SessionParts:
        """The session and its parts; a session without any, if it is not yet known."""
        scope = request.scope
        if scope.session is None:
            return self._unrecorded(request)
        try:
            session = await find_session(view, scope)
        except SessionNotFound as error:
            if error.nearest or not request.has_query:
                raise
            return self._unrecorded(request)
        tail = self._tail(request)
        parts = await view.conversations.view(
            session,
            tail=tail,
            pins=self._policy.pins,
            include_internal=Include.INTERNAL in request.include,
        )
        withheld = _NO_PARTS
        if Include.UNTRUSTED not in request.include:
            parts, withheld = trusted(parts)
        return SessionParts(session, parts, tail, withheld)

    def _unrecorded(self, request: ContextRequest) -> SessionParts:
        scope = request.scope
        session_id = "" if scope.session is None else checked_name(scope.session, "session_id")
        session = unrecorded_session(
            scope.owner,
            session_id,
            self._clock.now_ms(),
            scope.agent or scope.limits.agent or DEFAULT_AGENT,
            scope.project,
        )
        return SessionParts(session, _NO_PARTS, 0)

    async def _newest(self, request: ContextRequest, view: ReadView) -> SessionParts:
        """Only the newest messages, for a session whose other parts cannot be read."""
        session = await find_session(view, request.scope)
        newest, shown = session.message_count, self._policy.fallback_messages
        tail = await view.conversations.messages(session, first_seq=newest - shown + 1, last_seq=newest)
        parts, withheld = trusted(SessionView(tuple(one for one in tail if not one.is_hidden), (), ()))
        return SessionParts(session, parts, shown, withheld)

    async def _read_known(self, request: ContextRequest, of_session: SessionParts, view: ReadView) -> Known:
        return await self._known.read(view, _of_known(request, of_session), request.include)

    async def _latest(
        self, request: ContextRequest, query: Query | None, of_session: SessionParts, view: ReadView
    ) -> Sequence[Sequence[Hit]]:
        """How the latest other conversations ended; outside of any project, personal ones, unless the query asks."""
        session = of_session.session
        scope = replace(request.scope.anywhere(), agent=session.agent, project=request.scope.project)
        if query is None:
            scope = _of_known(request, of_session)
        spans = [] if query is None else query.prepared.question.past(query.prepared.now_ms)
        most = _ENDS_OF_TIME if spans else self._policy.latest_sessions
        return await latest_ends(
            view, scope, most=most, filters=SearchFilters(seen=request.seen), spans=spans, without=session.id
        )

    async def _recall(
        self, request: ContextRequest, query: Query, of_session: SessionParts, known: Known, view: ReadView
    ) -> Recalled:
        session, scope = of_session.session, request.scope
        _, pending = of_session.recent(request)
        # Recent messages may not fit, and are shown as matches then.
        already_shown = {one.record_id for one in pending} | {pin.id for pin in of_session.parts.pins}
        return await self._recaller.recall(
            view,
            query,
            replace(scope.anywhere(), agent=session.agent, project=scope.project),
            session,
            already_shown | known.withheld,
            seen_from=of_session.seen_from(request),
            seen=request.seen,
        )


def _of_known(request: ContextRequest, of_session: SessionParts) -> Scope:
    """The scope for known facts: the project of the caller, or else of the session."""
    session = of_session.session
    project = request.scope.project or session.project or PERSONAL
    return replace(request.scope.anywhere(), agent=session.agent, project=project)


def _of_session(request: ContextRequest) -> tuple[Scope, frozenset[Include]]:
    """The cache key of a session's parts: it does not depend on the project to which the caller is narrowed."""
    return request.scope.anywhere().of_session(request.scope.session or ""), request.include


async def _read_digest(view: ReadView, scope: Scope, since: int, *, without: str, most: int) -> Sequence[KnownRecord]:
    """Open items and results at the end of the conversations since then, at most this many: the latest conversation
    first, and open items first in each. Leaves out the session `without`, and what a task that was completed since then
    names."""
    found = [
        one
        for one in await view.records.left_open(scope, limit=2 * most)
        if one.created_at >= since and one.session_id != without and not is_withheld(one.origin, one.text)
    ]
    if any(one.kind is Kind.OPEN for one in found):
        done = await _completed(view, scope)
        found = [one for one in found if one.kind is not Kind.OPEN or not _is_done(one, done)]
    of_each = [list(of_one) for _, of_one in groupby(found, key=lambda one: one.session_id)]
    in_order = [one for of_one in of_each for one in sorted(of_one, key=lambda one: one.kind is not Kind.OPEN)]
    return without_repeats(in_order, (), most=most)


async def _completed(view: ReadView, scope: Scope) -> Sequence[tuple[str, int]]:
    """What the completed ones of the newest tasks say, and when they were completed."""
    tasks = await view.records.list_records(scope, frozenset({RecordType.TASK}), limit=_TASKS)
    return [
        (one.text[:_TASK_CHARS], from_iso(one.content["completed_at"]))
        for one in tasks
        if one.content["status"] == TaskStatus.COMPLETED
    ]


def _is_done(one: KnownRecord, done: Sequence[tuple[str, int]]) -> bool:
    return any(one.created_at < at and name_the_same(task, one.text) for task, at in done)
