"""The bar for putting a record into a prompt without being asked to search. Pure.

- Its score must reach

      min_score + 0.016 words + 0.3 unknown

  A prompt of many words explains itself, and is slightly similar to many records. `unknown` is the share of its terms,
  weighted by how rare they are, that no record has: a prompt full of them is about something new. If a prompt asks for
  something said earlier, `min_score` is enough. - Unless the prompt asks something, the record also needs two specific
  terms of it, and a third of all its terms. "Run the tests" is like a hundred messages, and about none of them. An
  order of one or two terms gets nothing. - Four specific terms are enough, whatever the score, if the prompt has at
  most 60 words: an error that is pasted again has other words around it.

`bench/RESULTS.md` says on which data the figures were chosen.
"""

import math
from collections.abc import Mapping
from typing import Final

from kalito_mcp.text.analysis import terms

_WORD: Final = 0.016
_UNKNOWN: Final = 0.3

_LEAST_TERMS: Final = 3
_LEAST_SPECIFIC: Final = 2
_LEAST_SHARE: Final = 1 / 3
_ENOUGH_SPECIFIC: Final = 4
_MOST_WORDS: Final = 60

_FEW_RECORDS: Final = 8
_FEW_OF_RECORDS: Final = 0.02
"""A term is specific if at most this many records have it, or this share of all."""


class Bar:
    """The bar for the records that one prompt may get."""

    def __init__(
        self,
        prompt: str,
        record_counts: Mapping[str, int],
        total: int,
        *,
        asks: bool,
        recalls: bool,
        min_score: float,
    ) -> None:
        """`record_counts` says for each term of the prompt how many of all records have it; `asks` whether it asks
        something, `recalls` whether for what was said earlier."""
        words = len(prompt.split())
        few = max(_FEW_RECORDS, _FEW_OF_RECORDS * total)
        specific = frozenset(term for term, count in record_counts.items() if 0 < count <= few)
        more = 0.0 if recalls else _WORD * words + _UNKNOWN * _unknown(record_counts, total)
        self._least_score = min_score + more
        self._specific = specific if len(record_counts) >= _LEAST_TERMS else frozenset[str]()
        self._least_specific = 0.0 if asks else max(_LEAST_SPECIFIC, _LEAST_SHARE * len(record_counts))
        self._enough_specific = _ENOUGH_SPECIFIC if words <= _MOST_WORDS else math.inf

    def admits(self, score: float, text: str) -> bool:
        """Whether a record with this score and this text may be put into the prompt."""
        needed = self._least_specific if score >= self._least_score else self._enough_specific
        return len(self._specific) >= needed and (not needed or len(self._specific.intersection(terms(text))) >= needed)


def _unknown(record_counts: Mapping[str, int], total: int) -> float:
    """The share of the terms that no record has, weighted as in BM25."""
    weights = {term: math.log((total + 1) / (count + 0.5)) for term, count in record_counts.items()}
    return sum(weights[term] for term, count in record_counts.items() if not count) / (sum(weights.values()) or 1.0)
