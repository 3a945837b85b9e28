"""Conversations as a person looks through them: day by day, with what came of them and what is open."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from kalito_mcp.domain.arguments import checks_arguments
from kalito_mcp.domain.known import KnownRecord
from kalito_mcp.domain.memory_records import PROGRAM, Editor
from kalito_mcp.domain.records import HOOK_KEY, MessageWithImportance
from kalito_mcp.domain.sessions import Session, SessionCursor
from kalito_mcp.errors import SessionNotFound
from kalito_mcp.memory.part import Part
from kalito_mcp.ports.store import ReadView
from kalito_mcp.ports.timeline import BegunSession
from kalito_mcp.retrieval.known_names import find_session
from kalito_mcp.upkeep.store_layers import no_new_words

_NOTES_OF_ONE: Final = 8
_NOTES_OF_SESSION: Final = 200
_RECENT: Final = 500
_LISTENED: Final = 12
"""Sessions among which the newest messages are."""


class Hidden(StrEnum):
    """Why a message has no words: it can be brought back, it is gone, or it is not meant for a chat."""

    FORGOTTEN = "forgotten"
    ERASED = "erased"
    INTERNAL = "internal"


@dataclass(frozen=True, slots=True)
class SessionWithNotes:
    """A session, the host that recorded its first message, and what came of it: summaries, then pins."""

    session: Session
    client: str | None
    notes: Sequence[KnownRecord]


@dataclass(frozen=True, slots=True)
class Turns:
    """Some messages of a session in order, and why those that are hidden are, by their record ids."""

    session: Session
    messages: Sequence[MessageWithImportance]
    hidden: Mapping[str, Hidden]


@dataclass(frozen=True, slots=True)
class Said:
    """A message, its session, and the host that recorded the first message of that."""

    message: MessageWithImportance
    session: Session
    client: str | None


@dataclass(frozen=True, slots=True)
class Heard:
    """A host whose hooks record: the session and the moment of its newest message, and since when, among the newest
    sessions."""

    client: str
    session_id: str
    newest_at: int
    since: int


@checks_arguments
class Timeline(Part):
    """Reads sessions with what came of them, and closes open points. Erased sessions are left out."""

    async def sessions(
        self,
        *,
        client: str | None = None,
        begun_until: int | None = None,
        before: SessionCursor | None = None,
        is_forgotten: bool = False,
        limit: int,
    ) -> Sequence[SessionWithNotes]:
        """At most `limit` sessions, those with the newest message first, that follow the place `before`: that this host
        recorded, and that had begun by this moment. Each with its summaries and its eight most important pins. Those of
        which all is forgotten are left out, or if `is_forgotten` all others."""
        scope = self.place.scope()

        async def look(view: ReadView) -> Sequence[SessionWithNotes]:
            found = await view.timeline.sessions(
                scope, client=client, begun_until=begun_until, before=before, is_forgotten=is_forgotten, limit=limit
            )
            return await self._with_notes(view, found, _NOTES_OF_ONE)

        return await self.place.store.read(look)

    async def newest(self, *, client: str | None = None, session_id: str | None = None, limit: int) -> Sequence[Said]:
        """The newest messages that can be seen, newest first: at most `limit`, of the newest sessions of this host, or
        of one session."""
        scope = await self.place.of_session(session_id)

        async def look(view: ReadView) -> Sequence[Said]:
            if session_id is None:
                among = await view.timeline.sessions(scope, client=client, limit=_LISTENED)
            else:
                begun = await view.timeline.begun(scope)
                among = [] if begun is None else [begun]
            said: list[Said] = []
            for one in among:
                newest = one.session.message_count
                first_seq = max(1, newest - limit + 1)
                messages = await view.conversations.messages(one.session, first_seq=first_seq, last_seq=newest)
                said += [Said(message, one.session, one.client) for message in messages if not message.is_hidden]
            return sorted(said, key=lambda one: (one.message.created_at, one.message.id), reverse=True)[:limit]

        return await self.place.store.read(look)

    async def heard(self) -> Sequence[Heard]:
        """The hosts whose hooks recorded the newest 500 sessions, the one heard last first."""
        scope = self.place.scope()

        async def look(view: ReadView) -> Sequence[Heard]:
            of_client: dict[str, list[Session]] = {}
            for one in await view.timeline.sessions(scope, limit=_RECENT):
                if one.client is not None:
                    of_client.setdefault(one.client, []).append(one.session)
            found: list[Heard] = []
            for client, sessions in of_client.items():
                newest = sessions[0]
                first = await view.imports.turns(newest, after_seq=0, limit=1)
                if any((one.client_key or "").startswith(HOOK_KEY) for one in first):
                    since = min(one.created_at for one in sessions)
                    found.append(Heard(client, newest.id, newest.said_at, since))
            return found

        return await self.place.store.read(look)

    async def session(self, session_id: str) -> SessionWithNotes:
        """One session of any project, with at most 200 pins. Raises SessionNotFound, even if it was erased."""
        scope = await self.place.of_session(session_id)

        async def look(view: ReadView) -> SessionWithNotes:
            begun = await view.timeline.begun(scope)
            if begun is None:
                raise SessionNotFound(session_id)
            return (await self._with_notes(view, [begun], _NOTES_OF_SESSION))[0]

        return await self.place.store.read(look)

    async def turns(self, session_id: str, *, first_seq: int, last_seq: int) -> Turns:
        """The messages of a session from `first_seq` to `last_seq`, both included. Raises SessionNotFound."""
        scope = await self.place.of_session(session_id)

        async def look(view: ReadView) -> Turns:
            session = await find_session(view, scope)
            said = await view.conversations.messages(session, first_seq=first_seq, last_seq=last_seq)
            hidden = {one.record_id: await self._why_hidden(view, one) for one in said if one.is_hidden}
            return Turns(session, said, hidden)

        return await self.place.store.read(look)

    async def clients(self) -> Sequence[str]:
        """The hosts that recorded the newest 200 sessions, in order of name."""
        return await self.place.store.read(lambda view: view.timeline.clients(self.place.scope(), among=_RECENT))

    async def open_points(self, *, limit: int) -> Sequence[KnownRecord]:
        """The newest `limit` points that were open at the end of their sessions, among the newest 1,000 pins."""
        return await self.place.store.read(lambda view: view.timeline.open_points(self.place.scope(), limit=limit))

    async def messages_by_day(self, *, days: int) -> Sequence[tuple[int, int]]:
        """Each of the last `days` days up to today, oldest first, with the number of its messages. A day is an ordinal
        of `domain.zone`, in the user's time zone. Forgotten messages do not count."""
        zone = self._services.zone
        today = zone.day(self.place.clock.now_ms())
        first = max(1, today - days + 1)
        begins = [zone.first_ms(day) for day in range(first, today + 2)]
        counts = await self.place.store.read(lambda view: view.timeline.messages_between(self.place.scope(), begins))
        return list(zip(range(first, today + 1), counts, strict=True))

    async def close(self, record_ids: Sequence[str], *, editor: Editor = PROGRAM) -> Sequence[str]:
        """Mark open points as done: no later conversation begins with them. `Memory.restore` opens them again. Unlike
        `Memory.forget`, the same words may be remembered again. The ids of those that were open until now.

        Raises:
            RecordNotFound: no such record; nothing was written.
            InvalidInput: a record is not an open point; nothing was written.
        """
        with no_new_words():
            return await self._services.digests.close(self.place.scope(), record_ids, editor)

    async def _with_notes(
        self, view: ReadView, begun: Sequence[BegunSession], most_pins: int
    ) -> Sequence[SessionWithNotes]:
        ids = [one.session.id for one in begun]
        notes: dict[str | None, list[KnownRecord]] = {}
        for note in await view.timeline.notes(self.place.scope(), ids, limit=most_pins):
            notes.setdefault(note.session_id, []).append(note)
        return [SessionWithNotes(one.session, one.client, notes.get(one.session.id, [])) for one in begun]

    async def _why_hidden(self, view: ReadView, message: MessageWithImportance) -> Hidden:
        record = await view.records.record(self.place.scope(), message.record_id)
        if record is None:
            return Hidden.ERASED
        return Hidden.FORGOTTEN if record.is_deleted else Hidden.INTERNAL
