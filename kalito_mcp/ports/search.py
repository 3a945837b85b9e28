"""The reads of a search: an inverted index of terms, the columns of the records, and the texts.

An index is of one agent. It names a record by its place: its position among all records of its agent, in the order in
which they were stored. Terms are defined in `text.analysis`. A store may keep some of this in memory; how it follows
what is written is its own affair.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
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

    `sessions` and `projects` are numbers, -1 for none; `session_numbers` has those of sessions, from 0, by id.
    `previous_turns` and `next_turns` are the places of the messages before and after a message in its session; a place
    outside the arrays (negative, or `count` and above) means none. `names` are indexes into `name_list`. `types`,
    `roles` and `origins` are indexes into the members of RecordType, Role and Origin; a greater number means none.
    `word_counts` include the speaker's name. A record that is forgotten, or beyond the scope, is not `is_shown`. `tags`
    has only those places that have tags.
    """

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
    session_numbers: Mapping[str, int]
    name_list: Sequence[str | None]
    tags: Mapping[int, Set[str]]

    @property
    def count(self) -> int:
        """How many records there are, including those that are not shown."""
        return len(self.types)

    def of_projects(self, numbers: Iterable[int]) -> "NDArray[np.bool_]":
        """Which records are of one of these projects, or personal."""
        found: NDArray[np.bool_] = self.projects < 0
        for number in numbers:
            found = found | (self.projects == number)
        return found

    def narrowed(
        self, session_id: str | None, projects: Iterable[int] | None, is_within: "NDArray[np.bool_] | None"
    ) -> "RecordColumns":
        """The columns for a scope: what is of this session and these projects is shown, and what is within its limits.
        The speakers of what is beyond them are left out. None narrows nothing."""
        is_shown, names = self.is_shown, self.name_list
        if is_within is not None:
            is_shown = is_shown & is_within
            spoken = set(self.names[is_within].tolist())
            names = [name if at in spoken else None for at, name in enumerate(names)]
        if projects is not None:
            is_shown = is_shown & self.of_projects(projects)
        if session_id is not None:
            # A session without a record has no number.
            is_shown = is_shown & (self.sessions == self.session_numbers.get(session_id, self.count))
        return replace(self, is_shown=is_shown, name_list=names)


class TermIndex(Protocol):
    """Which records of one agent contain a term."""

    @property
    def records(self) -> RecordColumns: ...

    def places(self, terms: Collection[str], *, times: int = 1) -> "Mapping[str, NDArray[np.int32]]":
        """For each term, the places of all records of the agent that contain it at least this often (1, `SEVERAL` or
        `MANY` of `text.analysis`), ascending. Do not change them.

        A store may need one trip for all terms that it was not asked for before, so ask for them together.
        """


class SearchIndex(TermIndex, Protocol):
    """The index of the scope's agent, in one consistent view. Its methods block: they are called on the thread of
    `SearchReader.in_index`, except `keys` and `places_of_keys`, which read nothing."""

    def places_of_messages(self, message_ids: Sequence[str]) -> "NDArray[np.int64]":
        """The places of the messages with these ids, in their order. Unknown ids are left out."""

    def places_of_notes(self, *, are_lasting: bool) -> "NDArray[np.int64]":
        """The places of the notes, ascending; or only of those that are known beyond their session."""

    def keys(self, places: "NDArray[np.int64]") -> "NDArray[np.int64]":
        """The keys by which `VectorReader` knows the records at these places."""

    def places_of_keys(self, keys: Sequence[int]) -> "NDArray[np.int64]":
        """The places of the records with these keys, in their order. Unknown keys are left out."""

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

    def candidates(self, places: "NDArray[np.int64]") -> Mapping[int, Candidate]:
        """The records at these places, with their texts, by place. Forgotten ones are left out."""


class SearchReader(Protocol):
    """Searches of one consistent view."""

    async def in_index(self, scope: Scope, work: Callable[[SearchIndex], T]) -> T | None:
        """The result of `work` on the index of the scope, on a thread; None if there is no such agent or session.

        Where the scope has limits, the index has nothing of what is beyond them, and counts none of it."""
