"""Records messages: checks, scores, counts and analyses them first, then writes them in one transaction.

A message that already came in another way is not stored again (`same_turn`). It calls no model and awaits only the
store. Owed work (summaries, automatic pins) is done later, from the stored messages.
"""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kalito_mcp.domain.records import NewMessage, Origin, RecordType, Repetition, message_record_id, origin_of_role
from kalito_mcp.domain.scope import Limits, Scope
from kalito_mcp.domain.sessions import Session, SessionState
from kalito_mcp.domain.validation import MOST, LimitsPolicy, checked_moment, checked_name, checked_text
from kalito_mcp.domain.wording import shown
from kalito_mcp.errors import InvalidInput, SessionFinalized
from kalito_mcp.ports.clock import Clock
from kalito_mcp.ports.conversations import AppendedMessage, MessageDraft
from kalito_mcp.ports.imports import ImportReader
from kalito_mcp.ports.store import Store, WriteTransaction
from kalito_mcp.ports.tokens import TokenCounter
from kalito_mcp.records.importance import ImportancePolicy, score_importance
from kalito_mcp.records.named import SUPERSEDES, check_superseded
from kalito_mcp.records.repetitions import Repetitions, keys_of_long, scope_of_session
from kalito_mcp.records.same_turn import Way, incoming, recognised
from kalito_mcp.records.schemas import checked_content
from kalito_mcp.records.sessions import ensure_session
from kalito_mcp.records.stored_before import stored_before
from kalito_mcp.runtime.long_texts import read_aside
from kalito_mcp.safety.escaping import as_data
from kalito_mcp.safety.redaction import checked_handle, cleaned
from kalito_mcp.text.analysis import index_text

_COMPARED: Final = 60
"""How many of the newest messages are compared with what comes now."""
_MOST_COMPARED: Final = 2_000
"""The same for events that no server took in time."""
_MOST_CLAIMED: Final = 4_096

_NO_DETAILS: Final = frozenset({"text", "role", "name", "model_id", "token_usage", "caused_by"})
_NO_DETAILS_INSTEAD: Final = "send them next to details, except caused_by: set it with update_memory later"


@dataclass(frozen=True, slots=True)
class Recorded:
    """A recorded batch. `messages` is in the order of the batch; `session` is the session before it. `added` are parts
    of them that were stored as messages of their own, because they may be a host's words."""

    session: Session
    messages: tuple[AppendedMessage, ...]
    redacted: tuple[str, ...] = ()
    """What was removed: kinds of secrets, such as `github_token`, and `private`. Outside the text the field is named:
    `github_token in name`."""
    added: tuple[AppendedMessage, ...] = ()

    @property
    def message_ids(self) -> list[str]:
        """The record ids, in the order of the batch, without messages that were left out."""
        return [
            message_record_id(message.id) for message in self.messages if message.repetition is not Repetition.LEFT_OUT
        ]

    def ids_of(self, repetition: Repetition) -> list[str]:
        """The record ids of the messages of which this became."""
        return [message_record_id(message.id) for message in self.messages if message.repetition is repetition]

    @property
    def left_out_count(self) -> int:
        """The number of messages that were not stored, because they repeat what was forgotten."""
        return sum(message.repetition is Repetition.LEFT_OUT for message in self.messages)

    @property
    def new_count(self) -> int:
        """The number of messages that were new."""
        return sum(message.is_new for message in self.messages)

    @property
    def erased_count(self) -> int:
        """The number of messages that had been erased, and were not stored again."""
        return sum(message.is_erased for message in self.messages)

    @property
    def total_messages(self) -> int:
        """The number of messages in the session now."""
        hidden_count = self.session.hidden_count + len(self.ids_of(Repetition.HIDDEN))
        return self.session.message_count - hidden_count + self.new_count + sum(one.is_new for one in self.added)


class Recorder:
    """Appends messages to sessions."""

    def __init__(
        self, store: Store, counter: TokenCounter, clock: Clock, limits: LimitsPolicy, importance: ImportancePolicy
    ) -> None:
        self._store = store
        self._counter = counter
        self._clock = clock
        self.limits: Final = limits
        self._importance = importance
        self._claimed: OrderedDict[int, str | None] = OrderedDict()
        """Client keys of hook reports of messages that came in another way, by the number of the message."""

    async def record(self, scope: Scope, messages: Sequence[NewMessage], *, client: str | None = None) -> Recorded:
        """Append the whole batch to the scope's session, or nothing. A session that does not exist is opened.

        Secrets and text between `<private>` tags are removed before anything is written. `client` is the host that
        sends the batch.

        Raises:
            InvalidInput: the batch is empty or too large, or a message cannot be stored; nothing was written.
            SessionFinalized: the session is closed; nothing was written.
            ClientKeyReused: a `client_key` was used before with another role or text; nothing was written.
        """
        if not messages:
            raise InvalidInput("messages is empty; send at least one")
        _check_count(messages, self.limits)
        checked_handle(scope.session or "", "session_id")
        if scope.agent is not None:
            checked_handle(scope.agent, "agent_id")
        now_ms = self._clock.now_ms()
        drafts, redacted = await read_aside(
            sum(len(one.text) + len(str(one.details)) for one in messages),
            lambda: self._drafts(messages, now_ms, cleaned(client)[0]),
        )
        keys = await keys_of_long(self._store, scope.owner, drafts)

        async def append(transaction: WriteTransaction) -> tuple[Session, Sequence[AppendedMessage]]:
            session = await ensure_session(transaction.sessions, scope, now_ms=now_ms)
            if session.state is not SessionState.OPEN:
                raise SessionFinalized(session.id, session.state)
            return session, await self._append(transaction, session, scope.limits, drafts, keys, now_ms)

        session, appended = await self._store.write(append)
        return Recorded(session=session, messages=tuple(appended), redacted=tuple(redacted))

    async def _append(
        self,
        transaction: WriteTransaction,
        session: Session,
        limits: Limits,
        drafts: Sequence[MessageDraft],
        keys: Mapping[int, frozenset[str]],
        now_ms: int,
    ) -> Sequence[AppendedMessage]:
        """Append the drafts that are new, and say where each is."""
        records, place = transaction.records, scope_of_session(session, limits)
        settled = await self._recognised(transaction.imports, session, drafts, now_ms)
        others = {at: draft for at, draft in enumerate(drafts) if at not in settled}
        before = await stored_before(records, place.of_session(session.id), others)
        settled |= before.found
        new = {at: draft for at, draft in others.items() if at not in before}
        repetitions = Repetitions(place, keys)
        kept = await repetitions.look_for(records, new)
        written = await transaction.conversations.append_messages(session, list(kept.values()), now_ms=now_ms)
        appended = dict(zip(kept, written, strict=True))
        for at, draft in kept.items():
            if draft.details and draft.details.get(SUPERSEDES):
                await check_superseded(records, session.owner, message_record_id(appended[at].id))
        settled |= appended
        settled |= await repetitions.settle(records, appended, new, now_ms)
        for at, first in before.repeats.items():
            settled[at] = settled[first].again()
        return [settled[at] for at in range(len(drafts))]

    async def _recognised(
        self, imports: ImportReader, session: Session, drafts: Sequence[MessageDraft], now_ms: int
    ) -> dict[int, AppendedMessage]:
        """The drafts that are already stored because they came in another way, by their places."""
        call = incoming(drafts)
        if not session.message_count or all(one.way is Way.IMPORT for one in call):
            return {}  # an import has compared all that is stored
        is_late = any(one.happened_at is not None and one.happened_at < now_ms for one in call)
        compared = _MOST_COMPARED if is_late else _COMPARED
        stored = await imports.turns(session, after_seq=max(0, session.message_count - compared), limit=compared)
        found = recognised(call, stored, self._claimed)
        for place, turn in found.items():
            if call[place].way is Way.HOOK:
                self._claimed[turn.number] = call[place].client_key
                if len(self._claimed) > _MOST_CLAIMED:
                    self._claimed.popitem(last=False)
        return {place: AppendedMessage(turn.number, turn.seq, is_new=False) for place, turn in found.items()}

    def _drafts(
        self, messages: Sequence[NewMessage], now_ms: int, client: str | None
    ) -> tuple[list[MessageDraft], list[str]]:
        """The drafts of the messages, and what was removed from them."""
        drafts: list[MessageDraft] = []
        redacted: list[str] = []
        for place, message in enumerate(messages):
            try:
                checked_text(message.text, "text", max_bytes=self.limits.max_text_bytes)
                kept, found = cleaned(message)
                drafts.append(self._draft(kept, now_ms, client))
            except InvalidInput as error:
                raise _at(place, error) from None
            redacted += found
        return drafts, redacted

    def _draft(self, message: NewMessage, now_ms: int, client: str | None) -> MessageDraft:
        details, origin = _checked(message)
        return MessageDraft(
            role=message.role,
            text=message.text,
            name=message.name,
            created_at=now_ms if message.created_at is None else message.created_at,
            importance=(details or {}).get(
                "importance_score", score_importance(message.role, message.text, self._importance)
            ),
            tokens=self._counter.count(as_data(message.text)),
            model_id=message.model_id,
            token_usage=message.token_usage,
            client_key=message.client_key,
            indexed=index_text(message.text, message.name),
            origin=origin,
            client=client,
            details=details,
        )


def check_messages(messages: Sequence[NewMessage], limits: LimitsPolicy) -> None:
    """Refuse what `Recorder.record` always refuses: too many messages, and messages with faults.
    Raises InvalidInput."""
    _check_count(messages, limits)
    for place, message in enumerate(messages):
        try:
            checked_text(message.text, "text", max_bytes=limits.max_text_bytes)
            _checked(message)
        except InvalidInput as error:
            raise _at(place, error) from None


def _check_count(messages: Sequence[NewMessage], limits: LimitsPolicy) -> None:
    if len(messages) > limits.max_messages:
        raise InvalidInput(f"{len(messages):,} messages in one call; the limit is {limits.max_messages:,}: send fewer")


def _at(place: int, error: InvalidInput) -> InvalidInput:
    return type(error)(f"messages[{place}]: {error}; nothing of this call was recorded")


def _checked(message: NewMessage) -> tuple[dict[str, Any] | None, Origin | None]:
    """The details as stored, and the origin if it differs from the role's. Raises InvalidInput if these, the time or a
    name are wrong."""
    details, origin = _details(message) if message.details else None, _origin(message)
    for field in ("name", "client_key", "model_id"):
        if (name := getattr(message, field)) is not None:
            checked_name(name, field)
    if message.created_at is not None:
        checked_moment(message.created_at, "created_at")
    if message.token_usage is not None and not 0 <= message.token_usage <= MOST:
        raise InvalidInput(f"token_usage must be from 0 to {MOST:,}, not {shown(message.token_usage)}")
    return details, origin


def _details(message: NewMessage) -> dict[str, Any]:
    """Check the details as fields of a message, and return them as stored."""
    given = dict(message.details or {})
    if taken := _NO_DETAILS & set(given):
        raise InvalidInput(f"details has {', '.join(sorted(taken))}; {_NO_DETAILS_INSTEAD}")
    content = checked_content(RecordType.MESSAGE, {**given, "role": str(message.role), "text": message.text})
    return {name: value for name, value in content.items() if name not in ("text", "role")}


def _origin(message: NewMessage) -> Origin | None:
    """The message's origin if it differs from its role's. It may not be more trusted than the role's."""
    by_role = origin_of_role(message.role)
    if message.origin is None or message.origin is by_role:
        return None
    if message.origin.distrust < by_role.distrust:
        raise InvalidInput(
            f"origin={str(message.origin)!r} is more trusted than the role {str(message.role)!r} allows; leave it out"
        )
    return message.origin
