"""Makes pins from stored messages, as owed work: after the call that recorded them was acknowledged."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

import anyio.to_thread

from kalito_mcp.domain.memory_records import DELETED_AT, SYSTEM_EDITOR, EditDraft, EditType, with_changes
from kalito_mcp.domain.records import MessageWithImportance, PinType, RecordType
from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.sessions import Session, SessionState
from kalito_mcp.pins.automatic import AutoPinPolicy, find_pins, subject_of
from kalito_mcp.pins.code import asked_code, confirmed_code
from kalito_mcp.pins.found import FoundPin, is_found_pin
from kalito_mcp.pins.reach import reach_of
from kalito_mcp.ports.clock import Clock, IdSource
from kalito_mcp.ports.conversations import PinDraft
from kalito_mcp.ports.store import ReadView, Store, WriteTransaction
from kalito_mcp.ports.tokens import TokenCounter
from kalito_mcp.safety.escaping import as_data
from kalito_mcp.text.analysis import index_text

_CHUNK: Final = 500
_MOST_COMPARED: Final = 500
"""Only so many of a session's newest pins can become outdated."""


class PinCollector:
    """Makes the automatic pins of a session."""

    def __init__(self, store: Store, counter: TokenCounter, clock: Clock, ids: IdSource, policy: AutoPinPolicy) -> None:
        self._store = store
        self._counter = counter
        self._clock = clock
        self._ids = ids
        self._policy = policy

    async def collect(self, scope: Scope) -> int:
        """Search the messages that were not searched yet, and return how many pins that made.

        If automatic pins are off, the messages only count as searched: turning them on later does not search them.
        """

        async def look(view: ReadView) -> tuple[Session | None, Sequence[MessageWithImportance]]:
            session = await view.sessions.get(scope)
            if session is None or session.pinned_seq >= session.message_count or not self._policy.enabled:
                return session, ()
            # With the last one that was searched: the next message may confirm its code.
            first, last = session.pinned_seq or 1, _end_of_chunk(session)
            return session, await view.conversations.messages(session, first_seq=first, last_seq=last)

        made = 0
        while True:
            session, messages = await self._store.trip(look)
            if session is None or session.pinned_seq >= session.message_count:
                return made
            searched, last = session.pinned_seq, _end_of_chunk(session)
            # In a thread, because that takes 10 ms.
            has_project = session.project is not None
            drafts = _newest(await anyio.to_thread.run_sync(self.drafts, messages, searched, has_project))
            added = await self._store.write_trip(partial(self._add, scope, messages, drafts, last))
            if added is None or (not drafts and last == session.message_count):
                return made
            made += added

    async def collect_few(
        self, transaction: WriteTransaction, session: Session, messages: Sequence[MessageWithImportance]
    ) -> None:
        """Search the session's last messages, as `collect` does. `messages` are those that were not searched yet, and
        the one before them."""
        if session.pinned_seq >= session.message_count:
            return
        drafts = _newest(self.drafts(messages, session.pinned_seq, session.project is not None))
        if drafts:
            await transaction.conversations.add_pins(session, drafts)
            await self._forget_outdated(transaction, session, drafts)
        await transaction.sessions.set_pinned_seq(session, session.message_count)

    async def _add(
        self,
        scope: Scope,
        messages: Sequence[MessageWithImportance],
        drafts: Sequence[PinDraft],
        last: int,
        transaction: WriteTransaction,
    ) -> int | None:
        """Add the pins of these messages, up to seq `last`, and return how many are new. None if the session takes
        none. If a message changed meanwhile, its drafts are out of date: nothing is added, and they are searched again.
        """
        session = await transaction.sessions.get(scope)
        if session is None or session.state is SessionState.FINALIZED:
            return None
        made = 0
        if drafts:
            now = await transaction.conversations.messages(
                session, first_seq=messages[0].seq, last_seq=messages[-1].seq
            )
            if list(now) != list(messages):
                return 0
            made = await transaction.conversations.add_pins(session, drafts)
            await self._forget_outdated(transaction, session, drafts)
        await transaction.sessions.set_pinned_seq(session, last)
        return made

    async def _forget_outdated(
        self, transaction: WriteTransaction, session: Session, drafts: Sequence[PinDraft]
    ) -> None:
        """Forget the session's older automatic pins about what the drafts say anew: an address, a version."""
        newer = {subject: draft for draft in drafts if (subject := subject_of(draft.content, draft.pin_type))}
        if not newer:
            return
        scope = Scope(owner=session.owner, session=session.id)
        kept = {draft.client_key for draft in newer.values()}
        for pin in await transaction.records.list_records(scope, frozenset({RecordType.PIN}), limit=_MOST_COMPARED):
            subject = subject_of(pin.text, PinType(str(pin.content["pin_type"]))) if is_found_pin(pin) else ""
            if subject in newer and pin.client_key not in kept:
                now_ms = self._clock.now_ms()
                content = with_changes(pin.content, {DELETED_AT: now_ms})
                edit = EditDraft(
                    EditType.DELETE, SYSTEM_EDITOR, now_ms, content, self._counter.count(as_data(pin.text))
                )
                await transaction.records.change(pin, edit)

    def drafts(self, messages: Sequence[MessageWithImportance], searched: int, has_project: bool) -> list[PinDraft]:
        """The pins to make from the messages, which follow each other; those up to number `searched` have theirs.
        `has_project` says whether their session is of one."""
        return [self._draft(message, pin, has_project) for message, pin in self._found(messages, searched)]

    def _found(
        self, messages: Sequence[MessageWithImportance], searched: int
    ) -> Iterator[tuple[MessageWithImportance, FoundPin]]:
        """The pins, each with the message that it quotes."""
        before: MessageWithImportance | None = None
        for message in messages if self._policy.enabled else ():
            if message.seq > searched:
                if before and (code := confirmed_code(message, before, self._policy.max_code_chars)):
                    yield before, code
                if before and (code := asked_code(message, before, self._policy.max_code_chars)):
                    yield message, code
                for pin in find_pins(message, self._policy):
                    yield message, pin
            before = message

    def _draft(self, message: MessageWithImportance, pin: FoundPin, has_project: bool) -> PinDraft:
        now_ms = self._clock.now_ms()
        return PinDraft(
            id=self._ids.record_id("pin", now_ms),
            content=pin.content,
            source_message_id=message.record_id,
            importance=pin.importance,
            tokens=self._counter.count(as_data(pin.content)),
            pin_type=pin.pin_type,
            created_at=message.created_at,
            client_key=pin.client_key,
            indexed=index_text(pin.content),
            origin=message.origin,
            reach=reach_of(pin.content, has_project=has_project, kind=pin.kind, pin_type=pin.pin_type),
        )


def _end_of_chunk(session: Session) -> int:
    """The seq of the last message to search in one piece."""
    return min(session.pinned_seq + _CHUNK, session.message_count)


def _newest(drafts: Sequence[PinDraft]) -> list[PinDraft]:
    """The drafts without those about something that a later one says anew."""
    last = {subject_of(draft.content, draft.pin_type): draft.client_key for draft in drafts}
    return [
        draft
        for draft in drafts
        if not (subject := subject_of(draft.content, draft.pin_type)) or last[subject] == draft.client_key
    ]
