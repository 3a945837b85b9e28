"""Texts to pieces of words, as SentencePiece does it: characters become their usual forms, words begin with "▁"."""

from bisect import bisect_left
from functools import lru_cache
from typing import Final

from kalito_mcp.inference.mapped_arrays import Arrays
from kalito_mcp.inference.unigram import Unigram

_FIRST, _LAST, _UNKNOWN = 0, 2, 3
_CACHED_CHARACTERS: Final = 1_024


class Tokenizer:
    """Its arrays come from `package_file.arrays_of`."""

    def __init__(self, arrays: Arrays) -> None:
        self._words = Unigram(arrays, unknown=_UNKNOWN)
        self._characters, self._ends = (arrays[name].data for name in ("characters", "form_ends"))
        self._forms = arrays["forms"].tobytes().decode("utf-32-le")
        self._usual = lru_cache(_CACHED_CHARACTERS)(self._usual_form)

    def pieces(self, text: str, most: int) -> list[int]:
        """The numbers of the text's pieces between those for its beginning and its end, at most `most` in all."""
        found: list[int] = []
        for word in "".join(map(self._usual, text)).split(" "):
            if word:
                found += self._words.pieces_of(f"▁{word}")
        return [_FIRST, *found[: most - 2], _LAST]

    def _usual_form(self, character: str) -> str:
        """What a character is read as: `ﬁ` as `fi`."""
        place = bisect_left(self._characters, ord(character))
        if place == len(self._characters) or self._characters[place] != ord(character):
            return character
        return self._forms[self._ends[place] : self._ends[place + 1]]
