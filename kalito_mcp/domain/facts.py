"""What records state about things, and which statement stands now."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from kalito_mcp.domain.time import to_iso

USER_SUBJECT: Final = "@user"
"""The subject of a statement in the first person by a speaker without a name, and of `the user ...` in a note."""
ANY: Final = "*"
"""As an attribute: whichever has this value. As a value: whatever the attribute's value is."""


class Polarity(StrEnum):
    """How a statement holds: now, not or no longer, or only in the past."""

    IS = "is"
    NOT = "not"
    WAS = "was"


class Relation(StrEnum):
    """What a newer statement means for an older one."""

    SUPERSEDES = "supersedes"
    CONFLICT = "conflict"
    SAME = "same"
    UNRELATED = "unrelated"


@dataclass(frozen=True, slots=True)
class Statement:
    """One clause that states something. `start` and `end` are its place in the record's text.

    `subject`, `attribute` and `value` are folded; `shown` is the value as it was written. `is_change` tells whether
    its words say that something changed (now, moved, actually).
    """

    subject: str
    attribute: str
    value: str
    shown: str
    start: int
    end: int
    polarity: Polarity = Polarity.IS
    is_change: bool = False


@dataclass(frozen=True, slots=True)
class StatedFact:
    """A statement of a record, with what became of it.

    It is true from `valid_from` on, and until `valid_until` if a newer one ended it: `superseded_by` is the record with
    that one, and `current_key` the key of the record with what stands now. It was stored at `known_from`, and the newer
    one at `known_until`. `conflicts_with` is a record that says otherwise without saying that anything changed. Moments
    are milliseconds since 1970.
    """

    record_key: int
    record_id: str
    subject: str
    attribute: str
    value: str
    polarity: Polarity
    start: int
    end: int
    valid_from: int
    known_from: int
    valid_until: int | None = None
    known_until: int | None = None
    superseded_by: str | None = None
    superseded_by_key: int | None = None
    current_key: int | None = None
    conflicts_with: str | None = None


@dataclass(frozen=True, slots=True)
class Outdated:
    """A part of a hit's text that is no longer true, until when it was, and which record has said so."""

    text: str
    until: int
    superseded_by: str

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {"text": self.text, "until": to_iso(self.until), "superseded_by": self.superseded_by}


@dataclass(frozen=True, slots=True)
class Claim:
    """The words of a record that state something, and since when they hold."""

    record_id: str
    text: str
    since: int

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {"record_id": self.record_id, "text": self.text, "since": to_iso(self.since)}


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Two statements about one thing that cannot both be true, although neither says that anything changed. The rules
    leave both standing: a person decides, by correcting or forgetting one of the records."""

    subject: str
    attribute: str
    older: Claim
    newer: Claim

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {
            "subject": self.subject,
            "attribute": self.attribute,
            "older": self.older.to_dict(),
            "newer": self.newer.to_dict(),
        }


def spans_of(facts: Sequence[StatedFact]) -> list[tuple[int, int]]:
    """The distinct places of these statements in their record's text, in order."""
    return sorted({(fact.start, fact.end) for fact in facts})
