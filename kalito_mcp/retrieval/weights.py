"""The weight of each feature.

Every feature lies in [0, 1]. A score is the weighted sum of the features, divided by `FeatureWeights.full`.
One set of weights serves chat between people, long answers of an assistant, and notes, in several languages. Coordinate
ascent found it on 2026-11-22, on the first halves of LoCoMo and BEAM 100K and on MemDaily, MADial-Bench in English and
Chinese and GoodAI's tests, each set counting the same (`bench.recall`, `bench.elsewhere`). A change was kept if it
held in even and in odd conversations. bench/RESULTS.md says how far that goes, and what each feature is worth.
"""

from dataclasses import asdict, dataclass, fields
from typing import Final


@dataclass(frozen=True, slots=True)
class FeatureWeights:
    """The weight of each feature. The names are those of a hit's `parts`. 0 switches a feature off.

    - `lexical`: the query's terms in the text.
    - `neighbours`: the query's terms in the turns just before and after, and in the session.
    - `answers`: the turn just before, by somebody else, asks something with the query's terms.
    - `session`: how well the best records of its session match.
    - `spelling`: the query's character 4-grams, which see other forms, word order and typos.
    - `hyponym`: words for instances of a kind that the query names.
    - `speaker`: said by somebody whom the query names.
    - `date`: said at the time that the query names.
    - `first_person`: the speaker talks about themselves.
    - `semantic`, `neighbour_semantic`: the vector similarity of the text in its place, and of its most similar
      neighbour.

    One feature counts against a record: `assistant`, the assistant said it and the query does not ask about that.
    """

    lexical: float = 0.4
    neighbours: float = 0.27
    answers: float = 0.08
    session: float = 0.2
    spelling: float = 0.28
    hyponym: float = 0.36
    speaker: float = 0.065
    date: float = 0.15
    first_person: float = 0.03
    semantic: float = 0.25
    neighbour_semantic: float = 0.15
    assistant: float = 0.06

    @property
    def full(self) -> float:
        """The sum that a short text with every word of the query comes close to."""
        return self.lexical + self.neighbours + self.session + self.spelling or 1.0

    def per_feature(self) -> dict[str, float]:
        """What each feature adds to a score where it is 1; negative for those that count against a record."""
        weights: dict[str, float] = asdict(self)
        return {name: (-1 if name in NEGATIVE else 1) * weight / self.full for name, weight in weights.items()}


WEIGHTS: Final = FeatureWeights()
NEGATIVE: Final = frozenset({"assistant"})
"""Features that count against a record."""

FEATURES: Final = tuple(one.name for one in fields(FeatureWeights))
