"""The encoder: pieces of words to one vector, by convolutions over 2, 3 and 5 neighbours and four dense layers.

Source: Yang et al., ACL 2020 (Multilingual Universal Sentence Encoder for Semantic Retrieval), the convolutional model.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kalito_mcp.inference.mapped_arrays import Arrays
from kalito_mcp.inference.sentence_encoder.package_files import CHUNKS

_ORDERS: Final = ((2, 0), (3, 1), (5, 2))
"""How many neighbours a convolution sees, and how many of them are to the left."""
_MOST_LEFT, _MOST_RIGHT = 2, 2
Rows = NDArray[np.float32]


class Encoder:
    """Its arrays come from `package_files.arrays_of`."""

    def __init__(self, arrays: Arrays) -> None:
        self._arrays = arrays
        self._least = float(arrays["eps"])

    def encode(self, texts: Sequence[Sequence[int]]) -> Rows:
        """One row of unit length for each text, (n, 512). A text has one piece at least."""
        weights = self._arrays
        if not texts:
            return np.empty((0, weights["p3"].shape[1]), np.float32)
        lengths = np.array([len(pieces) for pieces in texts])
        starts = np.cumsum(lengths) - lengths
        pieces = np.concatenate([np.asarray(pieces) for pieces in texts])
        chunk = pieces % CHUNKS
        embedded: Rows = weights["table"][pieces] * weights["scale"][chunk, None] + weights["lo"][chunk, None]

        local = self._normalised(embedded @ weights["proj"] + weights["proj_b"], weights["ln_g"], weights["ln_b"])
        neighbours = _neighbours(starts, lengths)
        features = [embedded]
        for (order, left), seen in zip(_ORDERS, np.split(local, len(_ORDERS), axis=1), strict=True):
            places = neighbours[:, _MOST_LEFT - left : _MOST_LEFT - left + order]
            once = _rectified(_gathered(seen, places) @ weights[f"w1_{order}"] + weights[f"b1_{order}"]) + seen
            twice = _rectified(_gathered(once, places) @ weights[f"w2_{order}"] + weights[f"b2_{order}"]) + once
            features.append(twice)
        joined = self._normalised(np.concatenate(features, axis=1), weights["ln_g_all"], weights["ln_b_all"])

        # The sum before the projection, which is linear: one row for a text instead of one for a piece.
        count = lengths[:, None].astype(np.float32)
        summed: Rows = np.add.reduceat(joined, starts, axis=0)
        mean: Rows = summed @ weights["cnn_W"] + count * weights["cnn_b"]
        mean /= np.sqrt(count)
        inner = _rectified(mean @ weights["p1"] + _rectified(mean @ weights["d0"]) @ weights["d1"])
        rows = np.tanh(inner @ weights["p3"] + _rectified(inner @ weights["d2"]) @ weights["d3"])
        squares = np.einsum("ij,ij->i", rows, rows)[:, None]
        unit: Rows = rows / np.sqrt(np.maximum(squares, self._least))
        return unit

    def _normalised(self, rows: Rows, gain: Rows, bias: Rows) -> Rows:
        """Rows of mean 0 and variance 1, then scaled and shifted. Changes `rows`."""
        rows -= rows.mean(axis=1, keepdims=True)
        variance = np.einsum("ij,ij->i", rows, rows) / rows.shape[1]
        rows /= np.sqrt(variance + self._least)[:, None].astype(np.float32)
        rows *= gain
        rows += bias
        return rows


def _neighbours(starts: NDArray[np.intp], lengths: NDArray[np.intp]) -> NDArray[np.intp]:
    """The rows around each row, itself included. Outside its text, the row after all others."""
    total = int(lengths.sum())
    around = np.arange(total)[:, None] + np.arange(-_MOST_LEFT, _MOST_RIGHT + 1)
    first, last = (np.repeat(bound, lengths)[:, None] for bound in (starts, starts + lengths))
    return np.where((around >= first) & (around < last), around, total)


def _gathered(rows: Rows, places: NDArray[np.intp]) -> Rows:
    """The rows at these places, side by side; zeros for the place after the last row."""
    padded = np.concatenate([rows, np.zeros_like(rows[:1])])
    return padded[places].reshape(len(rows), -1)


def _rectified(rows: Rows) -> Rows:
    return np.maximum(rows, 0, out=rows)
