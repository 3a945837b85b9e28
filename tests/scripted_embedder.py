"""A deterministic embedder: texts are similar if they share letters."""

import zlib
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from kalito_mcp.errors import ModelReplyInvalid
from kalito_mcp.ports.embedder import Unrelated


def hashed_vector(text: str, dimension: int = 64) -> NDArray[np.float32]:
    """The hashed three-letter pieces of the text. Unit length, or zeros if there are none."""
    vector = np.zeros(dimension, np.float32)
    padded = f"  {text.lower()} "
    for start in range(len(padded) - 2):
        piece = zlib.crc32(padded[start : start + 3].encode())
        vector[piece % dimension] += 1 if piece >> 16 & 1 else -1
    length = float(np.linalg.norm(vector))
    return vector if length == 0 else vector / np.float32(length)


@dataclass
class ScriptedEmbedder:
    """Remembers the texts it was asked for. `before` gets the texts first, and may raise."""

    fingerprint: str = "scripted:64"
    dimension: int = 64
    replaces: Collection[str] = ()
    unrelated: Unrelated | None = None
    before: Callable[[Sequence[str]], None] = lambda texts: None
    asked: list[str] = field(default_factory=list)

    async def embed(self, texts: Sequence[str], *, is_query: bool = False) -> NDArray[np.float32]:
        self.before(texts)
        self.asked += texts
        return np.array([hashed_vector(text, self.dimension) for text in texts], np.float32).reshape(-1, self.dimension)

    async def aclose(self) -> None:
        """Do nothing."""


def refusing(*texts: str) -> Callable[[Sequence[str]], None]:
    """A `before` that refuses batches that contain one of these texts."""

    def before(asked: Sequence[str]) -> None:
        if set(asked) & set(texts):
            raise ModelReplyInvalid("it has no words for this")

    return before
