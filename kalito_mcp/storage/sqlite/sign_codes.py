"""One bit for each number of a vector: its sign. Vectors that differ in few bits are near. Pure.

Subtract the centre of the vectors first. Many models' vectors all point to about one side: without that, their bits
would be nearly the same. Codes are stored by column, (words, n): numpy counts fastest along columns of 64-bit words.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

_WORD_BYTES: Final = 8


def codes(vectors: NDArray[np.float32]) -> NDArray[np.uint64]:
    """The code of each row of (n, d), as (words, n)."""
    bits = np.packbits(vectors > 0, axis=1)
    padded = np.pad(bits, ((0, 0), (0, -bits.shape[1] % _WORD_BYTES)))
    return np.ascontiguousarray(padded.view(np.uint64).T)


def distances(columns: NDArray[np.uint64], code: NDArray[np.uint64]) -> NDArray[np.uint16]:
    """In how many bits each code of (words, n) differs from one, (words,)."""
    differing = np.zeros(columns.shape[1], np.uint16)
    for column, word in zip(columns, code, strict=True):
        differing += np.bitwise_count(column ^ word)
    return differing


def bits(columns: NDArray[np.uint64], dimension: int) -> NDArray[np.uint8]:
    """The codes of (words, n) as rows of zeros and ones, (n, dimension)."""
    return np.unpackbits(np.ascontiguousarray(columns.T).view(np.uint8), axis=1, count=dimension)
