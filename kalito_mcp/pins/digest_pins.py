"""Pins the sentences of a digest that its author wrote, and closes open points that it no longer lists."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from kalito_mcp.domain.digest import Digest, KeptDigest
from kalito_mcp.domain.kinds import Kind
from kalito_mcp.domain.memory_records import DELETED_AT, EditDraft, Editor, EditType, MemoryRecord, with_changes
from kalito_mcp.domain.records import PIN_IMPORTANCE, Origin, PinType, Reach, RecordType, least_trusted
from kalito_mcp.domain.scope import PERSONAL, Scope
from kalito_mcp.domain.sessions import Session, SessionState
from kalito_mcp.errors import InvalidInput, SessionFinalized
from kalito_mcp.kinds.judge import SentenceJudge
from kalito_mcp.kinds.judged import Judged, Sentence
from kalito_mcp.pins.adding import add_new_pins
from kalito_mcp.pins.found import is_found_pin, pin_key
from kalito_mcp.pins.reach import reach_of
from kalito_mcp.pins.repeats import words_said
from kalito_mcp.ports.clock import Clock, IdSource
from kalito_mcp.ports.conversations import PinDraft
from kalito_mcp.ports.store import Store, WriteTransaction
from kalito_mcp.ports.tokens import TokenCounter
from kalito_mcp.records.borrowed_words import sources_of_words
from kalito_mcp.records.historian import get_record
from kalito_mcp.records.repetitions import repetition_refused, scope_of_session
from kalito_mcp.retrieval.known_names import find_session
from kalito_mcp.safety.escaping import as_data
from kalito_mcp.safety.redaction import cleaned
from kalito_mcp.text.analysis import index_text
from kalito_mcp.text.repetition import keys_of

_MOST_KNOWN: Final = 1_000
_MOST_OF_SESSION: Final = 500

Statement = tuple[str | None, frozenset[str]]
"""The kind of a pin, if only its session knows it, and its words."""


class DigestPinner:
    """Makes the pins of stated digests."""

    def __init__(self, store: Store, judge: SentenceJudge, counter: TokenCounter, clock: Clock, ids: IdSource) -> None:
        self._store = store
        self._judge = judge
        self._counter = counter
        self._clock = clock
        self._ids = ids

    async def keep(self, scope: Scope, digest: Digest, editor: Editor) -> KeptDigest:
        """See `Memory.keep_digest`."""
        digest.check()
        kept, redacted = cleaned(digest)
        texts = [text for _, text in kept.sentences]
        judged = await self._judge.judge([Sentence(text) for text in texts])
        sources = await sources_of_words(self._store, scope, texts)
        origins = [
            Origin.ASSISTANT if one is None else least_trusted((Origin.ASSISTANT, one.origin)) for one in sources
        ]

        async def add(transaction: WriteTransaction) -> KeptDigest:
            session = await find_session(transaction, scope)
            if session.state is not SessionState.OPEN:
                raise SessionFinalized(session.id, session.state)
            place = replace(scope_of_session(session, scope.limits), session=session.id)
            if await transaction.records.forgotten_values(place, keys_of("\n".join(texts))):
                raise repetition_refused()
            drafts = [
                self._draft(text, what._replace(kind=kind), origin, has_project=session.project is not None)
                for (kind, text), what, origin in zip(kept.sentences, judged, origins, strict=True)
            ]
            # A sentence in two lists counts for the later one.
            by_words = {words_said(draft.content): draft for draft in drafts}
            pins = await transaction.records.list_records(place, frozenset({RecordType.PIN}), limit=_MOST_OF_SESSION)
            in_reach = replace(place, project=session.project or PERSONAL)
            known = await transaction.records.known(in_reach, limit=_MOST_KNOWN)
            stated = {(None, words_said(one.text)) for one in known} | {_statement_of(pin) for pin in pins}
            made: list[str] = []
            for draft in by_words.values():
                if _statement(draft) not in stated:
                    made += await self._add(transaction, session, place, draft, editor)
            closed: list[str] = []
            for pin in pins if kept.open is not None else ():
                says = by_words.get(words_said(pin.text))
                stays = pin.id in made or (says is not None and says.kind is Kind.OPEN)
                if not stays and _statement_of(pin)[0] == Kind.OPEN and is_found_pin(pin):
                    await self._change(transaction, pin, EditType.DELETE, {DELETED_AT: self._clock.now_ms()}, editor)
                    closed.append(pin.id)
            return KeptDigest(tuple(made), tuple(closed), tuple(redacted))

        return await self._store.write(add)

    async def close(self, scope: Scope, pin_ids: Sequence[str], editor: Editor) -> Sequence[str]:
        """See `Timeline.close`."""

        async def close(transaction: WriteTransaction) -> Sequence[str]:
            closed: list[str] = []
            for pin_id in dict.fromkeys(pin_ids):
                pin = await get_record(transaction.records, scope, pin_id)
                if pin.type is not RecordType.PIN or pin.content.get("kind") != Kind.OPEN:
                    raise InvalidInput(f"{pin.id} is not an open point; forget it instead")
                if not pin.is_deleted:
                    await self._change(transaction, pin, EditType.DELETE, {DELETED_AT: self._clock.now_ms()}, editor)
                    closed.append(pin.id)
            return closed

        return await self._store.write(close)

    async def _add(
        self, transaction: WriteTransaction, session: Session, scope: Scope, draft: PinDraft, editor: Editor
    ) -> Sequence[str]:
        """Add the pin, or bring back the one with these words that was closed or was of another kind. Nothing if
        somebody reworded that, or erased these words. The ids of what is new."""
        before = await transaction.conversations.pin_by_client_key(session, draft.client_key or "")
        if before is None:
            return [draft.id] * await add_new_pins(transaction, session, [draft], limits=scope.limits)
        record = await transaction.records.record(scope, before.id)
        if record is None or not is_found_pin(record):
            return []
        edit_type = EditType.RESTORE if record.is_deleted else EditType.UPDATE
        reach = None if draft.reach is Reach.SESSION else str(draft.reach)
        changes = {DELETED_AT: None, "kind": str(draft.kind), "scope": reach}
        await self._change(transaction, record, edit_type, changes, editor)
        return [record.id]

    async def _change(
        self,
        transaction: WriteTransaction,
        pin: MemoryRecord,
        edit_type: EditType,
        changes: Mapping[str, str | int | None],
        editor: Editor,
    ) -> None:
        content = with_changes(pin.content, changes)
        tokens = self._counter.count(as_data(pin.text))
        await transaction.records.change(pin, EditDraft(edit_type, editor, self._clock.now_ms(), content, tokens))

    def _draft(self, text: str, judged: Judged, origin: Origin, *, has_project: bool) -> PinDraft:
        now_ms = self._clock.now_ms()
        return PinDraft(
            id=self._ids.record_id("pin", now_ms),
            content=text,
            source_message_id=None,
            importance=PIN_IMPORTANCE,
            tokens=self._counter.count(as_data(text)),
            pin_type=PinType.AUTO,
            created_at=now_ms,
            client_key=pin_key(text),
            indexed=index_text(text),
            origin=origin,
            reach=reach_of(judged, has_project=has_project, pin_type=PinType.AUTO, origin=origin),
            kind=judged.kind,
        )


def _statement(draft: PinDraft) -> Statement:
    return draft.kind if draft.reach is Reach.SESSION else None, words_said(draft.content)


def _statement_of(pin: MemoryRecord) -> Statement:
    return None if "scope" in pin.content else pin.content.get("kind", ""), words_said(pin.text)
