"""Whose memory, and which part of it."""

from dataclasses import dataclass, replace
from typing import Final

from kalito_mcp.domain.sessions import Session
from kalito_mcp.errors import InvalidInput

LOCAL_OWNER: Final = "local"
DEFAULT_AGENT: Final = "default"
PERSONAL: Final = "personal"
"""Instead of a project: none."""

NO_PROJECT: Final = (
    "scope='project' needs a project, and this has none; use scope='person' or 'session', or send project with the "
    "first message of the session"
)
"""The refusal of what should be known in all of a project, without one."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What of an owner's memory a principal reaches: one agent's, and one project with what is personal; None: all.

    Beyond them nothing exists: what is named by its id is not found there.
    """

    agent: str | None = None
    project: str | None = None


NO_LIMITS: Final = Limits()


@dataclass(frozen=True, slots=True)
class Scope:
    """(owner, agent, project, session): the first parameter of every port method that touches user data.

    `owner` is who is logged in, `local` on stdio. `agent` is whose long-term memory it is. A session belongs to one
    agent, so with a session `None` means the agent of that session. `session` is one conversation; `None` means all of
    the agent's. `project` is the repository or folder that it is about: reads find what is of that project and what is
    personal, with `PERSONAL` only the latter, and with `None` all projects. What is written with `None` is personal,
    or of its session's project.

    `project` narrows what a call looks for; `limits` is all that the caller may reach, also by the id of a session or a
    record.
    """

    owner: str = LOCAL_OWNER
    agent: str | None = None
    session: str | None = None
    project: str | None = None
    limits: Limits = NO_LIMITS

    def of_session(self, session_id: str) -> "Scope":
        """The same owner, narrowed to one session."""
        return replace(self, session=session_id)

    def admit(self, session: Session) -> None:
        """Check that the session is of this project.

        Raises:
            InvalidInput: it is of another one.
        """
        if self.project is None or (session.project or PERSONAL) == self.project or not session.is_placed:
            return
        theirs = f"belongs to project {session.project!r}" if session.project else "is of no project"
        raise InvalidInput(
            f"session {session.id!r} {theirs}; send project={session.project or PERSONAL!r}, or use another session_id"
        )
