"""A message is recorded: checked, scored, counted and analysed first, then written in one transaction.

No model is asked here and nothing is awaited but the store: what a message owes (a summary, automatic pins) is done
later, from what is stored.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import anyio.to_thread

from kalito_mcp.domain.records import NewMessage, Origin, RecordType, message_record_id, origin_of_role
from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.sessions import Session, SessionState
from kalito_mcp.domain.validation import LimitsPolicy, checked_moment, checked_name, checked_text
from kalito_mcp.errors import InvalidInput, SessionFinalized
from kalito_mcp.ports.clock import Clock
from kalito_mcp.ports.conversations import AppendedMessage, MessageDraft
from kalito_mcp.ports.store import Store
from kalito_mcp.ports.tokens import TokenCounter
from kalito_mcp.records.importance import ImportancePolicy, score_importance
from kalito_mcp.records.schemas import checked_content
from kalito_mcp.safety.escaping import as_data
from kalito_mcp.safety.redaction import checked_handle, cleaned
from kalito_mcp.text.analysis import index_terms

_NO_DETAILS: Final = frozenset({"text", "role", "name", "model_id", "token_usage", "caused_by"})
_NO_DETAILS_INSTEAD: Final = "send those beside details, and caused_by by update_memory once the message is recorded"
_LONG_CHARS: Final = 100_000
_Made = TypeVar("_Made")


async def read_aside(chars: int, read: Callable[[], _Made]) -> _Made:
    """What `read` makes of so many characters: of many in a thread, so that other calls are answered meanwhile."""
    return await anyio.to_thread.run_sync(read) if chars > _LONG_CHARS else read()


@dataclass(frozen=True, slots=True)
class Recorded:
    """What became of a batch. `messages` is in the order of the batch; `session` is as it was before it."""

    session: Session
    messages: tuple[AppendedMessage, ...]
    redacted: tuple[str, ...] = ()
    """What was not kept: kinds of secrets, such as `github_token`, and `private`; `github_token in name` where that
    was not in the text."""

    @property
    def message_ids(self) -> list[str]:
        """The record ids, in the order of the batch."""
        return [message_record_id(message.id) for message in self.messages]

    @property
    def new_count(self) -> int:
        """How many messages were not known before."""
        return sum(message.is_new for message in self.messages)

    @property
    def erased_count(self) -> int:
        """How many were erased before, and were not taken again."""
        return sum(message.is_erased for message in self.messages)

    @property
    def total_messages(self) -> int:
        """How many messages the session has now."""
        return self.session.message_count - self.session.hidden_count + self.new_count


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

    async def record(self, scope: Scope, messages: Sequence[NewMessage], *, client: str | None = None) -> Recorded:
        """Append the batch to the scope's session, all of it or none; a new session is opened for it.

        Secrets, and what stands between `<private>` tags, are taken out before anything is written. `client` is the
        host that hands the batch over.

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
        checked_handle(scope.session or "", "session_id")
        if scope.agent is not None:
            checked_handle(scope.agent, "agent_id")
        now_ms = self._clock.now_ms()
        drafts, redacted = await read_aside(
            sum(len(one.text) + len(str(one.details)) for one in messages),
            lambda: self._drafts(messages, now_ms, cleaned(client)[0]),
        )
        async with self._store.write() as transaction:
            session = await transaction.sessions.ensure(scope, now_ms=now_ms)
            if session.state is not SessionState.OPEN:
                raise SessionFinalized(session.id, session.state)
            appended = await transaction.conversations.append_messages(session, drafts, now_ms=now_ms)
        return Recorded(session=session, messages=tuple(appended), redacted=tuple(redacted))

    def _drafts(
        self, messages: Sequence[NewMessage], now_ms: int, client: str | None
    ) -> tuple[list[MessageDraft], list[str]]:
        """What of the messages is written, and what of them is not kept."""
        drafts: list[MessageDraft] = []
        redacted: list[str] = []
        for place, message in enumerate(messages):
            try:
                checked_text(message.text, "text", max_bytes=self._limits.max_text_bytes)
                kept, found = cleaned(message)
                drafts.append(self._draft(kept, now_ms, client))
            except InvalidInput as error:
                raise type(error)(f"messages[{place}]: {error}; nothing of this call was recorded") from None
            redacted += found
        return drafts, redacted

    def _draft(self, message: NewMessage, now_ms: int, client: str | None) -> MessageDraft:
        details = _details(message) if message.details else None
        origin = _origin(message)
        for field in ("name", "client_key", "model_id"):
            if (name := getattr(message, field)) is not None:
                checked_name(name, field)
        return MessageDraft(
            role=message.role,
            text=message.text,
            name=message.name,
            created_at=now_ms if message.created_at is None else checked_moment(message.created_at, "created_at"),
            importance=(details or {}).get(
                "importance_score", score_importance(message.role, message.text, self._importance)
            ),
            tokens=self._counter.count(as_data(message.text)),
            model_id=message.model_id,
            token_usage=message.token_usage,
            client_key=message.client_key,
            terms=index_terms(message.text, message.name),
            origin=origin,
            client=client,
            details=details,
        )


def _details(message: NewMessage) -> dict[str, Any]:
    """The other fields, checked as those of a message."""
    given = dict(message.details or {})
    if taken := _NO_DETAILS & set(given):
        raise InvalidInput(f"details has {', '.join(sorted(taken))}; {_NO_DETAILS_INSTEAD}")
    content = checked_content(RecordType.MESSAGE, {**given, "role": str(message.role), "text": message.text})
    return {name: value for name, value in content.items() if name not in ("text", "role")}


def _origin(message: NewMessage) -> Origin | None:
    """The message's origin where it is not its role's: nobody's words become more trusted by being passed on."""
    by_role = origin_of_role(message.role)
    if message.origin is None or message.origin is by_role:
        return None
    if message.origin.distrust < by_role.distrust:
        raise InvalidInput(
            f"origin={str(message.origin)!r} is more trusted than what comes as {str(message.role)!r}: leave it out"
        )
    return message.origin
