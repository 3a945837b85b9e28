"""What the memory gave back: for each answer, which records were in it and which were left out. Pure.

Ids, revisions and numbers, never a word of a query or a record, so a record that is erased leaves no words here.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from kalito_mcp.domain.scope import DEFAULT_AGENT

MOST_KEPT: Final = 2_000
"""Entries that are kept of each owner."""
KEPT_DAYS: Final = 30
MOST_IN_PART: Final = 200
"""Records that an entry names of one part. Of more it has the number."""
MOST_LEFT_OUT: Final = 50
"""The same of what was left out of a part for one reason."""

_CHARS_PER_TOKEN: Final = 4


class GivenKind(StrEnum):
    """What was given."""

    CONTEXT = "context"
    PROMPT = "prompt"
    """An addition of hooks to a prompt."""
    START = "start"
    """An addition of hooks to the beginning of a conversation."""
    SEARCH = "search"


OF_HOOKS: Final = frozenset({GivenKind.PROMPT, GivenKind.START})


class PartName(StrEnum):
    """The parts of what is given, in their order."""

    KNOWN = "known"
    LAST_TIME = "last_time"
    """Open points and ends of the latest conversations."""
    FOUND = "found"
    RECENT = "recent"
    PINS = "pins"
    SUMMARIES = "summaries"


class Why(StrEnum):
    """Why a record was left out."""

    DID_NOT_FIT = "did_not_fit"
    READS_LIKE_AN_INSTRUCTION = "reads_like_an_instruction"
    """Words of a tool, a document or an import."""
    REPEATS_ANOTHER = "repeats_another"
    IN_THE_CONVERSATION = "in_the_conversation"
    """The assistant sees it anyway."""


@dataclass(frozen=True, slots=True)
class GivenPart:
    """A part: its tokens, the number of its records, and the ids of the first of them. `revisions` are those of the
    records that were given, once the entry is stored; None for a record that was gone by then."""

    name: PartName
    tokens: int
    count: int
    ids: tuple[str, ...]
    revisions: tuple[int | None, ...] = ()


@dataclass(frozen=True, slots=True)
class LeftOut:
    """What was left out of a part for one reason: its number, and the ids of the first."""

    part: PartName
    why: Why
    count: int
    ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GivenEntry:
    """What was given once, at this moment in milliseconds since 1970.

    `tokens` counts all of it, and is an estimate for a search. `budget` is the most that it could have, None for a
    search. `client` is the program that it was given to, if it is known. `project` is the project of the session, else
    the one that was read: `PERSONAL` for none, None for all. The store gives an entry its `id`.
    """

    kind: GivenKind
    at: int
    tokens: int
    parts: tuple[GivenPart, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    agent: str = DEFAULT_AGENT
    project: str | None = None
    session_id: str | None = None
    client: str | None = None
    budget: int | None = None
    id: int = 0

    @property
    def record_ids(self) -> list[str]:
        """The records that it names as given."""
        return [record_id for part in self.parts for record_id in part.ids]


class PartContent(NamedTuple):
    """The records of a part, and its lines."""

    ids: Sequence[str]
    lines: Sequence[str]


def parts_of(tokens: int, contents: Mapping[PartName, PartContent]) -> tuple[GivenPart, ...]:
    """The parts that have records. Each has a share of the tokens of the whole by the length of its lines: an estimate,
    which costs no second count, and sums to the whole. So each also has a share of the frame."""
    shown = [(name, ids, sum(map(len, lines))) for name, (ids, lines) in contents.items() if ids]
    whole, upto, shared = max(1, sum(size for _, _, size in shown)), 0, 0
    found: list[GivenPart] = []
    for name, ids, size in shown:
        upto += size
        share = tokens * upto // whole - shared
        shared += share
        found.append(GivenPart(name, share, len(ids), tuple(ids[:MOST_IN_PART])))
    return tuple(found)


def left_out(part: PartName, why: Why, ids: Iterable[str], *, count: int | None = None) -> list[LeftOut]:
    """What was left out of a part, if anything was. `count` is the number of all, if there are more than the ids."""
    named = tuple(dict.fromkeys(ids))
    number = len(named) if count is None else count
    return [LeftOut(part, why, number, named[: min(number, MOST_LEFT_OUT)])] if number > 0 else []


def estimated_tokens(texts: Iterable[str]) -> int:
    """Tokens of the texts, four characters each."""
    return -(-sum(map(len, texts)) // _CHARS_PER_TOKEN)
