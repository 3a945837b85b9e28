"""What each piece of evidence is worth.

Every feature lies in [0, 1]; the score is their weighted sum over the sum of what counts for a record. Found by
coordinate ascent on the first halves of LoCoMo and BEAM 100K together (own measurements, 2026-11-21): a single set of
weights for chat between people and for long answers of an assistant. What each is worth on either is in
ARCHITECTURE.md; `python -m bench.recall --ablate` measures it again.
"""

from dataclasses import asdict, dataclass, fields
from typing import Final


@dataclass(frozen=True, slots=True)
class EvidenceWeights:
    """The weight of each feature, the names of a hit's `parts`. 0 switches one off.

    `own`: the query's terms in the text. `context`: in what was said just before and after, and in its session.
    `session`: how much the session's best records have of them. `spelling`: the query's letters in fours,
    which sees other forms, order and typos. `kind`: instances of a kind that the query names. `speaker`: said by
    whom the query names. `date`: said when the query says. `time`, `number`: tells a time or a number, where one is
    asked for. `first_person`: somebody tells of themselves. `statement`: a preference, plan or instruction. `meaning`
    and `gist`: a vector's likeness, the record's own and that of a turn beside it.

    Two count against a record: `question`, it only asks; `assistant`, an assistant said it, and is not asked about.
    """

    own: float = 0.3
    context: float = 0.24
    session: float = 0.2
    spelling: float = 0.32
    kind: float = 0.36
    speaker: float = 0.07
    date: float = 0.15
    time: float = 0.045
    number: float = 0.05
    first_person: float = 0.03
    statement: float = 0.01
    meaning: float = 0.2
    gist: float = 0.15
    question: float = 0.013
    assistant: float = 0.06

    @property
    def full(self) -> float:
        """What a short text that holds every word comes near."""
        return self.own + self.context + self.session + self.spelling or 1.0

    def worth(self) -> dict[str, float]:
        """What each feature adds to a score where it is 1."""
        weights: dict[str, float] = asdict(self)
        return {name: (-1 if name in AGAINST else 1) * weight / self.full for name, weight in weights.items()}


WEIGHTS: Final = EvidenceWeights()
AGAINST: Final = frozenset({"question", "assistant"})
"""Features that count against a record."""

FEATURES: Final = tuple(one.name for one in fields(EvidenceWeights))
