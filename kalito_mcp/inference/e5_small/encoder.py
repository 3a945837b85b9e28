"""The encoder: pieces of words to one vector, the mean of what twelve layers of attention make of them.

Source: Wang et al., 2024 (Multilingual E5 Text Embeddings); the architecture is BERT's.
"""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kalito_mcp.inference.e5_small.package_file import HEADS, LAYERS, WIDTH, Rows, unpacked
from kalito_mcp.inference.mapped_arrays import Arrays

_PADDING: Final = 1
_UNSEEN: Final = np.float32(-1e9)
_LEAST: Final = np.float32(1e-12)
_GELU: Final = (np.float32(1.5957691216057308), np.float32(0.044715))
"""Of its approximation by a logistic function: 2 sqrt(2 / pi), and the factor of the cube."""
_MOST_EXPONENT: Final = 80


class Encoder:
    """Its arrays come from `package_file.arrays_of`, its words from `words_of`."""

    def __init__(self, arrays: Arrays, words: NDArray[Any]) -> None:
        self._arrays = arrays
        self._words = words
        self.most_pieces = len(arrays["places"])

    def encode(self, texts: Sequence[Sequence[int]]) -> Rows:
        """One row of unit length for each text, (n, 384). A text has one to `most_pieces` pieces."""
        if not texts:
            return np.empty((0, WIDTH), np.float32)
        longest = max(map(len, texts))
        pieces = np.full((len(texts), longest), _PADDING)
        for row, text in zip(pieces, texts, strict=True):
            row[: len(text)] = text
        is_there = np.arange(longest) < np.array([len(text) for text in texts])[:, None]
        rows = unpacked(self._words[pieces]) + self._arrays["places"][:longest]
        rows = _normalised(rows.reshape(-1, WIDTH), self._arrays["gain"], self._arrays["bias"])
        unseen = np.where(is_there, np.float32(0), _UNSEEN)[:, None, None, :]
        for number in range(LAYERS):
            rows = self._layer(rows, unseen, f"l{number}.")
        counted = is_there[..., None].astype(np.float32)
        summed: Rows = (rows.reshape(len(texts), longest, WIDTH) * counted).sum(axis=1)
        summed /= np.linalg.norm(summed, axis=1, keepdims=True)
        return summed

    def _layer(self, rows: Rows, unseen: Rows, layer: str) -> Rows:
        """The output of a layer for the rows of all pieces of all texts."""
        count, longest = len(unseen), unseen.shape[-1]

        def array(name: str) -> Rows:
            return self._arrays[layer + name]

        projected = rows @ array("seen") + array("seen_bias")
        by_head = projected.reshape(count, longest, 3, HEADS, -1).transpose(2, 0, 3, 1, 4)
        queries, keys, values = by_head
        weights = queries @ keys.swapaxes(-1, -2)
        weights /= np.sqrt(np.float32(WIDTH // HEADS))
        weights += unseen
        weights -= weights.max(axis=-1, keepdims=True)
        np.exp(weights, out=weights)
        weights /= weights.sum(axis=-1, keepdims=True)
        attended = (weights @ values).transpose(0, 2, 1, 3).reshape(-1, WIDTH)
        rows = rows + attended @ array("joined") + array("joined_bias")
        rows = _normalised(rows, array("joined_gain"), array("joined_shift"))
        inner = _activated(rows @ array("inner") + array("inner_bias"))
        rows = rows + inner @ array("outer") + array("outer_bias")
        return _normalised(rows, array("outer_gain"), array("outer_shift"))


def _normalised(rows: Rows, gain: Rows, bias: Rows) -> Rows:
    """Rows of mean 0 and variance 1, then scaled and shifted. Changes `rows`."""
    rows -= rows.mean(axis=1, keepdims=True)
    variance = np.einsum("ij,ij->i", rows, rows) / np.float32(WIDTH)
    rows /= np.sqrt(variance + _LEAST)[:, None]
    rows *= gain
    rows += bias
    return rows


def _activated(rows: Rows) -> Rows:
    """GELU, as its usual approximation: each number times a logistic function of it."""
    slope, cube = _GELU
    exponent = rows * rows
    exponent *= -slope * cube
    exponent -= slope
    exponent *= rows
    np.minimum(exponent, _MOST_EXPONENT, out=exponent)
    np.exp(exponent, out=exponent)
    exponent += 1
    rows /= exponent
    return rows
