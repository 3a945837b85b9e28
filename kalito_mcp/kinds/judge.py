"""Says of sentences what they are: by their vectors, or without a model by explicit words."""

from collections.abc import Sequence

from kalito_mcp.errors import ModelError
from kalito_mcp.kinds.cues import judged_by_words
from kalito_mcp.kinds.kinds import Judged, Sentence
from kalito_mcp.ports.embedder import Embedder


class SentenceJudge:
    """Judges sentences. `embedder` must be the model whose vectors `kinds.head` was made for; None judges by words."""

    def __init__(self, embedder: Embedder | None) -> None:
        self._embedder = embedder

    async def judge(self, sentences: Sequence[Sentence]) -> Sequence[Judged]:
        """What each sentence is. Never raises: a model that cannot be used is done without."""
        if not sentences:
            return ()
        if self._embedder is not None:
            try:
                vectors = await self._embedder.embed([one.text for one in sentences])
            except ModelError:
                return judged_by_words(sentences)
            from kalito_mcp.kinds.head import judged  # noqa: PLC0415 - numpy loads when first needed

            return judged(vectors, sentences)
        return judged_by_words(sentences)
