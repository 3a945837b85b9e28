"""The messages, pins and summaries of a session."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from kalito_mcp.domain.kinds import Kind
from kalito_mcp.domain.records import (
    ConversationSummary,
    MessageWithImportance,
    Origin,
    PinType,
    Reach,
    Repetition,
    Role,
    SemanticPin,
    SessionView,
    SummaryMethod,
)
from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.sessions import Session
from kalito_mcp.text.analysis import IndexedText


@dataclass(frozen=True, slots=True)
class MessageDraft:
    """A message ready to be written. `indexed` is its text as the text index keeps it."""

    role: Role
    text: str
    name: str | None
    created_at: int
    importance: float
    tokens: int
    model_id: str | None
    token_usage: int | None
    client_key: str | None
    indexed: IndexedText
    origin: Origin | None = None
    """None stands for the origin that the role implies."""
    client: str | None = None
    details: Mapping[str, Any] | None = None
    """`message_type`, `attachments`, `vision_response_for`, `tags`, `visibility`, `critical`: those that were set."""


@dataclass(frozen=True, slots=True)
class AppendedMessage:
    """Where a message is stored. `is_new` is False if it was recorded before, or if `is_erased`: then an erased message
    came again. One that was left out has neither id nor seq: both are 0."""

    id: int
    seq: int
    is_new: bool = True
    is_erased: bool = False
    repetition: Repetition | None = None

    def again(self) -> "AppendedMessage":
        """The same for another message with its client_key."""
        return AppendedMessage(self.id, self.seq, is_new=False) if self.is_new else self


@dataclass(frozen=True, slots=True)
class PinDraft:
    """A pin ready to be written. One for the project, in a session without a project, becomes the session's."""

    id: str
    content: str
    source_message_id: str | None
    importance: float
    tokens: int
    pin_type: PinType
    created_at: int
    client_key: str | None
    indexed: IndexedText
    origin: Origin = Origin.ASSISTANT
    client: str | None = None
    reach: Reach = Reach.SESSION
    kind: Kind | None = None
    supersedes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SummaryDraft:
    """A summary ready to be written. It covers the messages from `start_seq` to `end_seq`. `note` is for the caller
    and not stored."""

    id: str
    text: str
    level: int
    start_seq: int
    end_seq: int
    start_message_id: str
    end_message_id: str
    started_at: int
    ended_at: int
    importance: float
    tokens: int
    method: SummaryMethod
    model_id: str | None
    created_at: int
    indexed: IndexedText
    origin: Origin = Origin.ASSISTANT
    client_key: str | None = None
    note: str | None = None


class ConversationReader(Protocol):
    """Reads of one consistent view. `view` leaves out forgotten and internal records. All other methods return a
    forgotten, erased or internal message or summary without its text, so that no list has a gap."""

    async def view(self, session: Session, *, tail: int, pins: int, include_internal: bool = False) -> SessionView:
        """The newest `tail` messages, the top `pins` pins and the summaries, in one read."""

    async def messages(self, session: Session, *, first_seq: int, last_seq: int) -> Sequence[MessageWithImportance]:
        """The messages from `first_seq` to `last_seq`, both included, in order. Those without text are `is_hidden`."""

    async def message(self, scope: Scope, number: int) -> MessageWithImportance | None:
        """The message of this number; None if the owner (or the scope's session) has no such message within the
        limits."""

    async def messages_by_number(self, session: Session, numbers: Sequence[int]) -> Sequence[MessageWithImportance]:
        """The messages with these numbers that belong to the session, in order of seq."""

    async def summaries(self, session: Session, *, level: int, after_seq: int) -> Sequence[ConversationSummary]:
        """The summaries of one level whose range starts after `after_seq`, in order."""

    async def uncovered_summaries(self, session: Session) -> Sequence[ConversationSummary]:
        """The summaries that no higher level covers, oldest range first."""

    async def summarized_to(self, session: Session, level: int) -> int:
        """The last message that a summary of this level covers, even an erased one; 0 if no summary does."""

    async def summary_by_client_key(self, session: Session, client_key: str) -> ConversationSummary | None:
        """The summary that was written with this client_key; None if no summary was."""

    async def pin_by_client_key(self, session: Session, client_key: str) -> SemanticPin | None:
        """The pin that was written with this client_key, even if it is forgotten; None if no pin was."""


class ConversationWriter(ConversationReader, Protocol):
    """Writes, inside one transaction. Each also updates the text index and the session's counters. A client key that is
    not new raises `ports.records.AlreadyStored`."""

    async def append_messages(
        self, session: Session, drafts: Sequence[MessageDraft], *, now_ms: int
    ) -> Sequence[AppendedMessage]:
        """Append to the end of the session, in order."""

    async def add_pins(self, session: Session, drafts: Sequence[PinDraft]) -> None:
        """Add pins."""

    async def add_summaries(self, session: Session, drafts: Sequence[SummaryDraft]) -> None:
        """Add consecutive summaries of one level, the first of which begins right after `summarized_to`. They cover
        those of the level below in their ranges. Those of level 0 move the session's `summarized_seq` to their end."""

    async def set_importance(self, session: Session, scores: Sequence[tuple[int, float]], *, now_ms: int) -> None:
        """Replace the importance of messages: (number, score in [0, 1]). Each is an edit by the memory itself.
        Forgotten messages and equal scores are skipped."""
