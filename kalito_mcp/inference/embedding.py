"""Embedding servers over HTTP: Ollama's `/api/embed` and the OpenAI-compatible `/embeddings`.

Answers are checked: there must be one vector a text, all of one dimension, of finite numbers that are not all zero.
Otherwise the whole answer is refused.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Final

import anyio.to_thread

from kalito_mcp.inference.http import CallLimits, HttpModel
from kalito_mcp.ports.embedder import VectorPolicy

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_MOST_DIMENSIONS: Final = 8192
_BYTES_PER_NUMBER: Final = 32
"""At most, in JSON: with sign, exponent, comma and indentation."""
_FRAME_BYTES: Final = 1 << 16


class _HttpEmbedder(HttpModel):
    """Shared by the two kinds of server. `policy.model` is required."""

    _KIND: ClassVar[str]

    def __init__(self, *, policy: VectorPolicy, limits: CallLimits | None = None, **connection: Any) -> None:
        """`connection` is passed to HttpModel.

        The reply may be as large as a batch of the largest vectors, even if `limits`, set for chats, allow less.
        """
        limits = limits or CallLimits()
        needed = policy.batch * _MOST_DIMENSIONS * _BYTES_PER_NUMBER + _FRAME_BYTES
        super().__init__(limits=replace(limits, max_reply_bytes=max(needed, limits.max_reply_bytes)), **connection)
        self._policy = policy

    @property
    def fingerprint(self) -> str:
        """Like `ollama:nomic-embed-text`, followed by a digest of the prefixes if there are any."""
        return self._policy.fingerprint(self._KIND, self._policy.model)

    @property
    def replaces(self) -> Collection[str]:
        """None: what a server should embed is for the user to say."""
        return ()

    @property
    def unrelated(self) -> None:
        """Not known: the server may run any model."""
        return

    async def embed(self, texts: Sequence[str], *, is_query: bool = False) -> "NDArray[np.float32]":
        """As the port says. The limits apply to each batch; if one fails, the whole call fails."""
        # In a thread, because the first import takes a tenth of a second.
        await anyio.to_thread.run_sync(import_module, "numpy")
        import numpy as np  # noqa: PLC0415 - by now it is there

        prepared = self._policy.prepared(texts, is_query=is_query)
        size = self._policy.batch
        batches = [await self._embed_batch(prepared[first : first + size]) for first in range(0, len(prepared), size)]
        if len({batch.shape[1] for batch in batches}) > 1:
            raise self._invalid("it answered with vectors of several dimensions")
        return np.concatenate(batches) if batches else np.empty((0, 0), np.float32)

    async def _embed_batch(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        def read(answer: Any) -> "NDArray[np.float32]":
            return self._unit_rows(self._vectors_in(answer), len(texts))

        return await self._ask(self._payload(texts), self._policy.model, read)

    def _payload(self, texts: Sequence[str]) -> Mapping[str, Any]:
        return {"model": self._policy.model, "input": texts}

    def _vectors_in(self, answer: Any) -> Any:
        raise NotImplementedError

    def _unit_rows(self, vectors: Any, count: int) -> "NDArray[np.float32]":
        import numpy as np  # noqa: PLC0415 - by now it is there

        if not isinstance(vectors, list) or not all(isinstance(vector, list) for vector in vectors):
            raise self._invalid("its answer is JSON, but not a list of embeddings")
        if len(vectors) != count:
            raise self._invalid(f"it answered {count} texts with {len(vectors)} vectors")
        dimensions = {len(vector) for vector in vectors}
        if len(dimensions) != 1 or not 1 <= min(dimensions) <= _MOST_DIMENSIONS:
            raise self._invalid(f"its vectors are not all of one dimension from 1 to {_MOST_DIMENSIONS}")
        # By type, because numpy would accept "1.5" and true as numbers.
        if not all(set(map(type, vector)) <= {float, int} for vector in vectors):
            raise self._invalid("its vectors contain something that is not a number")
        try:
            rows = np.array(vectors, dtype=np.float64)
        except OverflowError:
            raise self._invalid("its vectors contain a number that is too large") from None
        largest = np.abs(rows).max(axis=1, keepdims=True)
        if not (np.isfinite(largest) & (largest > 0)).all():
            raise self._invalid("one of its vectors is zero, or not finite")
        # Divided by the largest first: the square of a very large or very small number is infinite or zero.
        rows /= largest
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        return rows.astype(np.float32)


class OllamaEmbedder(_HttpEmbedder):
    """Ollama's own endpoint; `url` is like http://127.0.0.1:11434."""

    _PATH = "/api/embed"
    _KIND = "ollama"

    def _vectors_in(self, answer: Any) -> Any:
        return answer.get("embeddings") if isinstance(answer, dict) else None


class OpenAIEmbedder(_HttpEmbedder):
    """Any OpenAI-compatible server; `url` is like https://api.openai.com/v1."""

    _PATH = "/embeddings"
    _KIND = "openai"

    def _payload(self, texts: Sequence[str]) -> Mapping[str, Any]:
        return {**super()._payload(texts), "encoding_format": "float"}

    def _vectors_in(self, answer: Any) -> Any:
        """The vectors in the order of the texts, whatever the order of the answer."""
        items = answer.get("data") if isinstance(answer, dict) else None
        if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
            return None
        by_index = {item.get("index"): item.get("embedding") for item in items if type(item.get("index")) is int}
        if sorted(by_index) != list(range(len(items))):
            raise self._invalid("it did not number its vectors from 0 up, each once")
        return [by_index[index] for index in range(len(items))]
