"""One conversation and its counters."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from kalito_mcp.domain.time import to_iso


class FinalizeStage(StrEnum):
    """The stages of finalizing, in order. `Session.stage` is the last one done."""

    SUMMARIES = "summaries"
    SLEEP = "sleep"
    PROMOTION = "promotion"
    CHECKPOINT = "checkpoint"


class SessionState(StrEnum):
    """OPEN accepts records. FINALIZING accepts only what finalizing itself writes. FINALIZED accepts nothing."""

    OPEN = "OPEN"
    FINALIZING = "FINALIZING"
    FINALIZED = "FINALIZED"


@dataclass(frozen=True, slots=True)
class MemoryStats:
    """A session's memory in numbers, without forgotten records. The average is over its messages, None without any."""

    session_id: str
    agent_id: str
    state: SessionState
    total_messages: int
    total_summaries: int
    total_pins: int
    oldest_message: int | None
    newest_message: int | None
    average_importance_score: float | None
    summarized_messages: int

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {
            "session_id": self.session_id,
            "agent_id": self.agent_id,
            "state": str(self.state),
            "total_messages": self.total_messages,
            "total_summaries": self.total_summaries,
            "total_pins": self.total_pins,
            "oldest_message": None if self.oldest_message is None else to_iso(self.oldest_message),
            "newest_message": None if self.newest_message is None else to_iso(self.newest_message),
            "average_importance_score": self.average_importance_score,
            "summarized_messages": self.summarized_messages,
        }


@dataclass(frozen=True, slots=True)
class Session:
    """A session as stored.

    `message_count` is also the seq of the newest message. It includes the `hidden_count` forgotten and erased ones;
    the other counts and `importance_sum` exclude them. Level-0 summaries cover the messages up to `summarized_seq`.
    Automatic pins were searched for up to `pinned_seq`; later messages are owed work. The graph contains the messages
    up to `observed_seq`, and gets the later ones when it is needed. `stage` is the last finished `FinalizeStage`, None
    before the first. A personal session has no `project`. One of an older release is not `is_placed` until a project
    goes on in it.
    """

    owner: str
    id: str
    agent: str
    state: SessionState
    created_at: int
    updated_at: int
    model: str | None = None
    message_count: int = 0
    summary_count: int = 0
    pin_count: int = 0
    importance_sum: float = 0.0
    summarized_seq: int = 0
    pinned_seq: int = 0
    observed_seq: int = 0
    stage: str | None = None
    oldest_message_at: int | None = None
    newest_message_at: int | None = None
    revision: int = 0
    hidden_count: int = 0
    project: str | None = None
    is_placed: bool = True

    @property
    def cursor(self) -> "SessionCursor":
        """Where it is in the list of sessions."""
        return SessionCursor(self.said_at, self.id)

    @property
    def said_at(self) -> int:
        """When its newest message was said; without messages, when it was last written. An import writes later than
        what it imports was said."""
        return self.updated_at if self.newest_message_at is None else self.newest_message_at

    def stats(self) -> MemoryStats:
        """The session in numbers."""
        count = self.message_count - self.hidden_count
        return MemoryStats(
            session_id=self.id,
            agent_id=self.agent,
            state=self.state,
            total_messages=count,
            total_summaries=self.summary_count,
            total_pins=self.pin_count,
            oldest_message=self.oldest_message_at,
            newest_message=self.newest_message_at,
            average_importance_score=round(self.importance_sum / count, 4) if count else None,
            summarized_messages=min(self.summarized_seq, count),
        )

    def to_dict(self, title: str | None = None) -> dict[str, Any]:
        """One line of a list of sessions, JSON-ready."""
        return {
            "session_id": self.id,
            **({} if title is None else {"title": title}),
            "agent_id": self.agent,
            **({} if self.project is None else {"project": self.project}),
            "state": str(self.state),
            "messages": self.message_count - self.hidden_count,
            "summaries": self.summary_count,
            "pins": self.pin_count,
            **({} if self.newest_message_at is None else {"newest_message": to_iso(self.newest_message_at)}),
            "updated_at": to_iso(self.updated_at),
        }


class SessionCursor(NamedTuple):
    """Where a session is in the list of those in which something was said last: after it come older ones."""

    said_at: int
    session_id: str


def unrecorded_session(owner: str, session_id: str, now_ms: int, agent: str, project: str | None = None) -> Session:
    """An empty session of an agent. It is not stored."""
    return Session(
        owner=owner,
        id=session_id,
        agent=agent,
        state=SessionState.OPEN,
        created_at=now_ms,
        updated_at=now_ms,
        project=project,
    )
