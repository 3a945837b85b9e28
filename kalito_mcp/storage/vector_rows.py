"""Vectors as they are stored: signed bytes in the direction of the vector. Pure."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kalito_mcp.errors import InvalidInput
from kalito_mcp.ports.vectors import OwedVector
from kalito_mcp.storage.intact_rows import intact_rows

_LARGEST: Final = 127
_ROWS_AT_ONCE: Final = 512


def packed(vectors: NDArray[np.float32]) -> list[bytes]:
    """Each row of (n, d) as d signed bytes. They keep only its direction, because it has unit length.

    Dividing them by their own length is more exact than a stored scale: recall@10 of 20,000 clustered vectors of 384
    dimensions is 0.974 to 0.998, against 0.936 to 0.996 with a scale.

    Raises:
        InvalidInput: a value is not finite.
    """
    if not np.isfinite(vectors).all():
        raise InvalidInput("an embedding has a value that is not finite; check what the embedding model returns")
    largest = np.abs(vectors).max(axis=1, keepdims=True)
    scaled = vectors / np.where(largest > 0, largest, 1)
    return [row.tobytes() for row in np.rint(scaled * _LARGEST).astype(np.int8)]


def unpacked(blobs: Sequence[bytes], dimension: int) -> NDArray[np.int8]:
    """Rows of `packed` as (n, dimension)."""
    with intact_rows():
        return np.frombuffer(b"".join(blobs), np.int8).reshape(len(blobs), dimension)


def with_vectors(
    rows: Sequence[Any],
) -> tuple[Sequence[OwedVector], NDArray[np.float32]]:
    """One or more rows (record, owner, text, bytes) as what is owed, and as vectors (n, dimension) that are packed as
    these bytes."""
    codes = [row[3] for row in rows]
    return [OwedVector(*row[:3]) for row in rows], unpacked(codes, len(codes[0])).astype(np.float32)


def directions(rows: NDArray[np.int8]) -> NDArray[np.float32]:
    """Rows of (n, d) with unit length. Zeros stay zeros."""
    vectors = rows.astype(np.float32)
    vectors *= inverse_lengths(vectors)[:, np.newaxis]
    return vectors


def cosines(rows: NDArray[np.int8], query: NDArray[np.float32]) -> NDArray[np.float32]:
    """The inner product of the direction of each row of (n, d) with the query (d,). 0 for a row of zeros."""
    return products(rows, query) * inverse_lengths(rows)


def inverse_lengths(rows: NDArray[np.int8] | NDArray[np.float32]) -> NDArray[np.float32]:
    """1 divided by the length of each row of (n, d). 0 for a row of zeros."""
    vectors = np.asarray(rows, np.float32)
    lengths = np.sqrt(np.vecdot(vectors, vectors))
    return np.asarray(np.divide(1, lengths, out=np.zeros_like(lengths), where=lengths > 0), np.float32)


def products(rows: NDArray[np.int8] | NDArray[np.uint8], query: NDArray[np.float32]) -> NDArray[np.float32]:
    """The inner product of each row of (n, d) with the query (d,).

    Some hundred rows at a time become float32, so that they stay in the processor's cache. Unlike in a matrix product,
    no digit of a product depends on the rows around it.
    """
    found = np.empty(len(rows), np.float32)
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        part = rows[start : start + _ROWS_AT_ONCE].astype(np.float32)
        np.vecdot(part, query, out=found[start : start + _ROWS_AT_ONCE])
    return found


def ranked(
    rows: Sequence[tuple[int, bytes]], dimension: int, query: NDArray[np.float32], k: int
) -> list[tuple[int, float]]:
    """The k rows (record, bytes) with the largest cosines, as (record, cosine), best first; ties: newest first."""
    if not rows:
        return []
    keys, blobs = zip(*rows, strict=True)
    records, scores = np.array(keys, np.int64), cosines(unpacked(blobs, dimension), query)
    order = np.lexsort((-records, -scores))[:k]
    return list(zip(records[order].tolist(), scores[order].tolist(), strict=True))


def best(pairs: Iterable[tuple[int, float]], k: int) -> list[tuple[int, float]]:
    """The k pairs with the largest cosines, best first. Ties: the newer record first."""
    return sorted(pairs, key=lambda pair: (-pair[1], -pair[0]))[:k]
