"""A linear head over the vector of a sentence: its kind, and whose it is. Reads one small file, once.

`weights.npy` has a row for each number of the vector of `use-multilingual-3`, and for each of the `features` and, for
the last two columns, of the `signs`; and a
column for each `Kind`, and one each for "the project's, not the person's", "announces what others wrote" and "asks to
keep". `python -m bench.kinds --train` makes it of the sentences in `bench/sets/kinds`, and says how good it is.
"""

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kalito_mcp.domain.kinds import PASSING, Kind
from kalito_mcp.kinds.cues import (
    begins_as_a_rule,
    explicit_kind,
    names_its_speaker,
    says_for_good,
    says_to_remember,
)
from kalito_mcp.kinds.judged import Judged, Sentence
from kalito_mcp.kinds.requests import without_frame

WEIGHTS: Final = Path(__file__).with_name("weights.npy")
_ASKS: Final = re.compile("[?？؟]")
_DIGIT: Final = re.compile(r"\d")
_LONG: Final = 40
"""Words, above which a sentence counts as no longer."""

KINDS: Final = len(Kind)
"""Columns of the kinds; the others follow."""
_KEPT: Final = [at for at, kind in enumerate(Kind) if kind not in PASSING]


def features(sentences: Sequence[Sentence]) -> NDArray[np.float32]:
    """What a vector does not tell: who says it, whether it asks, has a number, how long it is, whether it says of
    itself that it is a rule or a decision, whether it says what its speaker is called, whether it begins with words of
    a rule; and 1. Shape (n, 9)."""
    rows = [
        (
            one.is_assistant,
            _ASKS.search(one.text) is not None,
            _DIGIT.search(one.text) is not None,
            min(len(one.text.split()), _LONG) / _LONG,
            (explicit := explicit_kind(one.text)) is Kind.RULE,
            explicit is Kind.DECISION,
            names_its_speaker(one.text),
            begins_as_a_rule(one.text),
            1.0,
        )
        for one in sentences
    ]
    return np.array(rows, np.float32).reshape(-1, 9)


def signs(sentences: Sequence[Sentence]) -> NDArray[np.float32]:
    """What announces material, or asks to keep something: a colon at the end, words of what holds from now on, of
    remembering, a whole frame of a request. Shape (n, 4)."""
    rows = [
        (
            one.text.endswith((":", "：")),
            says_for_good(one.text),
            says_to_remember(one.text),
            without_frame(one.text) is not None,
        )
        for one in sentences
    ]
    return np.array(rows, np.float32).reshape(-1, 4)


def shares(inputs: NDArray[np.float32], weights: NDArray[np.float32]) -> NDArray[np.float32]:
    """How likely each column is (softmax), for inputs (n, m) and weights (m, k)."""
    found = inputs @ weights
    found = np.exp(found - found.max(axis=1, keepdims=True))
    return np.asarray(found / found.sum(axis=1, keepdims=True), np.float32)


def judged(vectors: NDArray[np.float32], sentences: Sequence[Sentence]) -> list[Judged]:
    """Judges the sentences with these vectors of unit length (n, 512)."""
    weights = _weights()
    inputs = np.concatenate([vectors, features(sentences), signs(sentences)], axis=1)
    of_kinds = shares(inputs, weights[:, :KINDS])[:, _KEPT]
    others = 1 / (1 + np.exp(-(inputs @ weights[:, KINDS:])))
    kinds = list(Kind)
    return [
        Judged(kinds[_KEPT[int(row.argmax())]], float(row.sum()), float(1 - project), float(announces), float(asks))
        for row, (project, announces, asks) in zip(of_kinds, others, strict=True)
    ]


@cache
def _weights() -> NDArray[np.float32]:
    return np.asarray(np.load(WEIGHTS), np.float32)
