"""A part of an owner's memory."""

from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import PurePath
from typing import Final

from kalito_mcp.domain.sessions import Session
from kalito_mcp.errors import AccessDenied, InvalidInput

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
    """The part of an owner's memory that a principal reaches: one agent's, and one project with what is personal; None:
    all.

    Beyond them nothing exists: what is named by its id is not found there.
    """

    agent: str | None = None
    project: str | None = None

    def agent_of(self, named: str | None) -> str | None:
        """The agent that is meant by a name, or by none.

        Raises:
            AccessDenied: it is not the one that is reached. Whether it exists, the words do not say.
        """
        if self.agent is None or named == self.agent:
            return named
        if named is None:
            return self.agent
        raise AccessDenied(f"this token reaches only the agent {self.agent!r}; leave agent_id out")

    def project_of(self, named: str | None) -> str | None:
        """The project that is meant by a name: its own, the last part of its path, or `PERSONAL`. None means all.

        Raises:
            AccessDenied: it is not the one that is reached. Whether it exists, the words do not say.
        """
        if self.project is None or named in (self.project, PERSONAL):
            return named
        if named is not None and named == PurePath(self.project).name:
            return self.project
        raise AccessDenied(
            f"this token reaches only the project {self.project!r} and what is personal; leave project out, "
            "or use a token for the project that you work in"
        )

    def reaches(self, agent: str, project: str | None) -> bool:
        """Whether what is of this agent and project is within them. What is of no project is personal."""
        return self.agent in (None, agent) and (self.project is None or project in (None, self.project))

    def own_session(self, session_id: str) -> str:
        """The id that a new session gets within these limits: a session beyond them may have the one that was asked
        for, and nobody shall learn of it."""
        if self == NO_LIMITS or not session_id:
            return session_id
        named = f"{self.agent or ''}\x1f{self.project or ''}"
        mark = blake2b(named.encode("utf-8", "surrogatepass"), digest_size=_MARK_BYTES).hexdigest()
        return f"{session_id}~{mark}"

    def check_none(self, what: str) -> None:
        """Refuse what is of all agents and projects.

        Raises:
            AccessDenied: there are limits.
        """
        if self != NO_LIMITS:
            raise AccessDenied(f"{what} covers the whole memory; use a token without an agent or project limit")


_MARK_BYTES: Final = 4


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

    def anywhere(self) -> "Scope":
        """All of the owner's that the caller reaches, whatever this scope is narrowed to."""
        return Scope(self.owner, limits=self.limits)

    def landing(self) -> "Scope":
        """The same for a write: with the agent of the limits, if it names none.

        Raises:
            AccessDenied: the agent or the project is beyond the limits.
        """
        if self.limits == NO_LIMITS:
            return self
        if self.project is not None:
            self.limits.project_of(self.project)
        return replace(self, agent=self.limits.agent_of(self.agent))

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
