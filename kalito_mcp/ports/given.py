"""What the memory gave back."""

from collections.abc import Sequence
from typing import Protocol

from kalito_mcp.domain.given import GivenEntry, GivenKind
from kalito_mcp.domain.scope import Scope


class GivenReader(Protocol):
    """Reads of one consistent view. A scope has the entries of its agent and session. It has those of its project, and
    what is personal. Within limits to a project, it has none that was read from all projects."""

    async def entries(
        self, scope: Scope, *, before: int | None = None, record_id: str | None = None, limit: int
    ) -> Sequence[GivenEntry]:
        """Entries of the scope, newest first: those before the entry with the id `before`, and those that name
        `record_id` as given."""

    async def entry(self, scope: Scope, entry_id: int) -> GivenEntry | None:
        """The entry with this id, if the scope has it."""

    async def tokens(self, scope: Scope) -> Sequence[tuple[int, GivenKind, int]]:
        """The moment, the kind and the tokens of each entry of the scope, oldest first."""


class GivenWriter(GivenReader, Protocol):
    """Writes, inside one transaction."""

    async def add(self, owner: str, entries: Sequence[GivenEntry], *, since_ms: int, most: int) -> None:
        """Append entries, with the revision that each record had at the moment of its entry. Then remove the owner's
        entries from before `since_ms`, and all but the newest `most`."""
