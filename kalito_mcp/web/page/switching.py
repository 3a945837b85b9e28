"""Switches remembering off and on, on this machine and for all its owners. Only who has the machine may."""

from typing import Annotated, Any, Final

from pydantic import Field

from kalito_mcp.domain.access import Permission
from kalito_mcp.web.page.machine import Machine, checked_machine
from kalito_mcp.web.page.view import Act, Done, Nothing, Undo, ViewFields, Visit

_LATEST_MS: Final = 1 << 53


class Pause(ViewFields):
    """The end of a pause, in milliseconds since 1970; 0 or nothing: none. Or for how many minutes."""

    until: Annotated[int | None, Field(ge=0, le=_LATEST_MS)] = None
    minutes: Annotated[int | None, Field(ge=1, le=525_600)] = None


class Folder(ViewFields):
    """The folder of a project."""

    folder: Annotated[str, Field(min_length=1, max_length=1_000)]


class Switching:
    """The acts."""

    def __init__(self, machine: Machine | None) -> None:
        self._machine = machine

    def lines(self) -> "tuple[Act[Any], ...]":
        """Their lines of the table."""
        return (
            Act("pause", self.pause, Pause, Permission.ADMIN),
            Act("resume", self.resume, Nothing, Permission.ADMIN),
            Act("exclude_folder", self.exclude, Folder, Permission.ADMIN),
            Act("include_folder", self.include, Folder, Permission.ADMIN),
        )

    async def pause(self, visit: Visit[Pause]) -> Done:
        """Remember nothing for a while, or until somebody resumes."""
        checked_machine(visit, self._machine)
        until = visit.sent.until
        if visit.sent.minutes is not None:
            until = visit.memory.place.clock.now_ms() + visit.sent.minutes * 60_000
        if not await visit.memory.projects.pause(until or None):
            return Done("It was paused already, and now is until then" if until else "It was paused already")
        await visit.memory.access.log("page pause")
        return Done("Paused: nothing is remembered", Undo("resume", {}))

    async def resume(self, visit: Visit[Nothing]) -> Done:
        """Remember again."""
        checked_machine(visit, self._machine)
        before = await visit.memory.projects.resume()
        if before is None:
            return Done("It was not paused")
        await visit.memory.access.log("page resume")
        return Done("Remembering again", Undo("pause", {"until": before}))

    async def exclude(self, visit: Visit[Folder]) -> Done:
        """Remember nothing in a folder."""
        checked_machine(visit, self._machine)
        folder = visit.sent.folder
        if not await visit.memory.projects.exclude(folder):
            return Done("It is left out already")
        await visit.memory.access.log("page exclude_folder")
        return Done("Nothing is remembered there from now on", Undo("include_folder", {"folder": folder}))

    async def include(self, visit: Visit[Folder]) -> Done:
        """Remember again what is said in a folder."""
        checked_machine(visit, self._machine)
        folder = visit.sent.folder
        if not await visit.memory.projects.include(folder):
            return Done("It is not left out")
        await visit.memory.access.log("page include_folder")
        return Done("Remembering there again", Undo("exclude_folder", {"folder": folder}))
