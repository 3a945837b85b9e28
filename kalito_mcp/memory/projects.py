"""The projects of a memory."""

from collections.abc import Sequence
from typing import Final

from kalito_mcp.domain.arguments import checks_arguments
from kalito_mcp.domain.scope import PERSONAL
from kalito_mcp.errors import Conflict, InvalidInput
from kalito_mcp.memory.part import Part
from kalito_mcp.ports.records import AlreadyStored
from kalito_mcp.projects import is_path
from kalito_mcp.safety.redaction import checked_handle
from kalito_mcp.upkeep.store_layers import no_new_words

_MOST_LISTED: Final = 1_000


@checks_arguments
class Projects(Part):
    """Lists and renames projects."""

    async def all(self) -> Sequence[tuple[str, int]]:
        """The ids of the newest thousand projects, each with its number of sessions."""
        return await self.place.store.read(lambda view: view.sessions.projects(self.place.scope(), limit=_MOST_LISTED))

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
