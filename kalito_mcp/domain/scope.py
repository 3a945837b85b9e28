"""Whose memory, and which part of it."""

from dataclasses import dataclass, replace
from typing import Final

LOCAL_OWNER: Final = "local"
DEFAULT_AGENT: Final = "default"


@dataclass(frozen=True, slots=True)
class Scope:
    """(owner, agent, session): the first parameter of every port method that touches user data.

    `owner` is who is logged in, `local` on stdio. `agent` is whose long-term memory it is. A session belongs to one
    agent, so with a session `None` means the agent of that session. `session` is one conversation; `None` means all of
    the agent's.
    """

    owner: str = LOCAL_OWNER
    agent: str | None = None
    session: str | None = None

    def of_session(self, session_id: str) -> "Scope":
        """The same owner, narrowed to one session."""
        return replace(self, session=session_id)
