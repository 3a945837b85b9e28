"""Whole memories as rows, for an archive."""

from collections.abc import AsyncGenerator, Sequence
from typing import Protocol

from kalito_mcp.domain.archive import ArchiveRow, Selection


class ArchiveReader(Protocol):
    """Reads of one consistent view."""

    async def schema(self) -> int:
        """The number of the store's schema. Rows of a smaller one can be added to a store of a larger one."""

    def rows(self, owner: str, selection: Selection) -> AsyncGenerator[Sequence[ArchiveRow]]:
        """The owner's canonical rows of the selection, in an order that depends on nothing but them, some hundred at a
        time: a row that another one names comes first. Forgotten records are among them.

        A selection that is not restorable has records and what belongs to them, but neither graphs nor tombstones,
        forgotten values or the secret by which those were made.
        """


class ArchiveWriter(ArchiveReader, Protocol):
    """Writes, inside one transaction."""

    async def is_empty(self) -> bool:
        """Whether no owner has anything in the store."""

    async def add_rows(self, owner: str, rows: Sequence[ArchiveRow]) -> None:
        """Store rows of an archive as the owner's, with their own keys. Columns that a row lacks get the default of the
        schema.

        Raises:
            InvalidInput: a row cannot be one of its table; the message names its line.
        """

    async def finish(self) -> None:
        """Settle what a part of a memory lacks, such as causes that it does not have, and mark what is derived to be
        rebuilt. Call it after the last row; `Maintenance.rebuild_derived` after the transaction."""
