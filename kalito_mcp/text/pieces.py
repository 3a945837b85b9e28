"""Cuts a long text into pieces that can be read one after the other. Pure.

A single call of the standard library over 512 KiB keeps every other thread waiting for some 20 ms. Between two calls,
Python lets them run.
"""

from collections.abc import Iterator
from typing import Final

PIECE_CHARS: Final = 32_768


def pieces(text: str) -> Iterator[str]:
    """The text, cut anywhere. For what reads each character by itself."""
    for start in range(0, len(text), PIECE_CHARS):
        yield text[start : start + PIECE_CHARS]


def pieces_of_words(spaced: str) -> Iterator[str]:
    """The text, cut at spaces. One with a longer word has a longer piece."""
    start = 0
    while len(spaced) - start > PIECE_CHARS:
        end = spaced.find(" ", start + PIECE_CHARS)
        if end < 0:
            break
        yield spaced[start:end]
        start = end
    yield spaced[start:]
