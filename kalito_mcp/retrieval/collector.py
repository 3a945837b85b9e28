"""The hits of a search: each once, with the ids of the records that say the same. Pure."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from kalito_mcp.domain.records import RecordType
from kalito_mcp.retrieval.scored_candidate import ScoredCandidate
from kalito_mcp.safety.trust import is_withheld

if TYPE_CHECKING:
    from kalito_mcp.retrieval.candidate_generator import CandidateGenerator
    from kalito_mcp.retrieval.ranking import Similarities

_Statement = tuple[str | None, frozenset[str]]
"""A speaker, and the words of a statement."""

_COLLAPSIBLE: Final = frozenset({RecordType.MESSAGE, RecordType.PIN, RecordType.SUMMARY})
"""Types of which one hit stands for all that say the same. Two equal tasks or notes are two: each may change."""

_DERIVED: Final = frozenset({RecordType.PIN, RecordType.SUMMARY})
"""Types that may repeat messages; then the message is the hit."""

_SAME_FROM: Final = 0.9
"""The share of their words that two texts must have in common to say the same."""

_MAX_SAME_IDS: Final = 20
TURN_CHARS: Final = 300
"""Of a turn that is shown with a hit."""

_STANDS_FROM: Final = 0.75
"""A turn next to a better hit is a hit of its own if it has at least this share of that hit's score.

If it never is one, R@10 of LoCoMo falls by 5 points instead of 1 to 2. If it always is one, five hits show the wanted
message of 68 instead of 72 to 73 in 100 questions (a1 to a3)."""


class Collector:
    """Collects the hits of a search: each once, with the ids of records that say the same. A turn next to a hit is
    shown with it, not as another hit."""

    def __init__(
        self, *, wanted: int, least_share: float = 0.0, has_turns: bool = True, has_copies: bool = False
    ) -> None:
        """`least_share` drops hits below this share of the best score: a batch that reaches so low is the last. Unless
        it `has_turns`, no turns are shown with hits. With `has_copies`, of a space, equal texts are one hit: several
        people may have shared the same words."""
        self.hits: list[ScoredCandidate] = []
        self.note: str | None = None
        """Which part of the query was given up; None if nothing was."""
        self.read_count = self.excluded_count = 0
        """How many texts were read, and how many of them contain an excluded word."""
        self._wanted = wanted
        self._least_share = least_share
        self._has_turns = has_turns
        self._statements: list[_Statement] = []
        self._places: dict[str, int] | None = {} if has_copies else None
        """Where each text is among the hits of a space."""
        self._messages: list[ScoredCandidate] = []
        self._same: dict[str, list[str]] = {}
        self._best_beside: dict[tuple[str | None, int], float] = {}
        """The score of the best hit next to each turn, by session and seq."""

    @property
    def is_enough(self) -> bool:
        """Whether there are as many as wanted."""
        return len(self.hits) >= self._wanted

    def collect(self, generator: "CandidateGenerator", similarities: "Similarities | None") -> None:
        """Add the hits of a generator until there are enough."""
        for batch in generator.batches(similarities):
            self.add(batch)
            if self.is_enough or self._is_low(batch):
                break
        self.note = generator.note
        self.read_count, self.excluded_count = generator.read_count, generator.excluded_count

    def add(self, batch: Sequence[ScoredCandidate]) -> None:
        """Add the hits of a batch, best first, until there are enough."""
        for scored in self._without_derived(batch):
            if self.is_enough:
                return
            candidate = scored.candidate
            if self._is_shown_beside(scored):
                continue
            statement = candidate.name, scored.words if candidate.type in _COLLAPSIBLE else frozenset[str]()
            if self._places is None:
                earlier = _place_of_same(statement, self._statements)
            else:
                earlier = self._places.get(candidate.text)
            if earlier is None:
                if self._places is not None:
                    self._places[candidate.text] = len(self.hits)
                self.hits.append(scored)
                self._statements.append(statement)
                if candidate.seq is not None and self._has_turns:
                    for step in (-1, 1):
                        self._best_beside.setdefault((candidate.session_id, candidate.seq + step), scored.score)
            else:
                same = self._same.setdefault(self.hits[earlier].candidate.record_id, [])
                same += [candidate.record_id, *self._same.pop(candidate.record_id, ())]

    def _is_shown_beside(self, scored: ScoredCandidate) -> bool:
        """Whether a better hit shows it, whole, as the turn before or after. One about as good stands for itself."""
        candidate = scored.candidate
        better = self._best_beside.get((candidate.session_id, candidate.seq or 0), 0.0)
        is_shown = len(candidate.text) <= TURN_CHARS and not is_withheld(candidate.origin, candidate.text)
        return is_shown and scored.score < _STANDS_FROM * better

    def _is_low(self, batch: Sequence[ScoredCandidate]) -> bool:
        if not self.hits or not batch or not self._least_share:
            return False
        return min(one.score for one in batch) < self._least_share * self.hits[0].score

    def same_ids(self, scored: ScoredCandidate) -> tuple[str, ...]:
        """The ids of other records that say the same as this hit."""
        return tuple(self._same.get(scored.candidate.record_id, ())[:_MAX_SAME_IDS])

    def _without_derived(self, batch: Sequence[ScoredCandidate]) -> Sequence[ScoredCandidate]:
        """The batch without pins and summaries that only repeat messages."""
        self._messages += [scored for scored in batch if scored.candidate.type is RecordType.MESSAGE]
        kept: list[ScoredCandidate] = []
        for scored in batch:
            message = self._repeated_message(scored) if scored.candidate.type in _DERIVED else None
            if message is None:
                kept.append(scored)
            else:
                self._same.setdefault(message.candidate.record_id, []).append(scored.candidate.record_id)
        return kept

    def _repeated_message(self, derived: ScoredCandidate) -> ScoredCandidate | None:
        """The best message that a pin or summary repeats. The message is better to show: it says who said it, when, and
        next to what.

        Neither has terms of the query that the messages lack. A pin repeats a message with the same words. A summary
        repeats several messages of its session together.
        """
        own, wanted = derived.words, derived.terms
        if derived.candidate.type is RecordType.PIN:
            has_all = (one for one in self._messages if _contains(one.words, own))
            return next((one for one in has_all if wanted <= one.terms), None)
        session = derived.candidate.session_id
        messages = [one for one in self._messages if one.candidate.session_id == session]
        matching = [one for one in messages if not wanted.isdisjoint(one.terms)]
        return matching[0] if matching and wanted <= set().union(*(one.terms for one in matching)) else None


def _place_of_same(statement: _Statement, earlier: Sequence[_Statement]) -> int | None:
    """The place of the first statement by the same speaker with nearly the same words; no words equal nothing."""
    speaker, words = statement
    if not words:
        return None
    size, least = len(words), _SAME_FROM * len(words)
    for place, (name, said) in enumerate(earlier):
        # Most differ too much in size: that is seen without comparing the words.
        is_near = least <= len(said) and _SAME_FROM * len(said) <= size
        if is_near and name == speaker and len(words & said) >= _SAME_FROM * len(words | said):
            return place
    return None


def _contains(words: frozenset[str], part: frozenset[str]) -> bool:
    """Whether nearly all words of the part, which has one, are among the words."""
    return len(words & part) >= _SAME_FROM * len(part) > 0
