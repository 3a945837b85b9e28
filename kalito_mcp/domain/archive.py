"""What an archive is made of: which part of a memory it has, and its rows. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kalito_mcp.domain.records import RecordType

Value = str | int | float | bytes | None


class ArchiveRow(NamedTuple):
    """A row of a table of the database, by column, without its owner. `line` is its line in a file, or 0."""

    table: str
    fields: Mapping[str, Value]
    line: int = 0


@dataclass(frozen=True, slots=True)
class Selection:
    """Which part of a memory is exported. What is not set does not narrow it.

    `session` is one conversation, `project` what is of one project (`personal`: of none) and `agent` one agent's
    memory. `types` are the types of records. `since_ms` and `until_ms` bound when they were said, both included.
    """

    session: str | None = None
    project: str | None = None
    agent: str | None = None
    types: frozenset[RecordType] = field(default=frozenset())
    since_ms: int | None = None
    until_ms: int | None = None

    @property
    def is_all(self) -> bool:
        """Whether it is the whole memory."""
        return self == Selection()

    @property
    def is_restorable(self) -> bool:
        """Whether it has whole conversations only. A conversation without some of its messages cannot be restored."""
        return not self.types and self.since_ms is None and self.until_ms is None

    def to_dict(self) -> dict[str, Any]:
        """What is set, JSON-ready."""
        given = {
            "session": self.session,
            "project": self.project,
            "agent": self.agent,
            "types": sorted(map(str, self.types)) or None,
            "since_ms": self.since_ms,
            "until_ms": self.until_ms,
        }
        return {name: value for name, value in given.items() if value is not None}
