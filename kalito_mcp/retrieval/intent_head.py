"""A linear head over the vector of a query: what it asks of the memory. Reads one small file, once.

`intent.npy` has a row for each number that the head reads (`inputs`), and a column for each field of `Intent`. `python
-m bench.intent --train` makes it of the queries in `bench/sets/intent`, and says how good it is.
"""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kalito_mcp.retrieval.intent import Intent, intent_by_words

WEIGHTS: Final = Path(__file__).with_name("intent.npy")
BARS: Final = (0.35, 0.35, 0.4)
"""How likely each has to be (see `python -m bench.intent`)."""

_ASKS: Final = ("?", "？", "؟")
_LONG: Final = 30
"""Words, above which a query counts as no longer."""


def intent_of(text: str, vector: NDArray[np.float32]) -> Intent:
    """The intent of the text with this vector of unit length (512,). Explicit words count as well, except that
    they cannot tell where the work was left from "where did I leave the keys"."""
    found = likely([text], vector[None, :], _weights())[0]
    left_off, earlier, assistant = (bool(share >= bar) for share, bar in zip(found, BARS, strict=True))
    said = intent_by_words(text)
    is_likeliest = int(found.argmax()) == 0
    return Intent(
        float(found[0]) if left_off and is_likeliest else 0.0, earlier or said.earlier, assistant or said.assistant
    )


def likely(texts: Sequence[str], vectors: NDArray[np.float32], weights: NDArray[np.float32]) -> NDArray[np.float32]:
    """How likely each text asks for each: (n, 3), each 0 to 1."""
    return np.asarray(1 / (1 + np.exp(-(inputs(texts, vectors) @ weights))), np.float32)


def inputs(texts: Sequence[str], vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """The head's features of each text: its vector, what explicit words say, whether it asks, how long it is; and 1.
    Shape (n, 518)."""
    rows = [
        (*intent_by_words(one), any(mark in one for mark in _ASKS), min(len(one.split()), _LONG) / _LONG, 1.0)
        for one in texts
    ]
    return np.concatenate([vectors, np.array(rows, np.float32)], axis=1)


@cache
def _weights() -> NDArray[np.float32]:
    return np.asarray(np.load(WEIGHTS), np.float32)
