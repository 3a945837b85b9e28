"""Pins what somebody asked to pin."""

from dataclasses import replace
from typing import Final

from kalito_mcp.domain.importance import clamp_importance
from kalito_mcp.domain.memory_records import AUTO_KEY, MemoryRecord
from kalito_mcp.domain.records import (
    PIN_IMPORTANCE,
    CreatePinRequest,
    Origin,
    PinType,
    Reach,
    RecordType,
    SemanticPin,
    least_trusted,
    message_record_id,
)
from kalito_mcp.domain.scope import NO_PROJECT, Scope
from kalito_mcp.domain.sessions import Session, SessionState
from kalito_mcp.domain.validation import LimitsPolicy, checked_name, checked_text, message_number
from kalito_mcp.errors import Conflict, InvalidInput, RecordNotFound, SessionFinalized
from kalito_mcp.kinds.judge import SentenceJudge
from kalito_mcp.kinds.judged import Judged, Sentence
from kalito_mcp.pins.adding import add_new_pins
from kalito_mcp.pins.reach import reach_of
from kalito_mcp.ports.clock import Clock, IdSource
from kalito_mcp.ports.conversations import PinDraft
from kalito_mcp.ports.store import Store, WriteTransaction
from kalito_mcp.ports.tokens import TokenCounter
from kalito_mcp.records.borrowed_words import sources_of_words, unconfirmed
from kalito_mcp.records.client_keys import check_same_words
from kalito_mcp.records.named import check_named
from kalito_mcp.records.reached import reached
from kalito_mcp.records.repetitions import scope_of_session
from kalito_mcp.records.same_words import is_sent_again, same_words
from kalito_mcp.records.sessions import ensure_session
from kalito_mcp.retrieval.known_names import refuse_mistaken
from kalito_mcp.runtime.long_texts import read_aside
from kalito_mcp.safety.escaping import as_data
from kalito_mcp.safety.redaction import checked_handle, cleaned
from kalito_mcp.text.analysis import index_text

_REACHES: Final = tuple(str(one) for one in Reach)


class Pinner:
    """Makes the pins that callers ask for."""

    def __init__(
        self,
        store: Store,
        judge: SentenceJudge,
        counter: TokenCounter,
        clock: Clock,
        ids: IdSource,
        *,
        limits: LimitsPolicy,
    ) -> None:
        self._store = store
        self._judge = judge
        self._counter = counter
        self._clock = clock
        self._ids = ids
        self._limits = limits

    async def create(self, scope: Scope, request: CreatePinRequest) -> SemanticPin:
        """Pin a text in the scope's session; see `Memory.create_pin`."""
        checked_text(request.content, "content", max_bytes=self._limits.max_text_bytes)
        checked_handle(request.session_id or "", "session_id")
        _check_key(request.client_key)
        requested = checked_reach(request.scope)
        kept, redacted = await read_aside(len(request.content), lambda: cleaned(request))
        draft = await read_aside(len(kept.content), lambda: self._draft(kept))
        [judged] = await self._judge.judge([Sentence(kept.content)])
        draft = replace(draft, kind=judged.kind if judged.worth else None)  # by words alone, most are of no kind
        [source] = await sources_of_words(self._store, scope, [kept.content])
        if source is not None:
            if not kept.is_confirmed:
                raise unconfirmed(source.record_id, source.origin)
            draft = replace(draft, origin=least_trusted((draft.origin, source.origin)))

        async def add(transaction: WriteTransaction) -> SemanticPin | MemoryRecord:
            session = await self._session(transaction, scope, draft.created_at)
            await check_named(transaction.records, scope, {"supersedes": draft.supersedes})
            placed = await _with_source(transaction, scope, session, draft, kept)
            placed = replace(placed, reach=_settled_reach(requested, session, placed, judged))
            known = await _same_pin(transaction, scope, session, placed)
            if known is not None:
                return known
            if await add_new_pins(transaction, session, [placed], limits=scope.limits):
                return _made(session, placed)
            return await _pinned_before(transaction, session, placed)

        found = await self._store.write(add)
        if isinstance(found, SemanticPin):
            return replace(found, redacted=redacted)
        [shown] = await reached(self._store, scope, [found])
        return replace(self.as_pin(shown), redacted=redacted, is_known=True)

    def as_pin(self, record: MemoryRecord) -> SemanticPin:
        """A pin, or a note that is known as one is, as a pin."""
        content = record.content
        return SemanticPin(
            id=record.id,
            session_id=record.session_id,
            content=record.text,
            source_message_id=content.get("source_message_id"),
            importance_score=float(content["importance_score"]),
            pin_type=PinType(content.get("pin_type", PinType.MANUAL)),
            created_at=record.created_at,
            tokens=self._counter.count(as_data(record.text)),
            origin=record.origin,
            reach=Reach(content.get("scope") or Reach.SESSION),
            redacted=record.redacted,
            is_known=record.is_known,
        )

    def _draft(self, request: CreatePinRequest) -> PinDraft:
        source = request.source_message_id
        now_ms = self._clock.now_ms()
        return PinDraft(
            id=self._ids.record_id("pin", now_ms),
            content=request.content,
            source_message_id=(
                None if source is None else message_record_id(message_number(source, "source_message_id"))
            ),
            importance=clamp_importance(
                PIN_IMPORTANCE if request.importance_score is None else request.importance_score
            ),
            tokens=self._counter.count(as_data(request.content)),
            pin_type=request.pin_type,
            created_at=now_ms,
            client_key=request.client_key,
            indexed=index_text(request.content),
            origin=request.origin,
            client=request.client,
            supersedes=request.replaces,
        )

    async def _session(self, transaction: WriteTransaction, scope: Scope, now_ms: int) -> Session:
        """The scope's session, which is created if it is new."""
        if await transaction.sessions.get(scope) is None:
            await refuse_mistaken(transaction, scope)
        session = await ensure_session(transaction.sessions, scope, now_ms=now_ms)
        if session.state is not SessionState.OPEN:
            raise SessionFinalized(session.id, session.state)
        return session


async def _with_source(
    transaction: WriteTransaction, scope: Scope, session: Session, draft: PinDraft, request: CreatePinRequest
) -> PinDraft:
    """The draft with the moment of its source message, and the less trusted origin of the two."""
    if draft.source_message_id is None:
        return draft
    said = await transaction.conversations.message(scope, message_number(draft.source_message_id))
    if said is None:
        raise RecordNotFound(
            f"source_message_id={draft.source_message_id!r} is not a message of session {session.id!r}; "
            "leave it out, or use another id"
        )
    if said.origin.distrust >= Origin.TOOL.distrust and not request.is_confirmed:
        raise unconfirmed(draft.source_message_id, said.origin)
    return replace(draft, origin=least_trusted((draft.origin, said.origin)), created_at=said.created_at)


async def _same_pin(
    transaction: WriteTransaction, scope: Scope, session: Session, draft: PinDraft
) -> MemoryRecord | None:
    """What says exactly this already, unless the call has a key of its own that a pin has."""
    if draft.client_key and await transaction.conversations.pin_by_client_key(session, draft.client_key):
        return None
    place = replace(scope_of_session(session, scope.limits), session=session.id)
    found = await same_words(transaction.records, place, RecordType.PIN, draft.content, draft.reach)
    return None if found is None or is_sent_again(draft.client_key, found) else found


async def _pinned_before(transaction: WriteTransaction, session: Session, draft: PinDraft) -> SemanticPin:
    """The pin that the session has under this client_key.

    Raises:
        Conflict: it does not exist, so this text was forgotten or erased.
        ClientKeyReused: it says something else.
    """
    key = draft.client_key
    before = await transaction.conversations.pin_by_client_key(session, key) if key else None
    if before is None:
        raise Conflict("this was forgotten or erased, so it is not pinned again; restore it, or have the user say it")
    check_same_words(key, is_same=before.content == draft.content)
    return before


def _check_key(key: str | None) -> None:
    if key is not None and checked_name(key, "client_key").startswith(AUTO_KEY):
        raise InvalidInput(
            f"client_key {key!r} begins with {AUTO_KEY!r}, reserved for the memory's own pins; choose another"
        )


def checked_reach(requested: Reach | str | None) -> Reach | None:
    """The reach that a caller names; None for none.

    Raises:
        InvalidInput: it is unknown.
    """
    if requested is not None and requested not in _REACHES:
        raise InvalidInput(
            f"scope={str(requested)[:40]!r} is unknown; use {', '.join(_REACHES[:-1])} or {_REACHES[-1]}"
        )
    return None if requested is None else Reach(requested)


def _settled_reach(requested: Reach | None, session: Session, draft: PinDraft, judged: Judged) -> Reach:
    """The reach that was asked for, or else the one that the words of the pin call for.

    Raises:
        InvalidInput: it shall be the project's, and the session has no project.
    """
    if requested is None:
        has_project = session.project is not None
        return reach_of(judged, has_project=has_project, pin_type=draft.pin_type, origin=draft.origin)
    if requested is Reach.PROJECT and session.project is None:
        raise InvalidInput(f"session {session.id!r}: {NO_PROJECT}")
    return requested


def _made(session: Session, draft: PinDraft) -> SemanticPin:
    return SemanticPin(
        id=draft.id,
        session_id=session.id,
        content=draft.content,
        source_message_id=draft.source_message_id,
        importance_score=draft.importance,
        pin_type=draft.pin_type,
        created_at=draft.created_at,
        tokens=draft.tokens,
        origin=draft.origin,
        reach=draft.reach,
    )
