"""What a person looks through: conversations with what came of them, what is open, and how much was said when."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from kalito_mcp.domain.known import KnownRecord
from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.sessions import Session, SessionCursor


@dataclass(frozen=True, slots=True)
class BegunSession:
    """A session, and the host that recorded its first message, if any named itself."""

    session: Session
    client: str | None


class TimelineReader(Protocol):
    """Reads of one consistent view. What is beyond the limits of a scope is neither returned nor counted.

    A session is left out if it was erased: all its messages were, and it has no pins.
    """

    async def begun(self, scope: Scope) -> BegunSession | None:
        """The session that the scope names, of any project; None if it does not exist."""

    async def sessions(
        self,
        scope: Scope,
        *,
        client: str | None = None,
        begun_until: int | None = None,
        before: SessionCursor | None = None,
        is_forgotten: bool | None = None,
        limit: int,
    ) -> Sequence[BegunSession]:
        """At most `limit` sessions, those with the newest message first (see `Session.said_at`), that follow the place
        `before`: of this client, and begun at this moment or earlier. `is_forgotten`: only those of which all is
        forgotten (see `SessionReader`), or all others; None: both."""

    async def clients(self, scope: Scope, *, among: int) -> Sequence[str]:
        """The clients of the newest `among` sessions, in order."""

    async def notes(self, scope: Scope, session_ids: Sequence[str], *, limit: int) -> Sequence[KnownRecord]:
        """Of each of these sessions, the summaries that no higher level covers, oldest first, and then its `limit` most
        important pins. Forgotten, internal and superseded ones are left out."""

    async def open_points(self, scope: Scope, *, limit: int) -> Sequence[KnownRecord]:
        """The `limit` newest pins that say what was open at the end of their session, in its last six messages or after
        them. Among the scope's newest 1,000 pins; forgotten and superseded ones are left out."""

    async def messages_between(self, scope: Scope, moments: Sequence[int]) -> Sequence[int]:
        """How many messages were said from each of these moments until the next; there is one number less than moments.
        The moments ascend and are full quarters of an hour. Forgotten messages do not count."""
