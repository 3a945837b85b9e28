"""The score of a hit: one sum of a few terms.

    0.5  * meaning    similarity to the wordings of the question, in standard deviations
    0.2  * nearby     the same for the turn before or after, whichever is more similar
    3.7  * words      the share of the question's words (`bm25f`); 7.7 for a record that has no vector yet
    3.7  * time       how well the day fits the times that the question names (`date_match`)
    1.85 * speaker    said by the one speaker whom the question names; the assistant, if it asks "what did you say?"
    -0.7 * assistant  said by an assistant, unless the question asks for that

Without vectors the first two are missing, and the others have different weights.

Similarities are measured in standard deviations above those of unrelated texts (`Embedder.unrelated`), so that one
formula serves every embedder. `bench/RESULTS.md` says how the weights were chosen.
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Weights:
    """The weight of each term. `full` is a score that is shown as 1."""

    meaning: float
    nearby: float
    words: float
    time: float
    speaker: float
    assistant: float
    full: float


WITH_VECTORS: Final = Weights(meaning=0.5, nearby=0.2, words=3.7, time=3.7, speaker=1.85, assistant=-0.7, full=10.0)
BY_WORDS: Final = Weights(meaning=0.0, nearby=0.0, words=1.0, time=0.3, speaker=0.1, assistant=-0.1, full=1.2)
WITHOUT_ITS_VECTOR: Final = 7.7
"""The weight of the words of a record without a vector, among others that have one: all words of a question stand for
eight standard deviations of similarity. With six or ten of them as much is found."""
