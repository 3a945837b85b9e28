"""The files of the memory tool."""

from collections.abc import Callable, Collection, Mapping, Sequence

from kalito_mcp.domain.arguments import checks_arguments
from kalito_mcp.domain.files import FileTree
from kalito_mcp.domain.memory_records import PROGRAM, Editor, MemoryRecord
from kalito_mcp.editing.files import Write
from kalito_mcp.memory.part import Part
from kalito_mcp.records.reached import reached
from kalito_mcp.upkeep.store_layers import no_new_words


@checks_arguments
class Files(Part):
    """Files of the project alone, or without one the personal ones.

    Paths are absolute and begin with `/memories/`. The functions that these verbs take decide by what is stored: they
    run again within the transaction, and so must depend on their arguments alone. What they raise is passed on, and
    then nothing was written.
    """

    async def look(self, path: str) -> tuple[FileTree, MemoryRecord | None]:
        """All files, and the record of the one at this path, if any."""
        scope = self.place.scope()
        tree, file = await self._services.files.look(scope, path)
        return tree, None if file is None else (await reached(self.place.store, scope, [file]))[0]

    async def write(self, path: str, write: Write, *, editor: Editor = PROGRAM) -> MemoryRecord:
        """Give the file at this path the text that `write` makes of all files and its text, None if it is a new one.

        Raises:
            InvalidInput: the text is blank, too long or not valid Unicode.
            Conflict: an assistant or a program writes what was forgotten; or nothing is remembered now.
        """
        self.place.check_remembered()
        scope = self.place.scope()
        return (
            await reached(
                self.place.store, scope, [await self._services.files.write(scope, path, write, editor=editor)]
            )
        )[0]

    async def delete(
        self, select: Callable[[FileTree], Collection[str]], *, editor: Editor = PROGRAM
    ) -> Sequence[MemoryRecord]:
        """Hide the files at the paths that `select` chooses, all of them or none. `restore` brings one back."""
        with no_new_words():
            deleted = await self._services.files.delete(self.place.scope(), select, editor=editor)
        return await self.place.reached(deleted)

    async def rename(
        self, select: Callable[[FileTree], Mapping[str, str]], *, editor: Editor = PROGRAM
    ) -> Sequence[MemoryRecord]:
        """Give files other paths, all of them or none: `select` returns the new ones, which are free, by the old."""
        with no_new_words():
            renamed = await self._services.files.rename(self.place.scope(), select, editor=editor)
        return await self.place.reached(renamed)
