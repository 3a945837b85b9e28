"""Splits words into the pieces of a vocabulary: of all ways, the one whose pieces have the highest sum of scores.

The vocabulary is a hash table in mapped arrays, so that nothing is built when a process starts.
Source: Kudo, ACL 2018 (Subword Regularization), as in SentencePiece's unigram model.
"""

from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Final
from zlib import crc32

import numpy as np

from kalito_mcp.inference.mapped_arrays import Arrays

_CACHED_WORDS: Final = 4_096
_UNKNOWN_COSTS: Final = 10.0
_NO_WAY: Final = -1e38


def vocabulary_arrays(pieces: Sequence[bytes], scores: Sequence[float]) -> Arrays:
    """The table: `slots` by hash, of numbers of pieces plus 1, with room for twice as many; 0 is empty."""
    slots = np.zeros(1 << (2 * len(pieces) - 1).bit_length(), np.uint32)
    mask = len(slots) - 1
    taken: set[int] = set()
    for number, piece in enumerate(pieces, 1):
        slot = crc32(piece) & mask
        while slot in taken:
            slot = slot + 1 & mask
        taken.add(slot)
        slots[slot] = number
    return {
        "slots": slots,
        "ends": np.fromiter(accumulate(map(len, pieces), initial=0), np.uint32, len(pieces) + 1),
        "letters": np.frombuffer(b"".join(pieces), np.uint8),
        "scores": np.array(scores, np.float32),
    }


class Unigram:
    """The vocabulary of `vocabulary_arrays`. `unknown` is the piece of a character that is in no other."""

    def __init__(self, arrays: Arrays, *, unknown: int) -> None:
        names = ("slots", "ends", "letters", "scores")
        # Numbers of a memoryview are read much faster than numbers of an array.
        self._slots, self._ends, self._letters, self._scores = (arrays[name].data for name in names)
        self._longest = int(np.diff(arrays["ends"]).max())
        self._unknown = unknown
        self._unknown_score = float(arrays["scores"].min()) - _UNKNOWN_COSTS
        self.pieces_of = lru_cache(_CACHED_WORDS)(self._pieces_of)

    def _pieces_of(self, word: str) -> tuple[int, ...]:
        """The numbers of the word's pieces, in order. Of equal sums, the one that is found first counts."""
        characters = [character.encode("utf-8", "replace") for character in word]
        best = [0.0, *[_NO_WAY] * len(characters)]
        cut: list[tuple[int, int]] = [(0, 0)] * (len(characters) + 1)  # where the last piece begins, and its number
        for start in range(len(characters)):
            base, piece = best[start], b""
            for end in range(start + 1, len(characters) + 1):
                piece += characters[end - 1]
                if len(piece) > self._longest:
                    break
                number = self._number(piece)
                if number is not None:
                    score = base + self._scores[number]
                elif end == start + 1:
                    number, score = self._unknown, base + self._unknown_score
                else:
                    continue
                if score > best[end]:
                    best[end], cut[end] = score, (start, number)
        found, end = [], len(characters)
        while end:
            end, number = cut[end]
            found.append(number)
        return tuple(reversed(found))

    def _number(self, piece: bytes) -> int | None:
        mask = len(self._slots) - 1
        slot = crc32(piece) & mask
        while number := self._slots[slot]:
            if self._letters[self._ends[number - 1] : self._ends[number]] == piece:
                return number - 1
            slot = slot + 1 & mask
        return None
