"""The projects of a memory."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Final

from kalito_mcp.domain.arguments import checks_arguments
from kalito_mcp.domain.folders import is_foreign
from kalito_mcp.domain.memory_records import PROGRAM, Editor, MemoryRecord
from kalito_mcp.domain.records import RecordType
from kalito_mcp.domain.scope import PERSONAL, Scope
from kalito_mcp.domain.sizes import PartSize
from kalito_mcp.errors import Conflict, InvalidInput
from kalito_mcp.memory.part import Part
from kalito_mcp.ports.records import AlreadyStored
from kalito_mcp.ports.store import ReadView, WriteTransaction
from kalito_mcp.projects import is_path
from kalito_mcp.safety.redaction import checked_handle
from kalito_mcp.switch import FOR_EVER
from kalito_mcp.upkeep.store_layers import no_new_words

_MOST_LISTED: Final = 1_000
_AT_ONCE: Final = 200
_OWN_TYPES: Final = frozenset({RecordType.DOCUMENT, RecordType.TASK, RecordType.THOUGHT})


@dataclass(frozen=True, slots=True)
class Moved:
    """The ids of sessions, and of records without a session, that were given to another project. `left` are records
    that stayed: the other project has a document of the same source."""

    sessions: tuple[str, ...] = ()
    records: tuple[str, ...] = ()
    left: tuple[str, ...] = ()


@checks_arguments
class Projects(Part):
    """Lists, renames, joins and excludes projects."""

    async def all(self) -> Sequence[tuple[str, int]]:
        """The ids of the newest thousand projects, each with its number of sessions."""
        return await self.place.store.read(lambda view: view.sessions.projects(self.place.scope(), limit=_MOST_LISTED))

    async def sizes(self) -> Sequence[PartSize]:
        """What each agent has in each project, of all that is within the limits of this memory."""
        return await self.place.store.read(lambda view: view.sessions.sizes(self.place.scope()))

    async def named(self, project: str) -> str:
        """The id of the project that is meant. Raises InvalidInput: see `in_project`."""
        return await self.place.named(project)

    async def rename(self, old: str, new: str) -> str:
        """Give a project, with all its sessions and records, another name, such as the path of a folder that was moved.
        Returns the new one. If that is a known project, the two become one.

        Raises:
            InvalidInput: no such project, or a name is not acceptable, mistyped, or shared by several projects.
            Conflict: both projects have a document of the same source; nothing was changed.
        """
        self.place.limits.check_none("renaming a project")
        known = [project for project, _ in await self.all()]
        before = old if old in known else await self.place.named(old)
        if before not in known:
            raise InvalidInput(f"no project {old!r}; `kalito-mcp project list` lists them")
        after = self.place.project_at(new) if is_path(new) else checked_handle(new, "project")
        if after == PERSONAL:
            raise InvalidInput(f"{new!r} cannot be a project; use a folder below your home, or a name")
        if before != after:
            try:
                with no_new_words():
                    await self.place.store.write(
                        lambda transaction: transaction.records.rename_project(self.place.owner, before, after)
                    )
            except AlreadyStored as error:
                raise Conflict(
                    "both projects have a document of one source; forget or move one of them first"
                ) from error
        return after

    async def move_all(
        self, old: str, new: str | None, *, only: Moved | None = None, editor: Editor = PROGRAM
    ) -> Moved:
        """Give the sessions of a project, and its records without a session, to another project; None makes them
        personal. With `only`, those of them that are still there: this takes an earlier move back. The histories of
        the records tell of it. Forgotten records without a session stay.

        It works in pieces, between which others read and write. A call that was cut short may be repeated.

        Raises:
            InvalidInput: no such project, or a name is mistyped, or shared by several projects.
        """
        self.place.limits.check_none("moving a project")
        known = [project for project, _ in await self.all()]
        before = old if old in known else await self.place.named(old)
        after = await self.place.target(new)
        if before not in known or before == after:
            raise InvalidInput(f"nothing can be moved from {old!r}; name two projects of `kalito-mcp project list`")
        with no_new_words():
            records, left = await self._move_records(before, after, only, editor)
            sessions = await self._move_sessions(before, after, only)
        return Moved(tuple(sessions), tuple(records), tuple(left))

    async def _move_records(
        self, before: str, after: str | None, only: Moved | None, editor: Editor
    ) -> tuple[list[str], list[str]]:
        """Of a document, the parts go together. The ids of what was moved, and of what stayed."""
        moved: list[str] = []
        left: list[str] = []
        async for record in self._own_records(before):
            if record.id in moved or (only is not None and record.id not in only.records):
                continue
            try:
                parts = await self._services.editor.move(self.place.scope().anywhere(), record.id, after, editor=editor)
            except Conflict:
                left.append(record.id)
            else:
                moved += [part.id for part in parts]
        return moved, left

    async def _own_records(self, project: str) -> AsyncIterator[MemoryRecord]:
        """The records of a project that are in no session, of all agents."""
        for agent in await self.place.store.read(
            lambda view: view.sessions.agents(self.place.scope(), limit=_MOST_LISTED)
        ):
            scope = Scope(self.place.owner, agent, None, project, self.place.limits)
            found: list[MemoryRecord] = []

            async def read(view: ReadView, scope: Scope = scope, found: list[MemoryRecord] = found) -> None:
                found.clear()
                after = None
                while page := await view.records.list_records(scope, _OWN_TYPES, after=after, limit=_AT_ONCE):
                    found += [one for one in page if one.session_id is None and one.project == scope.project]
                    after = page[-1].id

            await self.place.store.read(read)
            for one in found:
                yield one

    async def _move_sessions(self, before: str, after: str | None, only: Moved | None) -> list[str]:
        everywhere = self.place.scope().anywhere()
        there = replace(everywhere, project=before)

        async def read(view: ReadView) -> list[str]:
            found: list[str] = []
            last = None
            while page := await view.sessions.list_begun(there, before=last, limit=_MOST_LISTED):
                found += [one.id for one in page if one.project == before]
                last = page[-1]
            return found

        found = await self.place.store.read(read)
        wanted = [one for one in found if only is None or one in set(only.sessions)]
        moved: list[str] = []
        for start in range(0, len(wanted), _AT_ONCE):
            some = wanted[start : start + _AT_ONCE]

            async def move(transaction: WriteTransaction, some: Sequence[str] = some) -> list[str]:
                done: list[str] = []
                for session_id in some:
                    session = await transaction.sessions.get(everywhere.of_session(session_id))
                    if session is not None and session.project == before:
                        await transaction.sessions.move(session, after)
                        done.append(session_id)
                return done

            moved += await self.place.store.write(move)
        return moved

    async def pause(self, until_ms: int | None = None) -> bool:
        """Remember nothing until this moment, or until `resume`, on this machine, for all owners. Returns whether
        anything was remembered before.

        Raises:
            ConfigurationError: the switch cannot be read or written; nothing changed.
        """
        self.place.limits.check_none("pausing the memory")
        switch = self.place.switch()
        self._services.keep_switch(replace(switch, paused_until=FOR_EVER if until_ms is None else until_ms))
        return not switch.is_paused(self.place.clock.now_ms())

    async def resume(self) -> int | None:
        """Remember again. Returns the end of the last pause, `FOR_EVER` if it has none; None if there was none since
        the last `resume`. Raises as `pause`."""
        self.place.limits.check_none("pausing the memory")
        switch = self.place.switch()
        if switch.paused_until is None:
            return None
        self._services.keep_switch(replace(switch, paused_until=None))
        return switch.paused_until

    def excluded(self) -> Sequence[str]:
        """The folders in which, and below which, nothing is remembered on this machine.

        Raises:
            ConfigurationError: that cannot be read.
        """
        return self.place.switch().excluded

    async def exclude(self, folder: str) -> bool:
        """Remember nothing in a project's folder from now on, on this machine, for all owners. What is remembered of it
        stays. Returns whether it was remembered before.

        Raises:
            InvalidInput: it is not the whole path of a folder.
            ConfigurationError: the list of excluded folders cannot be read or written; nothing changed.
        """
        self.place.limits.check_none("excluding a folder")
        if not PurePath(folder).is_absolute() and not is_foreign(folder):
            raise InvalidInput(
                f"{folder!r} is not the whole path of a folder, so no conversation can be left out by it"
            )
        switch = self.place.switch()
        if folder in switch.excluded:
            return False
        self._services.keep_switch(replace(switch, excluded=(*switch.excluded, folder)))
        return True

    async def include(self, folder: str) -> bool:
        """Remember again what is said in a folder that was excluded. Returns whether it was excluded. Raises as
        `exclude`."""
        self.place.limits.check_none("excluding a folder")
        switch = self.place.switch()
        if folder not in switch.excluded:
            return False
        self._services.keep_switch(replace(switch, excluded=tuple(one for one in switch.excluded if one != folder)))
        return True
