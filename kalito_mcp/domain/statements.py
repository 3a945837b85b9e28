"""What is stated in pins and notes, as a person reads it: with what no longer holds, and with what is undecided."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from kalito_mcp.domain.memory_records import MemoryRecord

KEPT_AT: Final = "kept_at"
"""The field of `content` with the moment a person kept what was found automatically, in milliseconds."""

HOLDS_WITH: Final = "holds_with"
"""The field of `content` with the ids of records that a person said hold as well, though they seem to disagree."""


class Subject(StrEnum):
    """What a statement is about, in the order in which they are listed."""

    RULES = "rules"
    DECISIONS = "decisions"
    PLANS = "plans"
    FACTS = "facts"
    OPEN = "open points"


class Standing(StrEnum):
    """Whether a statement holds."""

    CURRENT = "current"
    SUPERSEDED = "superseded"
    FORGOTTEN = "forgotten"


@dataclass(frozen=True, slots=True)
class Statement:
    """A record that states something. `superseded_by` is the id of the newest record that supersedes it. What is in a
    space, its reader `may_change` only as their role there says."""

    record: MemoryRecord
    subject: Subject
    standing: Standing
    superseded_by: str | None = None
    may_change: bool = True


@dataclass(frozen=True, slots=True)
class StatementGroup:
    """Statements of one place that are about the same: `first` is the newest that holds, or else the newest, and
    `others` follow, newest first; a person's own come before those of their spaces. A personal group has no `project`.
    """

    first: Statement
    others: tuple[Statement, ...] = ()

    @property
    def project(self) -> str | None:
        """The project whose statements they are; None if they are the person's."""
        return self.first.record.project


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Two statements of one place that are about the same and say different things; `newer` was said later. The
    values are the words in which they differ, and are empty if one denies the other."""

    newer: MemoryRecord
    older: MemoryRecord
    newer_values: tuple[str, ...] = ()
    older_values: tuple[str, ...] = ()
