"""Features of a candidate whose text has been read, each in [0, 1]. Pure.

A term found tf times in a text of `length` words contributes weight * tf / (tf + 0.3 + 0.04 * length), divided by the
weights of all terms. The length is absolute, not relative to a mean as in BM25, because the lengths in a memory differ
by kind of conversation. Against BM25 that gains 15 to 18 points of R@10 on BEAM and loses 0.3 on LoCoMo
(`python -m bench.recall`).
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from kalito_mcp.domain.records import Role
from kalito_mcp.domain.search import Candidate, Posting
from kalito_mcp.retrieval.question import Question, WordMatch, match_words
from kalito_mcp.text.analysis import indexed_words

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_SATURATION: Final = 0.3
_LENGTH_WEIGHT: Final = 0.04
_MAX_CHARS: Final = 8_000
"""How much of a long text the features read that only order the hits."""

_FIRST_PERSON: Final = frozenset("i i'm i've i'd i'll my me myself we we're our".split())


class AnalyzedText(NamedTuple):
    """A candidate's text, analysed for one question.

    `text` holds the words of the text, `words` the same after the words of the speaker's name, and `spoken` is `words`
    as one string between spaces. `counts` is how often each term of the question occurs, `hyponyms` how often each
    kind's hyponyms do. A tuple, because a search makes dozens.
    """

    candidate: Candidate
    text: Sequence[str]
    words: Sequence[str]
    spoken: str
    counts: Mapping[str, float]
    hyponyms: Mapping[str, int]
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
        for word in self.words:
            for kind in self.matches[word].kinds if word in self.matches else ():
                found.setdefault(kind, []).append(word)
        return found


def inverse_document_frequencies(postings: Sequence[Posting], record_count: int, newest_key: int) -> dict[str, float]:
    """ln(1 + n / df) of each term. For a posting that was cut, df is estimated from the density of its part."""
    weights: dict[str, float] = {}
    for posting in postings:
        frequency = len(posting.keys)
        if not posting.is_complete:
            span = newest_key - posting.keys[-1] + 1
            frequency = max(frequency, round(frequency * newest_key / span))
        weights[posting.term] = math.log1p(record_count / max(1, min(frequency, record_count)))
    return weights


def analyze(question: Question, candidates: Sequence[Candidate]) -> list[AnalyzedText]:
    """Analyse the texts of the candidates for the question."""
    texts = [indexed_words(one.text) for one in candidates]
    names = [indexed_words(one.name) if one.name else [] for one in candidates]
    # The texts share most of their words, so each distinct word is matched once.
    matches = match_words(question, set().union(*texts, *names))
    wanted = frozenset(matches)
    return [_analyzed(*one, matches, wanted) for one in zip(candidates, names, texts, strict=True)]


def _analyzed(
    candidate: Candidate, name: list[str], text: list[str], matches: Mapping[str, WordMatch], wanted: frozenset[str]
) -> AnalyzedText:
    words = name + text
    counts: dict[str, float] = {}
    hyponyms: dict[str, int] = {}
    # Sorted, because the last bit of a sum depends on the order.
    for word in sorted(wanted.intersection(words)):
        match, count = matches[word], words.count(word)
        if match.term is not None:
            counts[match.term] = counts.get(match.term, 0.0) + match.credit * count
        for kind in match.kinds:
            hyponyms[kind] = hyponyms.get(kind, 0) + count
    return AnalyzedText(candidate, text, words, f" {' '.join(words)} ", counts, hyponyms, matches)


_Length = TypeVar("_Length", "float", "NDArray[np.float64]")


def damping(length: _Length) -> _Length:
    """How often a text of so many words must contain a term to get half of its weight."""
    return _SATURATION + _LENGTH_WEIGHT * length


def lexical(analyzed: AnalyzedText, weights: Mapping[str, float], mass: float) -> float:
    """The damped share of the terms' weights that the text contains; `mass` is the sum of all weights."""
    damped = damping(len(analyzed.words))
    return sum([weights[term] * count / (count + damped) for term, count in analyzed.counts.items()]) / mass


def hyponym(analyzed: AnalyzedText, weights: Mapping[str, float], mass: float) -> float:
    """The same for the kinds whose hyponyms the text contains."""
    damped = damping(len(analyzed.words))
    return sum([weights[kind] * count / (count + damped) for kind, count in analyzed.hyponyms.items()]) / mass


def spelling(question: Question, analyzed: Sequence[AnalyzedText]) -> list[float]:
    """For each text, the query's character 4-grams that it contains, rarer ones (among these texts) counting more.

    4-grams find as much as 3-, 4- and 5-grams together, for a third of the work (`python -m bench.recall`).
    """
    ngrams = question.ngrams
    texts = [one.spoken[:_MAX_CHARS] for one in analyzed]
    found = [[ngram for ngram in ngrams if ngram in text] for text in texts]
    frequency = Counter(chain.from_iterable(found))
    squares = {ngram: math.log1p(len(texts) / max(1, frequency[ngram])) ** 2 for ngram in ngrams}
    length = math.sqrt(sum(squares.values())) or 1.0
    mean = sum(map(math.sqrt, squares.values())) / len(squares) if squares else 1.0
    return [
        min(1.0, sum([squares[ngram] for ngram in contained]) / length / mean / math.sqrt(len(text)))
        for contained, text in zip(found, texts, strict=True)
    ]


def style(question: Question, analyzed: AnalyzedText) -> dict[str, float]:
    """`first_person` and `assistant`: 1 for each that applies."""
    candidate = analyzed.candidate
    found: dict[str, float] = {}
    if not _FIRST_PERSON.isdisjoint(analyzed.words):
        found["first_person"] = 1.0
    if candidate.role is Role.ASSISTANT and not candidate.name and not question.asks_assistant:
        found["assistant"] = 1.0
    return found
