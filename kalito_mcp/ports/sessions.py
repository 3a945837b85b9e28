"""Sessions and their counters."""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.sessions import Session, SessionCursor, SessionState
from kalito_mcp.domain.sizes import PartSize


class SessionReader(Protocol):
    """Reads of one consistent view. What is beyond the limits of a scope is neither returned nor counted.

    Of a session all is forgotten if all its messages are, or were erased, and it has no pins. Unless a list
    `has_forgotten`, it leaves those sessions out.
    """

    async def get(self, scope: Scope) -> Session | None:
        """The session that the scope names; None if the owner has no such session."""

    async def named(self, scope: Scope, session_ids: Sequence[str]) -> Mapping[str, Session]:
        """Those of these sessions that `get` would find in the scope, by id."""

    async def list_recent(
        self,
        scope: Scope,
        *,
        prefix: str = "",
        limit: int,
        before: SessionCursor | None = None,
        has_forgotten: bool = True,
    ) -> Sequence[Session]:
        """At most `limit` sessions whose id starts with the prefix, those with the newest message first (see
        `Session.said_at`), that follow the place `before`."""

    async def list_begun(
        self, scope: Scope, *, before: Session | None, limit: int, has_forgotten: bool = True
    ) -> Sequence[Session]:
        """At most `limit` sessions that began before `before` (None: all), newest first. No write changes this
        order."""

    async def first_texts(self, scope: Scope, session_ids: Sequence[str]) -> Mapping[str, Sequence[str]]:
        """The user's first words in each of these sessions of the scope's project, or of none, for its title: the
        texts, or their beginnings, of the user's own messages among the first `titles.FIRST_MESSAGES`. Forgotten,
        erased and internal ones are left out."""

    async def census(self, scope: Scope) -> tuple[float, ...]:
        """A fingerprint of the sessions in the scope, without those of which all is forgotten."""

    async def agents(self, scope: Scope, *, limit: int) -> Sequence[str]:
        """The ids of at most `limit` of the owner's agents, newest first; under a limit to a project, in order of
        name. Within limits only those that have something there."""

    async def projects(self, scope: Scope, *, limit: int) -> Sequence[tuple[str, int]]:
        """The ids of at most `limit` of the owner's projects, newest first, each with its number of sessions. Within
        limits only those that have something there."""

    async def sizes(self, scope: Scope) -> Sequence[PartSize]:
        """What each of the owner's agents has in each project, in no order. What is forgotten is not counted."""

    async def totals(self, scope: Scope) -> dict[str, int]:
        """How many sessions, messages, pins, summaries, notes, tasks and documents the owner has."""

    async def list_owing(
        self,
        *,
        threshold: int,
        max_summaries: int,
        after: Session | None,
        limit: int,
        owners: Collection[str] | None = None,
    ) -> Sequence[Session]:
        """At most `limit` sessions of these owners (None: of any) that owe background work, after a session, or from
        the first, in an order of the store's own.

        A session owes work if it has at least `threshold` messages without a summary, more than `max_summaries`
        summaries of one level that are not folded, or messages not yet searched for pins.
        """


class SessionWriter(SessionReader, Protocol):
    """Writes, inside one transaction."""

    async def create(self, scope: Scope, *, now_ms: int) -> Session:
        """Create the session that the scope names, which the owner does not have yet: open, and empty, of the scope's
        agent and project."""

    async def move(self, session: Session, project: str | None) -> None:
        """Give the session and all that belongs to it to a project; None makes it personal."""

    async def set_state(self, session: Session, state: SessionState, *, now_ms: int) -> None:
        """Move the session to a state."""

    async def set_pinned_seq(self, session: Session, seq: int) -> bool:
        """Store that messages up to `seq` were searched for automatic pins, unless others were since the session was
        read, or it was finalized. Whether that is stored."""

    async def set_observed_seq(self, session: Session, seq: int) -> None:
        """Store that messages up to `seq` are in the session's graph. Never moves back."""

    async def set_stage(self, session: Session, stage: str | None) -> None:
        """Store how far finalizing has come: "summaries", "sleep", "promotion", "checkpoint", or None."""


class HasSessions(Protocol):
    """A view or a transaction, for code that reads nothing else of it."""

    @property
    def sessions(self) -> SessionReader: ...
