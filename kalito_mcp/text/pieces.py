"""Cuts a long text into pieces that can be read one after the other. Pure.

A single call of the standard library over 512 KiB keeps every other thread waiting for some 20 ms. Between two calls,
Python lets them run.
"""

import re
from collections.abc import Iterator
from typing import Final

PIECE_CHARS: Final = 32_768


def pieces(text: str) -> Iterator[str]:
    """The text, cut anywhere. For functions that read one character at a time."""
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


def matches_in_pieces(
    pattern: re.Pattern[str], text: str, reach: int, start: int = 0, end: int | None = None
) -> Iterator[re.Match[str]]:
    """The matches of `pattern.finditer(text, start, end)`, searched for piece by piece.

    No match is empty, and with all that the pattern looks at behind it, none is longer than `reach` characters.
    """
    last = len(text) if end is None else min(end, len(text))
    while start < last:
        stop = min(last, start + PIECE_CHARS + reach)
        match = pattern.search(text, start, stop)
        if match is not None and (stop == last or match.start() <= stop - reach):
            yield match
            start = match.end()
        elif stop == last:
            return
        else:
            # What begins later could go on behind the end of the piece: once more, from there.
            start = stop - reach
