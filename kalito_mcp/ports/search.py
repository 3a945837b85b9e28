"""The reads of a search: an inverted index of terms, the columns of the records, and the texts.

Records are named by their keys, which grow with time (`ports.records`), and in the index by their places: a record's
place is its position among all records of its agent, oldest first. Terms are defined in `text.analysis`.
"""

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol, TypeVar

from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.search import Candidate

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RecordColumns:
    """Columns of all records of one agent, for ranking before their texts are read: arrays by place. Do not change
    them.

    `sessions` are numbers from 0, -1 for none; `session_numbers` has them by key. `projects` are keys, -1 for none.
    `previous_turns` and `next_turns`
    are the places of the messages before and after a message in its session; a place outside the arrays (negative, or
    `count` and above) means none. `names` are indexes into `name_list`. `types`, `roles` and `origins` are indexes
    into the members of RecordType, Role and Origin; a greater number means none. `word_counts` include the speaker's
    name. A forgotten record is not `is_shown`. `tags` has only those places that have tags.
    """

    keys: "NDArray[np.int64]"
    sessions: "NDArray[np.int32]"
    projects: "NDArray[np.int32]"
    created_at: "NDArray[np.int64]"
    importance: "NDArray[np.float64]"
    names: "NDArray[np.int32]"
    word_counts: "NDArray[np.int32]"
    next_turns: "NDArray[np.int32]"
    previous_turns: "NDArray[np.int32]"
    types: "NDArray[np.uint8]"
    roles: "NDArray[np.uint8]"
    origins: "NDArray[np.uint8]"
    is_internal: "NDArray[np.bool_]"
    is_shown: "NDArray[np.bool_]"
    is_first_person: "NDArray[np.bool_]"
    session_numbers: Mapping[int, int]
    name_list: Sequence[str | None]
    tags: Mapping[int, Set[str]]

    @property
    def count(self) -> int:
        """How many records there are, including forgotten ones."""
        return len(self.keys)

    def narrowed(self, is_reached: "NDArray[np.bool_]") -> "RecordColumns":
        """The columns with only these records shown, and without the speakers of others."""
        spoken = set(self.names[is_reached].tolist())
        names = [name if at in spoken else None for at, name in enumerate(self.name_list)]
        return replace(self, is_shown=self.is_shown & is_reached, name_list=names)


class TermIndex(Protocol):
    """Which records of one agent contain a term."""

    @property
    def records(self) -> RecordColumns: ...

    def places(self, term: str, *, times: int = 1) -> "NDArray[np.int32]":
        """The places of all records of the agent that contain the term at least this often (1, `SEVERAL` or `MANY` of
        `text.analysis`), ascending. Do not change them."""


class SearchIndex(TermIndex, Protocol):
    """The index of the scope's agent, in one consistent view. Its methods block: they are called on the thread of
    `SearchReader.in_index`."""

    @property
    def session_key(self) -> int | None:
        """The session, if the scope names one."""

    @property
    def project_keys(self) -> Sequence[int] | None:
        """The project of the scope, none if it is personal or new; None if the scope is of all projects."""

    def similar_terms(self, words: Sequence[str], *, limit: int) -> Mapping[str, Sequence[tuple[str, int]]]:
        """For each word of `analysis.words`, the agent's terms that it may be a mistyped form of.

        Those of `text.spelling`, the most frequent first, each with an estimate of how many of the agent's records
        contain it. A word's own term is never among them. A word without similar terms is left out.

        Meant for rare words. Only a bounded number of words is looked up, so pass the rarest first.
        """

    def terms_with_prefixes(self, prefixes: Sequence[str]) -> Mapping[str, Sequence[str]]:
        """For each prefix, the agent's terms that begin with it and are at most some letters longer.

        A prefix without a term is left out. The number of terms is bounded, so pass prefixes of three letters or more.
        """

    def candidates(self, keys: Sequence[int]) -> Sequence[Candidate]:
        """The records with these keys, with their texts, in no order. Forgotten ones are left out."""


class SearchReader(Protocol):
    """Searches of one consistent view."""

    async def in_index(self, scope: Scope, work: Callable[[SearchIndex], T]) -> T | None:
        """The result of `work` on the index of the scope, on a thread; None if there is no such agent or session.

        Where the scope has limits, the index has nothing of what is beyond them, and counts none of it."""
