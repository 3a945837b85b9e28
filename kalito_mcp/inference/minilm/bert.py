"""The forward pass of a BERT encoder with numpy: token ids in, one unit vector a text out. Reads one file.

The texts of a call are laid end to end, without padding: each layer multiplies all tokens at once, and only attention
runs text by text. Sources: Devlin et al., NAACL 2019 (the encoder); Reimers and Gurevych, EMNLP 2019 (the mean of the
tokens as the text's vector); Abramowitz and Stegun 7.1.26 (erf, to 1.5e-7).
"""

import json
import mmap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Tensor = NDArray[np.float32]

_EPSILON: Final = np.float32(1e-12)
_ERF_RATE: Final = np.float32(0.3275911)
_ERF_TERMS: Final = tuple(
    np.float32(term) for term in (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592)
)
_GELU_ROWS: Final = 16
"""This many rows at a time stay in the processor's cache from one step to the next."""
_LENGTH_BYTES: Final = 8


def read_safetensors(path: Path) -> dict[str, Tensor]:
    """The float32 tensors of a file by name, memory-mapped: unused ones take no memory.

    Raises:
        OSError: the file cannot be opened.
        ValueError: it is not a safetensors file, or is cut short.
    """
    with path.open("rb") as file:
        content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    start = _LENGTH_BYTES + int.from_bytes(content[:_LENGTH_BYTES], "little")
    try:
        header: dict[str, Any] = json.loads(content[_LENGTH_BYTES:start])
        return {
            name: _mapped(content, start, **entry)
            for name, entry in header.items()
            if name != "__metadata__" and entry["dtype"] == "F32"
        }
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"{path} has no header that lists its tensors") from error


def _mapped(content: mmap.mmap, start: int, *, dtype: str, shape: list[int], data_offsets: list[int]) -> Tensor:
    first, end = data_offsets
    flat: Tensor = np.frombuffer(content, "<f4", (end - first) // 4, start + first)
    return flat.reshape(shape)


class BertEncoder:
    """A BERT model of any size. Safe to share between threads."""

    def __init__(self, tensors: Mapping[str, Tensor], *, heads: int) -> None:
        """Raises ValueError if a tensor is missing."""
        try:
            self._words, self._places, types = (
                tensors[f"embeddings.{kind}_embeddings.weight"] for kind in ("word", "position", "token_type")
            )
            self._type = types[0]
            self._norm = _pair(tensors, "embeddings.LayerNorm")
            count = 0
            self._layers = []
            while f"encoder.layer.{count}.output.dense.weight" in tensors:
                self._layers.append(_Layer(tensors, f"encoder.layer.{count}", heads))
                count += 1
        except KeyError as missing:
            raise ValueError(f"no tensor {missing}") from None

    @property
    def dimension(self) -> int:
        """The number of components of a vector."""
        return int(self._words.shape[1])

    @property
    def most_tokens(self) -> int:
        """The most tokens that a text may have."""
        return len(self._places)

    def encode(self, texts: Sequence[Sequence[int]]) -> Tensor:
        """One unit row a text, (n, dimension). Each text has from 1 to `most_tokens` ids, all of the vocabulary."""
        if not texts:
            return np.empty((0, self.dimension), np.float32)
        lengths = [len(ids) for ids in texts]
        ends = np.cumsum(lengths).tolist()
        spans = [slice(end - length, end) for end, length in zip(ends, lengths, strict=True)]
        hidden = self._words[np.concatenate(texts)]
        for span, length in zip(spans, lengths, strict=True):
            hidden[span] += self._places[:length]
        hidden += self._type
        _normalise(hidden, self._norm)
        for layer in self._layers:
            layer.apply(hidden, spans)
        rows: Tensor = np.stack([hidden[span].mean(axis=0) for span in spans])
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        return rows


class _Layer:
    def __init__(self, tensors: Mapping[str, Tensor], name: str, heads: int) -> None:
        self._heads = heads
        self._query, self._key, self._value = (
            _pair(tensors, f"{name}.attention.self.{part}") for part in ("query", "key", "value")
        )
        self._attended = _pair(tensors, f"{name}.attention.output.dense")
        self._attended_norm = _pair(tensors, f"{name}.attention.output.LayerNorm")
        self._wide = _pair(tensors, f"{name}.intermediate.dense")
        self._narrow = _pair(tensors, f"{name}.output.dense")
        self._norm = _pair(tensors, f"{name}.output.LayerNorm")

    def apply(self, hidden: Tensor, spans: Sequence[slice]) -> None:
        """Apply the layer to (tokens, dimension) in place; each text sees only its own span."""
        queries, keys, values = (_linear(hidden, part) for part in (self._query, self._key, self._value))
        size = hidden.shape[1] // self._heads
        queries *= np.float32(size**-0.5)
        for span in spans:
            # Each is (heads, tokens, size). The result overwrites the text's queries, which are no longer needed.
            query, key, value = (self._by_head(part[span], size) for part in (queries, keys, values))
            weights = query @ key.transpose(0, 2, 1)
            weights -= weights.max(axis=-1, keepdims=True)
            np.exp(weights, out=weights)
            weights /= weights.sum(axis=-1, keepdims=True)
            queries[span] = (weights @ value).transpose(1, 0, 2).reshape(-1, hidden.shape[1])
        hidden += _linear(queries, self._attended)
        _normalise(hidden, self._attended_norm)
        wide = _linear(hidden, self._wide)
        _gelu(wide)
        hidden += _linear(wide, self._narrow)
        _normalise(hidden, self._norm)

    def _by_head(self, part: Tensor, size: int) -> Tensor:
        return part.reshape(-1, self._heads, size).transpose(1, 0, 2)


def _pair(tensors: Mapping[str, Tensor], name: str) -> tuple[Tensor, Tensor]:
    return tensors[f"{name}.weight"], tensors[f"{name}.bias"]


def _linear(rows: Tensor, part: tuple[Tensor, Tensor]) -> Tensor:
    weight, bias = part
    product: Tensor = rows @ weight.T
    product += bias
    return product


def _normalise(rows: Tensor, part: tuple[Tensor, Tensor]) -> None:
    """Each row to mean 0 and variance 1, then scaled and shifted; in place."""
    scale, shift = part
    rows -= rows.mean(axis=1, keepdims=True)
    variance = np.einsum("ij,ij->i", rows, rows)[:, None] / np.float32(rows.shape[1])
    rows /= np.sqrt(variance + _EPSILON)
    rows *= scale
    rows += shift


def _gelu(rows: Tensor) -> None:
    """Each x becomes x times the probability that a standard normal is below it; in place."""
    for first in range(0, len(rows), _GELU_ROWS):
        block = rows[first : first + _GELU_ROWS]
        size = np.abs(block)
        scaled = size * np.float32(0.5**0.5)
        step = 1 / (1 + _ERF_RATE * scaled)
        series = np.zeros_like(step)
        for term in _ERF_TERMS:
            series += term
            series *= step
        # The probability beyond |x| on both sides: 1 - erf(|x| / sqrt 2).
        series *= np.exp(-scaled * scaled)
        series *= size
        np.maximum(block, 0, out=block)
        block -= np.float32(0.5) * series
