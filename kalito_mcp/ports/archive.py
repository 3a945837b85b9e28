"""Whole memories as entries of an archive, which `domain.archive` describes."""

from collections.abc import AsyncGenerator, Sequence
from typing import Protocol

from kalito_mcp.domain.archive import ArchiveEntry, Selection


class ArchiveReader(Protocol):
    """Reads of one consistent view."""

    def entries(self, owner: str, selection: Selection) -> AsyncGenerator[Sequence[ArchiveEntry]]:
        """The entries of the owner's selection, with all fields, some hundred at a time. The same memory always gives
        the same order. Forgotten records are among them.

        A selection that is not restorable has records and what belongs to them, but neither graphs nor tombstones,
        forgotten values or the secret by which those were made.
        """


class ArchiveWriter(ArchiveReader, Protocol):
    """Writes, inside one transaction."""

    async def is_empty(self) -> bool:
        """Whether no owner has anything in the store."""

    async def add(self, owner: str, entries: Sequence[ArchiveEntry]) -> None:
        """Store entries, which have all fields, as the owner's.

        Raises:
            InvalidInput: a value cannot be stored; the message names its line.
        """

    async def finish(self, owners: Sequence[str]) -> None:
        """Settle what these owners' parts of a memory lack, such as causes that they do not have, and mark what is
        derived to be rebuilt. Call it after the last entry; `Maintenance.rebuild_derived` after the transaction."""
