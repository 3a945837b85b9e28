"""The audit log of who changed what."""

from collections.abc import Sequence
from typing import Protocol

from kalito_mcp.domain.audit import AuditEntry, AuditHead, Change, NewEntry


class AuditReader(Protocol):
    """Reads of one consistent view."""

    async def head(self) -> AuditHead:
        """The head as it was kept with the newest entry."""

    async def entries(
        self, owner: str | None, *, since_ms: int = 0, before: int | None = None, limit: int
    ) -> Sequence[AuditEntry]:
        """Entries of an owner or of all, of this moment or later, with a lower number than `before`, the newest
        first."""

    async def check(self, noted: AuditHead | None) -> tuple[str | None, AuditHead]:
        """The fault of the log that `domain.audit.Chain` finds, or None; and the last entry that was
        read. Reads all of it."""


class AuditWriter(AuditReader, Protocol):
    """Writes of one transaction."""

    async def begin(self) -> None:
        """Notice from now on what this transaction does to which ids."""

    async def end(self) -> Sequence[Change]:
        """The changes since `begin`. Later ones are not noted."""

    async def add(self, entry: NewEntry) -> AuditEntry:
        """Append an entry to the log."""
