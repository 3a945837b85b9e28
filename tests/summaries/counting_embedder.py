"""The model of every installation, which counts the texts that it embeds."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kalito_mcp.inference.meaning import MeaningEmbedder
from kalito_mcp.ports.embedder import VectorPolicy


class CountingEmbedder(MeaningEmbedder):
    """Counts the texts that it embeds."""

    def __init__(self) -> None:
        super().__init__(VectorPolicy())
        self.embedded = 0

    async def embed(self, texts: Sequence[str], *, is_query: bool = False) -> NDArray[np.float32]:
        self.embedded += len(texts)
        return await super().embed(texts, is_query=is_query)
