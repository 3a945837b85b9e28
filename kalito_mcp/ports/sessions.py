"""Sessions and their counters."""

from collections.abc import Sequence
from typing import Protocol

from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.sessions import Session, SessionState


class SessionReader(Protocol):
    """Reads of one consistent view."""

    async def get(self, scope: Scope) -> Session | None:
        """The session that the scope names; None where the owner has none of that id."""
        ...

    async def list_recent(self, scope: Scope, *, prefix: str = "", limit: int) -> Sequence[Session]:
        """Sessions whose id starts with the prefix, last written first."""
        ...

    async def totals(self, scope: Scope) -> dict[str, int]:
        """How many sessions, messages, pins and summaries the owner has."""
        ...

    async def list_owing(self, *, threshold: int, max_summaries: int, after_key: int, limit: int) -> Sequence[Session]:
        """Sessions of any owner that owe background work, by key from after `after_key`: at least `threshold`
        messages without a summary, more than `max_summaries` of one level not folded, or messages not yet
        searched for pins or not yet in the graph."""
        ...


class SessionWriter(SessionReader, Protocol):
    """Writes, inside one transaction."""

    async def ensure(self, scope: Scope, *, now_ms: int) -> Session:
        """The session, created OPEN under the scope's agent where it is new.

        Raises:
            InvalidInput: it exists and belongs to another agent.
        """
        ...

    async def set_state(self, session: Session, state: SessionState, *, now_ms: int) -> None:
        """Move the session to a state."""
        ...

    async def set_pinned_seq(self, session: Session, seq: int) -> None:
        """Messages up to `seq` were searched for automatic pins."""
        ...

    async def set_observed_seq(self, session: Session, seq: int) -> None:
        """Messages up to `seq` are in the session's graph. Never moves back."""
        ...

    async def set_stage(self, session: Session, stage: str | None) -> None:
        """How far finalizing has come: "summaries", "sleep", "promotion", "checkpoint", or None."""
        ...
