"""Whole conversations: their sessions, messages and summaries."""

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from kalito_mcp.domain.arguments import checks_arguments
from kalito_mcp.domain.graph import FeedbackLabel
from kalito_mcp.domain.imports import StoredTurn
from kalito_mcp.domain.memory_records import MemoryRecord
from kalito_mcp.domain.records import (
    ConversationSummary,
    MessageWithImportance,
    SessionView,
    message_record_id,
)
from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.search import Hit
from kalito_mcp.domain.sessions import MemoryStats, Session, SessionCursor
from kalito_mcp.domain.validation import message_number
from kalito_mcp.errors import RecordNotFound, SessionNotFound
from kalito_mcp.memory.part import Part
from kalito_mcp.memory.records import Records
from kalito_mcp.memory.timeline import Timeline
from kalito_mcp.ports.store import ReadView, Schema, Store, WriteTransaction
from kalito_mcp.retrieval.known_names import find_session, nearest
from kalito_mcp.safety.trust import trusted
from kalito_mcp.text.titles import is_named, title_of
from kalito_mcp.upkeep.store_layers import no_new_words

_TURNS_AT_ONCE: Final = 1_000
_MOST_COMPARED: Final = 1_000
"""Sessions whose names are compared with that of a new one."""
_MOST_AGENTS: Final = 10_000
_TITLES_AT_ONCE: Final = 200


@dataclass(frozen=True, slots=True)
class Transcript:
    """A conversation: what was said, oldest first, and its other records, newest first. Forgotten, erased and internal
    ones are left out."""

    session: Session
    messages: Sequence[MessageWithImportance]
    records: Sequence[MemoryRecord]


@checks_arguments
class Conversations(Part):
    """Reads and moves sessions, and brings their summaries up to date."""

    @property
    def timeline(self) -> Timeline:
        """The same for a person who looks through them."""
        return Timeline(self.place, self._services)

    def new_id(self) -> str:
        """An unguessable handle for a conversation without one."""
        return self._services.ids.session_id()

    async def get(self, session_id: str) -> Session | None:
        """The session of this id, of any agent and project, if any."""
        scope = await self.place.of_session(session_id)

        async def read(view: ReadView) -> Session | None:
            return await view.sessions.get(scope)

        return await self.place.store.read(read)

    async def recent(
        self,
        *,
        prefix: str = "",
        agent_id: str | None = None,
        limit: int = 100,
        before: SessionCursor | None = None,
        has_forgotten: bool = True,
    ) -> Sequence[Session]:
        """Sessions whose id starts with the prefix, those with the newest message first, that follow the place
        `before`. Unless the list `has_forgotten`, without those of which all is forgotten or erased."""
        scope = self.place.scope(None, agent_id)
        return await self.place.store.read(
            lambda view: view.sessions.list_recent(
                scope, prefix=prefix, limit=limit, before=before, has_forgotten=has_forgotten
            )
        )

    async def begun_before(self, session_id: str | None = None, *, limit: int) -> Sequence[Session]:
        """At most `limit` sessions that were begun before a session, newest first; without one, from the newest. Those
        of which all is forgotten or erased are left out.

        Raises:
            SessionNotFound: no such session.
        """
        scope = self.place.scope()

        async def look(view: ReadView) -> Sequence[Session]:
            before = None
            if session_id is not None:
                before = await self.place.session_within(view, session_id)
                if before is None:
                    raise SessionNotFound(session_id)
            return await view.sessions.list_begun(scope, before=before, limit=limit, has_forgotten=False)

        return await self.place.store.read(look)

    async def stats(self, session_id: str) -> MemoryStats:
        """Counts, dates and mean importance of a session. Raises SessionNotFound."""
        return await self._manager.memory_stats(session_id)

    async def messages(
        self, session_id: str, *, first_seq: int = 1, last_seq: int
    ) -> tuple[Session, Sequence[MessageWithImportance]]:
        """A session, and its messages from `first_seq` to `last_seq`, both included, by their places in it. Forgotten,
        erased and internal ones have no text. Raises SessionNotFound."""
        scope = await self.place.of_session(session_id)

        async def look(view: ReadView) -> tuple[Session, Sequence[MessageWithImportance]]:
            session = await find_session(view, scope)
            return session, await view.conversations.messages(session, first_seq=first_seq, last_seq=last_seq)

        return await self.place.store.read(look)

    async def transcript(self, session_id: str) -> Transcript:
        """A whole conversation. Raises SessionNotFound."""
        scope = await self.place.of_session(session_id)

        async def look(view: ReadView) -> tuple[Session, Sequence[MessageWithImportance]]:
            session = await find_session(view, scope)
            return session, await view.conversations.messages(session, first_seq=1, last_seq=session.message_count)

        session, said = await self.place.store.read(look)
        records = await Records(self.place, self._services).all(
            frozenset(), agent_id=session.agent, session_id=session.id
        )
        return Transcript(session, [one for one in said if not one.is_hidden], records)

    async def turns(self, session: Session) -> AsyncIterator[Sequence[StoredTurn]]:
        """The messages of a session, forgotten ones with their text, in order and up to 1,000 at once."""
        after_seq = 0

        async def read(view: ReadView) -> Sequence[StoredTurn]:
            return await view.imports.turns(session, after_seq=after_seq, limit=_TURNS_AT_ONCE)

        while turns := await self.place.store.read(read):
            yield turns
            after_seq = turns[-1].seq

    async def around(self, message_id: str, count: int) -> Sequence[MessageWithImportance]:
        """Up to `count` messages of the same conversation before a message and after it, in their order, without it
        and without what is withheld (`safety.trust`).

        Raises:
            RecordNotFound: no such message. InvalidInput: it is not a message's id.
        """
        number = message_number(message_id)

        async def look(view: ReadView) -> Sequence[MessageWithImportance]:
            record = await view.records.record(self.place.scope().anywhere(), message_record_id(number))
            if record is None or record.session_id is None or record.seq is None:
                raise RecordNotFound(f"no message {message_id!r}; use an id returned by a search")
            session = await find_session(view, self.place.scope().anywhere().of_session(record.session_id))
            first, last = max(1, record.seq - count), record.seq + count
            found = await view.conversations.messages(session, first_seq=first, last_seq=last)
            visible, _ = trusted(SessionView(tuple(one for one in found if not one.is_hidden), (), ()))
            return [one for one in visible.tail if one.seq != record.seq]

        return await self.place.store.read(look)

    async def is_empty(self) -> bool:
        """Whether nothing is remembered yet."""
        return not any((await self.totals()).values())

    async def similar_name(self, session_id: str) -> str | None:
        """The name of another session that this one may be a mistyped form of."""
        known = await self.recent(limit=_MOST_COMPARED)
        return nearest(session_id, [one.id for one in known if one.id != session_id])

    async def titles(self, session_ids: Iterable[str]) -> Mapping[str, str]:
        """What these sessions are called, by id; those that have no title are left out (see `titles.title_of`)."""
        return await _titles(self.place.store, self.place.scope().anywhere(), session_ids)

    async def summarize(self, session_id: str) -> Sequence[ConversationSummary]:
        """Summarise all messages without a summary, including the newest, and fold what is due; the new summaries.
        Raises SessionNotFound."""
        self.place.check_remembered()
        return await self._services.summaries.summarize_all(await self.place.of_session(session_id))

    async def adopt_summary(self, session_id: str, summary: str) -> ConversationSummary | None:
        """Store the caller's summary of all messages without one; None if every message has a summary.

        Raises:
            InvalidInput: the text is empty or too long.
            SessionNotFound: no such session.
            SessionFinalized: the session is closed.
        """
        self.place.check_remembered()
        return await self._services.summaries.adopt(await self.place.of_session(session_id), summary)

    async def score(self, session_id: str) -> int:
        """Score all visible messages of a session again, by their words and roles; how many scores changed. Raises
        SessionNotFound."""
        with no_new_words():
            return await self._manager.score_session_messages(session_id)

    async def move(self, session_id: str, project: str | None) -> Session:
        """Give a session, with all its messages, summaries and pins, to a project; None makes it personal.

        Raises:
            SessionNotFound: no such session.
            InvalidInput: the project's name is not acceptable, mistyped, or shared by several projects.
        """
        target = await self.place.target(project)
        scope = replace(await self.place.of_session(session_id), project=None)

        async def move(transaction: WriteTransaction) -> Session:
            await transaction.sessions.move(await find_session(transaction, scope), target)
            return await find_session(transaction, scope)

        with no_new_words():
            return await self.place.store.write(move)

    async def withdraw_feedback(
        self,
        target_id: str,
        label: FeedbackLabel | str,
        *,
        session_id: str | None = None,
        agent_id: str | None = None,
    ) -> None:
        """Take back the newest feedback of this label that `Memory.record_feedback` recorded for a target.

        Raises:
            RecordNotFound: it is neither a question nor an answer, or has no such feedback.
            InvalidInput, Conflict, SessionNotFound: as `Memory.record_feedback`.
        """
        scope = await self.place.of_session(session_id, agent_id)
        with no_new_words():
            await self._services.graphs.withdraw_feedback(scope, target_id, label)

    async def graph_overview(self, *, session_id: str | None = None, agent_id: str | None = None) -> dict[str, Any]:
        """Counts and top nodes of a session's graph, or of an agent's, JSON-ready. Raises SessionNotFound."""
        return await self._services.graphs.overview(await self.place.of_session(session_id, agent_id))

    def owed_age_s(self) -> float:
        """For how many seconds background work of this process has been owed; 0 if none is."""
        return self._services.owed.age_s

    async def schema(self) -> Schema:
        """Which store they are in, and how far its schema is. Raises StorageError if it cannot be reached."""
        return await self.place.store.schema()

    async def totals(self) -> Mapping[str, int]:
        """How many sessions, messages, pins, summaries, notes, tasks and documents there are, of all projects."""
        return await self.place.store.read(lambda view: view.sessions.totals(self.place.scope()))

    async def agents(self) -> Sequence[str]:
        """The ids of the newest ten thousand agents, newest first; within a limit to a project by name."""
        return await self.place.store.read(lambda view: view.sessions.agents(self.place.scope(), limit=_MOST_AGENTS))


async def with_titles(store: Store, scope: Scope, hits: Sequence[Hit]) -> tuple[Hit, ...]:
    """The hits of a search with the titles of their sessions, except where the id is the title. What the person is may
    have been said in another project: that session's title, which quotes it, stays there."""
    ids = {hit.session_id for hit in hits if hit.session_id is not None and not is_named(hit.session_id)}
    reached = scope if scope.session is None else scope.anywhere()
    titles = await _titles(store, reached, sorted(ids)) if ids else {}
    return tuple(replace(hit, session_title=titles.get(hit.session_id or "")) for hit in hits)


async def _titles(store: Store, scope: Scope, session_ids: Iterable[str]) -> Mapping[str, str]:
    distinct = list(dict.fromkeys(session_ids))
    said: dict[str, Sequence[str]] = {}
    unnamed = [one for one in distinct if not is_named(one)]
    for place in range(0, len(unnamed), _TITLES_AT_ONCE):
        part = unnamed[place : place + _TITLES_AT_ONCE]
        said.update(await store.read(partial(_first_texts, scope, part)))
    found = {one: title_of(one, said.get(one, ())) for one in distinct}
    return {session_id: title for session_id, title in found.items() if title is not None}


async def _first_texts(scope: Scope, session_ids: Sequence[str], view: ReadView) -> Mapping[str, Sequence[str]]:
    return await view.sessions.first_texts(scope, session_ids)
