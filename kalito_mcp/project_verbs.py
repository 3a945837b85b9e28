"""The verbs of `Memory` for projects: narrow it to one, move what is of one, and rename it."""

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from typing import Final, Self

from kalito_mcp.acting import acting
from kalito_mcp.contexts.manager import MemoryManager
from kalito_mcp.domain.access import HOST
from kalito_mcp.domain.memory_records import PROGRAM, Editor, MemoryRecord
from kalito_mcp.domain.scope import NO_LIMITS, PERSONAL, Limits, Scope
from kalito_mcp.domain.sessions import Session
from kalito_mcp.editing.editor import RecordEditor
from kalito_mcp.errors import Conflict, InvalidInput
from kalito_mcp.ports.clock import Clock
from kalito_mcp.ports.store import Store, WriteTransaction
from kalito_mcp.projects import ProjectPolicy, is_elsewhere, is_ignored, is_path, project_by_path, project_of
from kalito_mcp.records.reached import reached
from kalito_mcp.retrieval.known_names import find_project, find_session, session_reached
from kalito_mcp.safety.redaction import checked_handle
from kalito_mcp.switch import Switch
from kalito_mcp.upkeep.store_layers import no_new_words

_MOST_LISTED: Final = 1_000


class ProjectVerbs:
    """The part of `Memory` that works on projects."""

    manager: MemoryManager
    _editor: RecordEditor
    _limits: Limits
    _owner: str
    _project: str | None
    _projects: ProjectPolicy
    _store: Store
    _switch: Callable[[], Switch]
    clock: Clock

    @property
    def limits(self) -> Limits:
        """What of the owner's memory this one reaches."""
        return self._limits

    def of_owner(self, owner: str, limits: Limits = NO_LIMITS) -> Self:
        """The memory of another owner of the same database, or the part of it within the limits. It is narrowed to the
        limits' project if they name one, else as this one is."""
        theirs = copy(self)
        theirs._owner, theirs._limits, theirs._project = owner, limits, limits.project or self._project
        theirs.manager = self.manager.of_owner(owner, limits)
        return theirs

    async def in_project(self, project: str | None) -> Self:
        """The same memory for one project: it reads what is of the project and what is personal, and writes into it.

        `project` is the path of a repository or a folder, the last part of a known one's path, or any other name;
        `"personal"` means none, and None all: then it writes into the project of the session, or personal records.

        Raises:
            InvalidInput: the name is not acceptable, mistyped, or that of several projects.
            AccessDenied: this memory is limited to another project, or it is to be all.
        """
        named = self._limits.project_of(None) if project is None else await self._named(project)
        narrowed = copy(self)
        narrowed._project = named
        narrowed.manager = self.manager.in_project(named)
        return narrowed

    async def in_project_of(self, session_id: str) -> Self:
        """The same memory for the project of a session, or as it is if there is no such session."""
        scope = await self._of_session(session_id)
        session = await self._store.read(lambda view: view.sessions.get(scope))
        return self if session is None else await self.in_project(session.project or PERSONAL)

    async def for_question(self, session_id: str | None = None) -> Self:
        """The same memory for what somebody asks on purpose. Outside any project that is all of it that the caller
        reaches; in a session of a project, that project."""
        if self._project not in (None, PERSONAL, self._limits.project):
            return self
        asking = self if session_id is None else await self.in_project_of(session_id)
        is_outside = asking._project in (None, PERSONAL) and self._limits.project is None
        return await self.in_project(None) if is_outside else asking

    async def projects(self) -> Sequence[tuple[str, int]]:
        """The ids of the newest thousand projects, each with its number of sessions."""
        return await self._store.read(lambda view: view.sessions.projects(self._scope(None), limit=_MOST_LISTED))

    async def move_session(self, session_id: str, project: str | None) -> Session:
        """Give a session, with all its messages, summaries and pins, to a project; None makes it personal.

        Raises:
            SessionNotFound: no such session.
            InvalidInput: the project's name is not acceptable, mistyped, or that of several projects.
        """
        target = await self._target(project)
        scope = replace(await self._of_session(session_id), project=None)

        async def move(transaction: WriteTransaction) -> Session:
            await transaction.sessions.move(await find_session(transaction, scope), target)
            return await find_session(transaction, scope)

        with no_new_words():
            return await self._store.write(move)

    async def move_record(
        self, record_id: str, project: str | None, *, editor: Editor = PROGRAM
    ) -> Sequence[MemoryRecord]:
        """Give a record that is in no session, or all parts of such a document, to a project; None makes it personal.
        The record's history tells of it.

        Raises:
            RecordNotFound: no such record, or it was erased.
            InvalidInput: see `move_session`.
            Conflict: the record belongs to a session; or the project has a document of the same source.
        """
        scope = self._scope(None).anywhere()
        with no_new_words():
            moved = await self._editor.move(scope, record_id, await self._target(project), editor=editor)
        return await reached(self._store, scope, moved)

    async def rename_project(self, old: str, new: str) -> str:
        """Give a project, with all its sessions and records, another name, such as the path of a folder that was moved.
        Returns the new one. If that is a known project, the two become one.

        Raises:
            InvalidInput: no such project, or a name is not acceptable, mistyped, or that of several projects.
            Conflict: both projects have a document of the same source; nothing was changed.
        """
        self._limits.check_none("renaming a project")
        known = [project for project, _ in await self.projects()]
        before = old if old in known else await self._named(old)
        if before not in known:
            raise InvalidInput(f"no project {old!r}; `kalito-mcp project list` lists them")
        after = self._project_at(new) if is_path(new) else checked_handle(new, "project")
        if after == PERSONAL:
            raise InvalidInput(f"{new!r} cannot be a project; use a folder below your home, or a name")
        if before != after:
            with no_new_words():
                await self._store.write(
                    lambda transaction: transaction.records.rename_project(self._owner, before, after)
                )
        return after

    async def _named(self, project: str) -> str:
        """The id of the project that a caller means."""
        if project == PERSONAL:
            return project
        checked_handle(project, "project")
        if self._limits.project is not None:
            is_folder = is_path(project) and project != self._limits.project
            return self._limits.project_of(self._project_at(project) if is_folder else project) or PERSONAL
        if is_path(project):
            return self._project_at(project)
        if is_elsewhere(project):
            return project
        return await self._store.read(lambda view: find_project(view, self._scope(None), project))

    def _project_at(self, folder: str) -> str:
        """The project of a folder: of one on this machine, unless the call came over HTTP."""
        return (project_of if _is_here() else project_by_path)(folder, self._projects)

    async def _target(self, project: str | None) -> str | None:
        """The same for a project that something moves to; None for what becomes personal."""
        named = PERSONAL if project is None else await self._named(project)
        return None if named == PERSONAL else named

    def check_remembered(self, folder: str | None = None) -> None:
        """Raise Conflict while the memory is paused, and in a project or a folder where nothing is remembered.

        Raises:
            ConfigurationError: it cannot be read whether the memory is paused.
        """
        switch = self._switch()
        switch.check_not_paused(self.clock.now_ms())
        for place in (folder, self._project if self._project and is_path(self._project) else None):
            if switch.is_excluded(place, is_here=_is_here()):
                raise Conflict(
                    f"nothing is remembered in {place}: it is excluded; `kalito-mcp exclude --remove` ends that"
                )
        if self._project is not None and is_ignored(self._project, self._projects):
            raise Conflict(
                f"nothing is remembered in {self._project}: the setting memory.ignored names it; go on without"
            )

    def _scope(self, session_id: str | None, agent_id: str | None = None) -> Scope:
        return Scope(self._owner, self._limits.agent_of(agent_id), session_id, self._project, self._limits)

    async def _of_session(
        self, session_id: str | None, agent_id: str | None = None, *, may_be_new: bool = False
    ) -> Scope:
        """The scope of the session that is meant within the limits."""
        return await session_reached(self._store, self._scope(session_id, agent_id), may_be_new=may_be_new)


def _is_here() -> bool:
    """Whether this call comes from a program on this machine: over stdio, or from the command line."""
    called = acting()
    return called is None or called.principal == HOST
