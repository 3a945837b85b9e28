"""Records: messages, pins, summaries."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from kalito_mcp.domain.records import (
    ConversationSummary,
    MessageWithImportance,
    Origin,
    PinType,
    Role,
    SemanticPin,
    SummaryMethod,
)
from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.sessions import Session


@dataclass(frozen=True, slots=True)
class MessageDraft:
    """A message ready to be written: scored, counted, stamped, and analysed into `terms` for the text index."""

    role: Role
    text: str
    name: str | None
    created_at: int
    importance: float
    tokens: int
    model_id: str | None
    token_usage: int | None
    client_key: str | None
    terms: tuple[str, ...]
    origin: Origin | None = None
    """None is the role's."""
    client: str | None = None
    details: Mapping[str, Any] | None = None
    """`message_type`, `attachments`, `vision_response_for`, `tags`, `visibility`, `critical`, where there are any."""


@dataclass(frozen=True, slots=True)
class AppendedMessage:
    """Where a draft ended up. `is_new` is False when its `client_key` was recorded before. `is_erased`, and not new, is
    an erased message that comes again: the same text with the same `client_key` or moment."""

    id: int
    seq: int
    is_new: bool
    is_erased: bool = False


@dataclass(frozen=True, slots=True)
class PinDraft:
    """A pin ready to be written."""

    id: str
    content: str
    source_message_id: str | None
    importance: float
    tokens: int
    pin_type: PinType
    created_at: int
    client_key: str | None
    terms: tuple[str, ...]
    origin: Origin = Origin.ASSISTANT
    client: str | None = None


@dataclass(frozen=True, slots=True)
class SummaryDraft:
    """A summary ready to be written: the level's messages `start_seq` to `end_seq`."""

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
    terms: tuple[str, ...]
    origin: Origin = Origin.ASSISTANT


@dataclass(frozen=True, slots=True)
class SessionView:
    """What a context of a session is made of.

    `tail` holds the newest messages, oldest first; `pins` the most important, ties newest first; `summaries` the
    ones that no higher level covers, oldest first.
    """

    tail: tuple[MessageWithImportance, ...]
    pins: tuple[SemanticPin, ...]
    summaries: tuple[ConversationSummary, ...]


class ConversationReader(Protocol):
    """Reads of one consistent view. Forgotten and internal records do not exist here, but for the place of a message or
    a summary, which has no words."""

    async def view(self, session: Session, *, tail: int, pins: int, include_internal: bool = False) -> SessionView:
        """The parts of a context, in one read."""
        ...

    async def messages(self, session: Session, *, first_seq: int, last_seq: int) -> Sequence[MessageWithImportance]:
        """The messages of a range of seqs, both included, in order, without a gap: a forgotten, erased or internal one
        is `is_hidden` and has no text."""
        ...

    async def message(self, scope: Scope, number: int) -> MessageWithImportance | None:
        """One message by its number; None where the owner (or the scope's session) has none."""
        ...

    async def messages_by_key(self, session: Session, keys: Sequence[int]) -> Sequence[MessageWithImportance]:
        """Those of the numbered messages that belong to the session, in order of seq."""
        ...

    async def summaries(self, session: Session, *, level: int, after_seq: int) -> Sequence[ConversationSummary]:
        """The summaries of one level whose range starts after a seq, in order, without a gap: the text of a forgotten,
        erased or internal one is empty."""
        ...

    async def uncovered_summaries(self, session: Session) -> Sequence[ConversationSummary]:
        """The summaries that no higher level covers, oldest range first, without a gap: the text of a forgotten,
        erased or internal one is empty."""
        ...

    async def pin_by_client_key(self, session: Session, client_key: str) -> SemanticPin | None:
        """The pin that was written with this client_key."""
        ...


class ConversationWriter(ConversationReader, Protocol):
    """Writes, inside one transaction. Each also updates the text index and the session's counters."""

    async def append_messages(
        self, session: Session, drafts: Sequence[MessageDraft], *, now_ms: int
    ) -> Sequence[AppendedMessage]:
        """Append to the end of the session, in order; a known `client_key` is answered with where it is.

        Raises:
            ClientKeyReused: a known `client_key` with another role or text.
        """
        ...

    async def add_pins(self, session: Session, drafts: Sequence[PinDraft]) -> int:
        """Add the pins whose `client_key` is new to the session and whose text is no erased pin's; how many that
        were."""
        ...

    async def add_summary(self, session: Session, draft: SummaryDraft) -> None:
        """Add a summary; one of level 0 moves the session's `summarized_seq` to its end.

        Raises:
            SummaryRangeConflict: it does not begin right after its level's last summary.
        """
        ...

    async def set_importance(self, session: Session, scores: Sequence[tuple[int, float]], *, now_ms: int) -> None:
        """Replace the importance of messages: (number, score in [0, 1]). Each is an edit by the memory itself; equal
        scores, and forgotten messages, stay as they are."""
        ...
