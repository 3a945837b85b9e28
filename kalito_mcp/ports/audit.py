"""The audit log of who changed what."""

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Protocol, TypeVar

from kalito_mcp.domain.audit import AuditEntry, AuditHead, Change, NewEntry

T = TypeVar("T")


class AuditReader(Protocol):
    """Reads of one consistent view."""

    async def head(self) -> AuditHead:
        """The head as it was kept with the newest entry."""

    async def entries(
        self, owner: str | None, *, since_ms: int = 0, before: int | None = None, limit: int
    ) -> Sequence[AuditEntry]:
        """Entries of an owner or of all, of this moment or later, with a lower number than `before`, the newest
        first."""

    async def count(self, owner: str | None, *, since_ms: int = 0) -> int:
        """How many entries of an owner or of all there are of this moment or later."""

    async def check(self, noted: AuditHead | None) -> tuple[str | None, AuditHead]:
        """The fault of the log that `domain.audit.Chain` finds, or None; and the last entry that was
        read. Reads all of it."""


class AuditWriter(AuditReader, Protocol):
    """Writes of one transaction."""

    async def changes_of(self, work: Callable[[], Coroutine[Any, Any, T]]) -> tuple[T, Sequence[Change]]:
        """The result of `work`, and everything that it changed in this transaction, through whichever writer.

        Records, sessions, tokens and consents are named by their ids; projects, graphs, forgotten values and
        passphrases by names that quote nothing of the memory, such as `project_3`. What `work` changed several times
        counts once: as erased, or else as added.
        """

    async def add(self, entry: NewEntry) -> AuditEntry:
        """Append an entry to the log."""
