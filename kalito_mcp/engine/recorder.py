"""A message is recorded: checked, scored, counted and analysed first, then written in one transaction.

No model is asked here and nothing is awaited but the store: what a message owes (a summary, automatic pins) is done
later, from what is stored.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from kalito_mcp.domain.analysis import index_terms
from kalito_mcp.domain.records import NewMessage, message_record_id
from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.sessions import Session, SessionState
from kalito_mcp.domain.validation import checked_moment, checked_name, checked_text
from kalito_mcp.engine.importance import ImportancePolicy, score_importance
from kalito_mcp.engine.render import as_data
from kalito_mcp.errors import InvalidInput, SessionFinalized
from kalito_mcp.ports.clock import Clock
from kalito_mcp.ports.records import AppendedMessage, MessageDraft
from kalito_mcp.ports.store import Store
from kalito_mcp.ports.tokens import TokenCounter


@dataclass(frozen=True, slots=True)
class LimitsPolicy:
    """How much one call may hand over."""

    max_text_bytes: int = 262_144
    max_messages: int = 10_000


@dataclass(frozen=True, slots=True)
class Recorded:
    """What became of a batch. `messages` is in the order of the batch; `session` is as it was before it."""

    session: Session
    messages: tuple[AppendedMessage, ...]

    @property
    def message_ids(self) -> list[str]:
        """The record ids, in the order of the batch."""
        return [message_record_id(message.id) for message in self.messages]

    @property
    def new_count(self) -> int:
        """How many messages were not known before."""
        return sum(message.is_new for message in self.messages)

    @property
    def total_messages(self) -> int:
        """How many messages the session has now."""
        return self.session.message_count + self.new_count


class Recorder:
    """Appends messages to sessions."""

    def __init__(
        self, store: Store, counter: TokenCounter, clock: Clock, limits: LimitsPolicy, importance: ImportancePolicy
    ) -> None:
        self._store = store
        self._counter = counter
        self._clock = clock
        self._limits = limits
        self._importance = importance

    async def record(self, scope: Scope, messages: Sequence[NewMessage]) -> Recorded:
        """Append the batch to the scope's session, all of it or none; a new session is opened for it.

        Raises:
            InvalidInput: an empty batch, too many messages, or one that cannot be stored; says which.
            SessionFinalized: the session is closed.
            ClientKeyReused: a `client_key` came before with another role or text.
        """
        if not messages:
            raise InvalidInput("messages is empty; send at least one")
        if len(messages) > self._limits.max_messages:
            raise InvalidInput(
                f"{len(messages):,} messages in one call; the limit is {self._limits.max_messages:,}: send parts"
            )
        checked_name(scope.session or "", "session_id")
        if scope.agent is not None:
            checked_name(scope.agent, "agent_id")
        now_ms = self._clock.now_ms()
        drafts = [self._draft(message, place, now_ms) for place, message in enumerate(messages)]
        async with self._store.write() as transaction:
            session = await transaction.sessions.ensure(scope, now_ms=now_ms)
            if session.state is not SessionState.OPEN:
                raise SessionFinalized(session.id, session.state)
            appended = await transaction.records.append_messages(session, drafts, now_ms=now_ms)
        return Recorded(session=session, messages=tuple(appended))

    def _draft(self, message: NewMessage, place: int, now_ms: int) -> MessageDraft:
        text = message.text
        try:
            checked_text(text, "text", max_bytes=self._limits.max_text_bytes)
            if message.name is not None:
                checked_name(message.name, "name")
            if message.client_key is not None:
                checked_name(message.client_key, "client_key")
            if message.model_id is not None:
                checked_name(message.model_id, "model_id")
            created_at = now_ms if message.created_at is None else checked_moment(message.created_at, "created_at")
        except InvalidInput as error:
            raise type(error)(f"messages[{place}]: {error}; nothing of this call was recorded") from None
        return MessageDraft(
            role=message.role,
            text=text,
            name=message.name,
            created_at=created_at,
            importance=score_importance(message.role, text, self._importance),
            tokens=self._counter.count(as_data(text)),
            model_id=message.model_id,
            token_usage=message.token_usage,
            client_key=message.client_key,
            terms=index_terms(text, message.name),
        )
