"""Features that need no more than one text, and the words of a text that match a question. Pure.

A term found tf times in a text of `length` words contributes weight * tf / (tf + 0.6 + 0.04 * length), divided by the
weights of all terms. The length is absolute, not relative to a mean as in BM25, because the lengths in a memory differ
by kind of conversation. Against BM25 that gains 15 to 18 points of R@10 on BEAM and loses 0.3 on LoCoMo
(`python -m bench.recall`).
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple

from kalito_mcp.domain.search import Candidate
from kalito_mcp.retrieval.question import Question, WordMatch, match_words
from kalito_mcp.text.analysis import indexed_words

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_SATURATION: Final = 0.6
_LENGTH_WEIGHT: Final = 0.04
_MAX_CHARS: Final = 8_000
"""How much of a long text the spelling feature reads."""


class AnalyzedText(NamedTuple):
    """The words of a text, after those of the speaker's name, that match a question."""

    text: Sequence[str]
    name: Sequence[str]
    matches: Mapping[str, WordMatch]

    @property
    def matched_words(self) -> dict[str, str]:
        """For each term, the word of the text that first matches it. The speaker's name does not count."""
        found = [self.matches[word] for word in self.text if word in self.matches]
        first = {match.term: match.word for match in reversed(found) if match.term is not None}
        return dict(reversed(first.items()))

    @property
    def hyponym_words(self) -> dict[str, list[str]]:
        """For each kind that the question names, the words that are its hyponyms, in order."""
        found: dict[str, list[str]] = {}
        for word in (*self.name, *self.text):
            for kind in self.matches[word].kinds if word in self.matches else ():
                found.setdefault(kind, []).append(word)
        return found


def analyze(question: Question, candidate: Candidate) -> AnalyzedText:
    """Find the words of the record that match the question."""
    text = indexed_words(candidate.text)
    name = indexed_words(candidate.name) if candidate.name else []
    return AnalyzedText(text, name, match_words(question, {*text, *name}))


def damping(word_counts: "NDArray[np.int32]") -> "NDArray[np.float32]":
    """How often a text of so many words must contain a term to get half of its weight."""
    found: NDArray[np.float32] = (word_counts * _LENGTH_WEIGHT + _SATURATION).astype("float32")
    return found


def spelling(question: Question, texts: Sequence[Sequence[str]], names: Sequence[Sequence[str]]) -> list[float]:
    """For each text (its words and those of its speaker's name), the query's character 4-grams that it contains, rarer
    ones (among these texts) counting more.

    4-grams find as much as 3-, 4- and 5-grams together, for a third of the work (`python -m bench.recall`).
    """
    ngrams = question.ngrams
    spoken = [f" {' '.join((*name, *text))} "[:_MAX_CHARS] for name, text in zip(names, texts, strict=True)]
    found = [[ngram for ngram in ngrams if ngram in one] for one in spoken]
    frequency = Counter(chain.from_iterable(found))
    squares = {ngram: math.log1p(len(spoken) / max(1, frequency[ngram])) ** 2 for ngram in ngrams}
    length = math.sqrt(sum(squares.values())) or 1.0
    mean = sum(map(math.sqrt, squares.values())) / len(squares) if squares else 1.0
    return [
        min(1.0, sum([squares[ngram] for ngram in contained]) / length / mean / math.sqrt(len(one)))
        for contained, one in zip(found, spoken, strict=True)
    ]
