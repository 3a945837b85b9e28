"""Synthetic conversation. It is seeded, so that every run records and asks the same. Pure.

Two fifths of the words are English function words. The others are invented and follow the Zipf-Mandelbrot law, so that
a query can have words that are rare, middling or common by rank. Some messages state something that deserves a pin,
because looking for pins is part of the cost of a message.

Source: Mandelbrot's p(rank) ~ 1 / (rank + q), with q = 20: the commonest content word is in 7 % of the messages.
"""

import random
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import accumulate, product
from typing import Final

from kalito_mcp.domain.records import NewMessage, Role

START_MS: Final = 1_750_000_000_000
_STEP_MS: Final = 60_000
_VOCABULARY: Final = 30_000
_OFFSET: Final = 20
_FUNCTION_SHARE: Final = 0.4
_FUNCTION_WORDS: Final = (
    "the i you to and a of that it in is for what do was have my on with but me so we this not be are at"
).split()
_ONSETS: Final = "b d f g k l m n p r s t v z br dr gr kl pl st tr".split()
_VOWELS: Final = "aiou"
_STATEMENTS: Final = (
    "I am allergic to {0}.",
    "Remember that my {0} is called {1}.",
    "We decided to use {0} for the {1}.",
    "My favourite {0} is {1}.",
)
_STATEMENT_SHARE: Final = 0.05
_SENTENCE_WORDS: Final = (5, 14)
_SENTENCES: Final = (1, 4)
_KINDS: Final = {"rare": (5_000, 30_000), "middling": (300, 3_000), "common": (0, 40)}


@cache
def _invented(count: int) -> list[str]:
    """`count` words, the commonest the shortest. None ends like an inflection, so no two share a stem."""
    syllables = [onset + vowel for onset, vowel in product(_ONSETS, _VOWELS)]
    short = [first + second for first, second in product(syllables, repeat=2)]
    random.Random(7).shuffle(short)
    return [*short, *(first + second for second, first in product(syllables, short))][:count]


class Corpus:
    """A stream of texts and questions. The same seed gives the same stream."""

    def __init__(self, seed: int = 1) -> None:
        self._random = random.Random(seed)
        self._words = _invented(_VOCABULARY)
        function = [1 / (rank + 3) for rank in range(len(_FUNCTION_WORDS))]
        content = [1 / (rank + _OFFSET) for rank in range(_VOCABULARY)]
        function_scale = _FUNCTION_SHARE / sum(function)
        content_scale = (1 - _FUNCTION_SHARE) / sum(content)
        self._choices = [*_FUNCTION_WORDS, *self._words]
        self._weights = list(
            accumulate([*(w * function_scale for w in function), *(w * content_scale for w in content)])
        )

    def text(self) -> str:
        """One to four sentences, 24 words on average."""
        sentences = [self._sentence() for _ in range(self._random.randint(*_SENTENCES))]
        if self._random.random() < _STATEMENT_SHARE:
            sentences.append(self._random.choice(_STATEMENTS).format(*self._random.choices(self._words[:2_000], k=2)))
        return " ".join(sentences)

    def texts(self, count: int) -> Iterator[str]:
        """`count` texts."""
        return (self.text() for _ in range(count))

    def messages(self, count: int, *, key_prefix: str | None = None, first: int = 0) -> list[NewMessage]:
        """`count` messages, user and assistant in turn, a minute apart. They have client keys if a prefix is given."""
        return [
            NewMessage(
                role=(Role.USER, Role.ASSISTANT)[place % 2],
                text=self.text(),
                created_at=START_MS + place * _STEP_MS,
                client_key=None if key_prefix is None else f"{key_prefix}{place}",
            )
            for place in range(first, first + count)
        ]

    def query(self, kinds: Sequence[str]) -> str:
        """One word of each kind: `rare`, `middling`, `common`."""
        return " ".join(self._words[self._random.randrange(*_KINDS[kind])] for kind in kinds)

    def _sentence(self) -> str:
        words = self._random.choices(self._choices, cum_weights=self._weights, k=self._random.randint(*_SENTENCE_WORDS))
        return " ".join(words).capitalize() + "."
