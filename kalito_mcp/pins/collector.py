"""Makes pins from stored messages, as owed work: after the call that recorded them was acknowledged."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from kalito_mcp.domain.memory_records import DELETED_AT, SYSTEM_EDITOR, EditDraft, EditType, with_changes
from kalito_mcp.domain.records import MessageWithImportance, PinType, RecordType, Role
from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.sessions import Session, SessionState
from kalito_mcp.kinds.judge import SentenceJudge
from kalito_mcp.kinds.judged import Sentence
from kalito_mcp.kinds.own import Own, own_words
from kalito_mcp.pins.adding import add_new_pins
from kalito_mcp.pins.automatic import AutoPinPolicy, found_pins, pinnable, quotable, requested_pins
from kalito_mcp.pins.code import asked_code, confirmed_code, subject_of
from kalito_mcp.pins.found import FoundPin, is_found_pin
from kalito_mcp.pins.proposals import Said, answered
from kalito_mcp.ports.clock import Clock, IdSource
from kalito_mcp.ports.conversations import PinDraft
from kalito_mcp.ports.store import ReadView, Store, WriteTransaction
from kalito_mcp.ports.tokens import TokenCounter
from kalito_mcp.runtime.long_texts import read_aside
from kalito_mcp.safety.escaping import as_data
from kalito_mcp.text.analysis import index_text

_CHUNK: Final = 100
"""Messages that are searched in one piece: a second of judging their sentences."""
_SHORT_CHARS: Final = 4_096
"""Texts up to this long are searched at once, in less than a millisecond. A trip to a thread takes a tenth of one."""
_MOST_COMPARED: Final = 500
"""Only this many of a session's newest pins can become outdated."""


@dataclass(frozen=True, slots=True)
class Unsearched:
    """Messages of a session that were not searched for pins, up to number `last`, and before them the last one that
    was. If it `is_rest`, that is the newest of the session."""

    session: Session
    last: int
    is_rest: bool
    messages: Sequence[MessageWithImportance] = ()


class PinCollector:
    """Makes the automatic pins of a session."""

    def __init__(
        self,
        store: Store,
        judge: SentenceJudge,
        counter: TokenCounter,
        clock: Clock,
        ids: IdSource,
        policy: AutoPinPolicy,
    ) -> None:
        self._store = store
        self._judge = judge
        self._counter = counter
        self._clock = clock
        self._ids = ids
        self._policy = policy

    async def collect(self, scope: Scope) -> int:
        """Search the messages that were not searched yet, and return how many pins that made.

        If automatic pins are off, the messages only count as searched: turning them on later does not search them.
        """
        return await self.add_found(scope, await self._read(scope))

    async def add_found(self, scope: Scope, unsearched: Unsearched | None) -> int:
        """As `collect`, beginning with what was just read."""
        made = 0
        while unsearched is not None:
            session, messages = unsearched.session, unsearched.messages
            drafts = await self.drafts(messages, session.pinned_seq, session.project is not None) if messages else ()
            added = await self._store.write(partial(self._add, scope, unsearched, _newest(drafts)))
            made += added or 0
            if added is not None and unsearched.is_rest:
                break
            unsearched = await self._read(scope)
        return made

    async def look(self, session: Session, view: ReadView) -> Unsearched | None:
        """A piece of the session's messages that were not searched yet. None if there are no such messages, or if the
        session takes no pins."""
        if session.state is SessionState.FINALIZED or session.message_count <= session.pinned_seq:
            return None
        if not self._policy.enabled:
            return Unsearched(session, session.message_count, is_rest=True)
        last = min(session.pinned_seq + _CHUNK, session.message_count)
        # With the last one that was searched: the next message may confirm its code, or what it proposes.
        first = session.pinned_seq or 1
        messages = await view.conversations.messages(session, first_seq=first, last_seq=last)
        return Unsearched(session, last, last == session.message_count, messages)

    async def _read(self, scope: Scope) -> Unsearched | None:
        async def look(view: ReadView) -> Unsearched | None:
            session = await view.sessions.get(scope)
            return None if session is None else await self.look(session, view)

        return await self._store.read(look)

    async def _add(
        self, scope: Scope, searched: Unsearched, drafts: Sequence[PinDraft], transaction: WriteTransaction
    ) -> int | None:
        """Add what was found, and return how many pins are new. None if a message or the session changed since it was
        searched: then nothing is added."""
        if not drafts:
            return 0 if await transaction.sessions.set_pinned_seq(searched.session, searched.last) else None
        session = await transaction.sessions.get(scope)
        if session is None or session.pinned_seq != searched.session.pinned_seq:
            return None
        first, last = searched.messages[0], searched.messages[-1]
        now = await transaction.conversations.messages(session, first_seq=first.seq, last_seq=last.seq)
        if list(now) != list(searched.messages):
            return None
        if not await transaction.sessions.set_pinned_seq(session, searched.last):
            return None
        made = await add_new_pins(transaction, session, drafts)
        await self._forget_outdated(transaction, session, drafts)
        return made

    async def _forget_outdated(
        self, transaction: WriteTransaction, session: Session, drafts: Sequence[PinDraft]
    ) -> None:
        """Forget the session's older automatic pins of code that the drafts replace."""
        newer = {subject: draft for draft in drafts if (subject := _code_of(draft))}
        if not newer:
            return
        scope = Scope(owner=session.owner, session=session.id)
        kept = {draft.client_key for draft in newer.values()}
        for pin in await transaction.records.list_records(scope, frozenset({RecordType.PIN}), limit=_MOST_COMPARED):
            is_code = pin.content["pin_type"] == PinType.CODE and is_found_pin(pin)
            if is_code and subject_of(pin.text) in newer and pin.client_key not in kept:
                now_ms = self._clock.now_ms()
                content = with_changes(pin.content, {DELETED_AT: now_ms})
                edit = EditDraft(
                    EditType.DELETE, SYSTEM_EDITOR, now_ms, content, self._counter.count(as_data(pin.text))
                )
                await transaction.records.change(pin, edit)

    async def drafts(
        self, messages: Sequence[MessageWithImportance], searched: int, has_project: bool
    ) -> list[PinDraft]:
        """The pins to make from the messages, which follow each other; those up to number `searched` have theirs.
        `has_project` says whether their session is of one."""
        if not self._policy.enabled:
            return []
        # Of what has its pins already, only an assistant's proposal matters.
        asked = [one for one in messages if one.role is Role.USER and one.seq > searched]
        own = dict(zip(asked, await own_words(self._judge, [one.text for one in asked]), strict=True))
        chars = sum(len(one.text) for one in messages)
        sentences = await read_aside(
            chars, lambda: [_read(one, own.get(one, Own())) for one in messages], most=_SHORT_CHARS
        )
        reading = await self._judge.read([one for each in sentences for one in each])
        said: list[Said] = []
        begin = 0
        for each in sentences:
            end = begin + len(each)
            vectors = None if reading.vectors is None else reading.vectors[begin:end]
            said.append(Said(each, reading.judged[begin:end], vectors))
            begin = end
        work = partial(self._drafts, messages, said, own, searched, has_project)
        return await read_aside(chars, work, most=_SHORT_CHARS)

    def _drafts(
        self,
        messages: Sequence[MessageWithImportance],
        said_in_each: Sequence[Said],
        own: Mapping[MessageWithImportance, Own],
        searched: int,
        has_project: bool,
    ) -> list[PinDraft]:
        drafts: list[PinDraft] = []
        before, said_before = None, None
        for message, said in zip(messages, said_in_each, strict=True):
            if message.seq > searched:
                code = self._code_drafts(message, before)
                found = found_pins(
                    message,
                    said.sentences,
                    said.judged,
                    self._policy,
                    proposed=partial(answered, said_before, said),
                    has_project=has_project,
                    confirms_code=any(draft.source_message_id != message.record_id for draft in code),
                )
                asked = requested_pins(message, own.get(message, Own()), self._policy, has_project=has_project)
                drafts += [*code, *(self._draft(message, pin) for pin in (*asked, *found))]
            before, said_before = message, said if message.role == Role.ASSISTANT else None
        return drafts

    def _code_drafts(self, message: MessageWithImportance, before: MessageWithImportance | None) -> list[PinDraft]:
        """The code that the message confirms, or that the one before it asks for."""
        if before is None:
            return []
        confirmed = confirmed_code(message, before, self._policy.max_code_chars)
        code_pin = asked_code(message, before, self._policy.max_code_chars)
        return [self._draft(of, pin) for of, pin in ((before, confirmed), (message, code_pin)) if pin is not None]

    def _draft(self, message: MessageWithImportance, pin: FoundPin) -> PinDraft:
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
            reach=pin.reach,
            kind=pin.kind,
        )


def _read(message: MessageWithImportance, own: Own) -> list[Sentence]:
    """The sentences of which pins are made. A person's answer may quote any of the assistant's."""
    return quotable(message) if message.role is Role.ASSISTANT else pinnable(message, own)


def _code_of(draft: PinDraft) -> str:
    return subject_of(draft.content) if draft.pin_type is PinType.CODE else ""


def _newest(drafts: Sequence[PinDraft]) -> list[PinDraft]:
    """The drafts except code that a later draft replaces."""
    last = {_code_of(draft): draft.client_key for draft in drafts}
    return [draft for draft in drafts if not (code := _code_of(draft)) or last[code] == draft.client_key]
