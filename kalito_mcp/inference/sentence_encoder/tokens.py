"""Texts to pieces of words, as SentencePiece does it: characters become their usual forms, words begin with "▁"."""

import re
from typing import Final

from kalito_mcp.inference.mapped_arrays import Arrays
from kalito_mcp.inference.unigram import Unigram

_UNKNOWN, _FIRST, _LAST = 0, 1, 2
_SPACE: Final = re.compile(r"[ \t\n\f\r]+")
_CHARACTER_BYTES: Final = {0xC: 2, 0xD: 2, 0xE: 3, 0xF: 4}
"""By the first four bits of a character in UTF-8."""


class Tokenizer:
    """Its arrays come from `package_files.arrays_of`."""

    def __init__(self, arrays: Arrays) -> None:
        self._words = Unigram(arrays, unknown=_UNKNOWN)
        self._trie, self._replacements = arrays["trie"].data, arrays["replacements"].tobytes()

    def pieces(self, text: str) -> list[int]:
        """The numbers of the text's pieces, between those for its beginning and its end."""
        found: list[int] = []
        for part in _SPACE.split(text):
            # No character of ASCII changes alone, and none does together with a space.
            for word in [part] if part.isascii() else self._usual(part).split(" "):
                if word:
                    found += self._words.pieces_of(f"▁{word}")
        return [_FIRST, *(found or [_UNKNOWN]), _LAST]

    def _usual(self, text: str) -> str:
        """The text with every character, or sequence of them, in its usual form: `ﬁ` as `fi`, `e` and an accent as one.

        The forms are in a double-array trie over UTF-8; the longest sequence counts.
        """
        written = text.encode("utf-8", "replace")
        found = bytearray()
        at = 0
        while at < len(written):
            value, end = self._longest(written, at)
            if value is None:
                end = at + _CHARACTER_BYTES.get(written[at] >> 4, 1)
                found += written[at:end]
            else:
                found += self._replacements[value : self._replacements.index(0, value)]
            at = end
        return found.decode()

    def _longest(self, written: bytes, at: int) -> tuple[int | None, int]:
        """Where the usual form of the longest sequence from here is (None if it has no other), and where that ends."""
        value, end = None, at
        node = _offset(self._trie[0])
        for place in range(at, len(written)):
            node ^= written[place]
            unit = self._trie[node]
            if unit & 0x800000FF != written[place]:
                break
            node ^= _offset(unit)
            if unit & 0x100:
                value, end = self._trie[node] & 0x7FFFFFFF, place + 1
        return value, end


def _offset(unit: int) -> int:
    return (unit >> 10) << ((unit & 0x200) >> 6)
