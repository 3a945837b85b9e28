"""Says of sentences what they are: by their vectors, or without a model by explicit words."""

from collections.abc import Sequence
from functools import partial
from typing import Final

from kalito_mcp.errors import ModelError
from kalito_mcp.kinds.cues import judged_by_words
from kalito_mcp.kinds.kinds import Judged, Sentence
from kalito_mcp.long_texts import read_aside
from kalito_mcp.ports.embedder import Embedder

_AT_ONCE: Final = 20_000
"""Characters that are judged within some milliseconds."""


class SentenceJudge:
    """Judges sentences. `embedder` must be the model whose vectors `kinds.head` was made for; None judges by words."""

    def __init__(self, embedder: Embedder | None) -> None:
        self._embedder = embedder

    async def judge(self, sentences: Sequence[Sentence]) -> Sequence[Judged]:
        """What each sentence is. Never raises: a model that cannot be used is done without."""
        if not sentences:
            return ()
        read = partial(judged_by_words, sentences)
        if self._embedder is not None:
            try:
                vectors = await self._embedder.embed([one.text for one in sentences])
            except ModelError:
                pass
            else:
                from kalito_mcp.kinds.head import judged  # noqa: PLC0415 - numpy loads when first needed

                read = partial(judged, vectors, sentences)
        return await read_aside(sum(len(one.text) for one in sentences), read, most=_AT_ONCE)
