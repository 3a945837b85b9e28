"""Where a memory works: whose it is, what of it the caller reaches, and in which project."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Self

from kalito_mcp.domain.access import HOST
from kalito_mcp.domain.folders import is_foreign
from kalito_mcp.domain.memory_records import MemoryRecord
from kalito_mcp.domain.scope import NO_LIMITS, PERSONAL, Limits, Scope
from kalito_mcp.domain.sessions import Session
from kalito_mcp.domain.spaces import Membership, Role, seen_in_spaces
from kalito_mcp.errors import AccessDenied, Conflict
from kalito_mcp.ports.clock import Clock
from kalito_mcp.ports.store import ReadView, Store
from kalito_mcp.projects import ProjectPolicy, is_elsewhere, is_ignored, is_path, project_by_path, project_of, spelled
from kalito_mcp.records.historian import records_ever
from kalito_mcp.records.reached import reached
from kalito_mcp.retrieval.known_names import find_project, session_reached
from kalito_mcp.runtime.acting import acting
from kalito_mcp.safety.redaction import checked_handle
from kalito_mcp.switch import Switch


@dataclass(frozen=True, slots=True)
class Place:
    """The owner, the limits and the project of a memory, and what it takes to know what a caller means by a name."""

    store: Store
    clock: Clock
    policy: ProjectPolicy
    switch: Callable[[], Switch]
    owner: str
    limits: Limits = NO_LIMITS
    project: str | None = None
    """The project's id, `PERSONAL` for none, and None for all."""

    def of_owner(self, owner: str, limits: Limits) -> Self:
        """The same for another owner, within limits; in the limits' project if they name one."""
        return replace(self, owner=owner, limits=limits, project=limits.project or self.project)

    async def in_project(self, project: str | None) -> Self:
        """The same in a project, by the name that a caller gives it; see `Memory.in_project`."""
        return replace(self, project=self.limits.project_of(None) if project is None else await self.named(project))

    async def in_project_of(self, session_id: str) -> Self:
        """The same in the project of a session, or as it is if there is no such session."""
        scope = await self.of_session(session_id)
        session = await self.store.read(lambda view: view.sessions.get(scope))
        return self if session is None else await self.in_project(session.project or PERSONAL)

    async def for_question(self, session_id: str | None) -> Self:
        """The same for what somebody asks on purpose; see `Memory.for_question`."""
        if self.project not in (None, PERSONAL, self.limits.project):
            return self
        asking = self if session_id is None else await self.in_project_of(session_id)
        is_outside = asking.project in (None, PERSONAL) and self.limits.project is None
        return await self.in_project(None) if is_outside else asking

    def scope(self, session_id: str | None = None, agent_id: str | None = None) -> Scope:
        """The scope of a call, without looking the session up."""
        return Scope(self.owner, self.limits.agent_of(agent_id), session_id, self.project, self.limits)

    async def of_session(
        self, session_id: str | None, agent_id: str | None = None, *, may_be_new: bool = False
    ) -> Scope:
        """The scope of the session that is meant within the limits."""
        return await session_reached(self.store, self.scope(session_id, agent_id), may_be_new=may_be_new)

    async def session_within(self, view: ReadView, session_id: str) -> Session | None:
        """The session of this id, or of the id that a caller within limits gave it, if any."""
        scope = self.scope(session_id)
        session = await view.sessions.get(scope)
        if session is None and self.limits != NO_LIMITS:
            session = await view.sessions.get(scope.of_session(self.limits.own_session(session_id)))
        return session

    async def holding(self, record_id: str, needed: Role = Role.READER) -> Self:
        """Where a record is: here, or in one of the spaces that the owner is a member of.

        Raises:
            AccessDenied: the record is in a space, and the owner's role there is too low. A writer may do with what
                they shared themselves what a curator may do with all.
        """

        async def look(view: ReadView) -> tuple[Scope, Membership, set[str]] | None:
            memberships = await view.spaces.memberships(self.owner)
            if not memberships or await records_ever(view.records, self.scope(), record_id) is not None:
                return None
            for member, scope in seen_in_spaces(self.scope().anywhere(), memberships):
                parts = await records_ever(view.records, scope, record_id)
                if parts is not None:
                    shared = await view.spaces.shared(member.space.name, [one.id for one in parts])
                    # Of what was erased nobody knows whose it was, and nothing is left to protect.
                    return scope, member, {one.user for one in shared.values()}
            return None

        found = await self.store.read(look)
        if found is None:
            return self
        scope, member, sharers = found
        if not (member.may_change(sharers) if needed is Role.CURATOR else member.role.includes(needed)):
            raise AccessDenied(
                f"{record_id} is in the space {member.space.name!r}, where you are a {member.role}; ask a curator"
            )
        return replace(self, owner=scope.owner, limits=scope.limits)

    async def reached(self, records: Sequence[MemoryRecord]) -> Sequence[MemoryRecord]:
        """The records, without the ids of what is beyond the limits."""
        return await reached(self.store, self.scope(), records)

    async def named(self, project: str) -> str:
        """The id of the project that a caller means."""
        if project == PERSONAL:
            return project
        project = checked_handle(spelled(project), "project")
        if self.limits.project is not None:
            is_folder = is_path(project) and project != self.limits.project
            return self.limits.project_of(self.project_at(project) if is_folder else project) or PERSONAL
        if is_path(project):
            return self.project_at(project)
        if is_elsewhere(project):
            return project
        return await self.store.read(lambda view: find_project(view, self.scope(), project))

    async def target(self, project: str | None) -> str | None:
        """The same for a project that something moves to; None for what becomes personal."""
        named = PERSONAL if project is None else await self.named(project)
        return None if named == PERSONAL else named

    def project_at(self, folder: str) -> str:
        """The project of a folder: of one on this machine, unless the call came over HTTP."""
        return (project_of if _is_here() else project_by_path)(folder, self.policy)

    def check_remembered(self, folder: str | None = None) -> None:
        """Raise Conflict while the memory is paused, and in a project or a folder where nothing is remembered.

        Raises:
            ConfigurationError: it cannot be read whether the memory is paused.
        """
        switch = self.switch()
        switch.check_not_paused(self.clock.now_ms())
        is_named_so = self.project is not None and (is_path(self.project) or is_foreign(self.project))
        for place in (folder, self.project if is_named_so else None):
            if switch.is_excluded(place, is_here=_is_here()):
                raise Conflict(
                    f"nothing is remembered in {place}: it is excluded; `kalito-mcp exclude --remove` ends that"
                )
        if self.project is not None and is_ignored(self.project, self.policy):
            raise Conflict(
                f"nothing is remembered in {self.project}: the setting memory.ignored names it; go on without"
            )


def _is_here() -> bool:
    """Whether this call comes from a program on this machine: over stdio, or from the command line."""
    called = acting()
    return called is None or called.principal == HOST
