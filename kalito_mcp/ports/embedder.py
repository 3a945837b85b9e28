"""Embedders: texts to vectors of meaning. None is needed; without one nothing is embedded."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from kalito_mcp.domain.validation import Policy, bounded

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class VectorPolicy(Policy):
    """What embeds texts, and how they are prepared for it.

    `embedder` is empty for none, `minilm`, or the name of a model server; a server's `model` must be said. Texts are
    cut after `max_chars`, then the prefix goes before them. `batch` texts go to a server at once. Up to `exact_up_to`
    vectors a search compares with each of them; 0 never does.
    """

    embedder: str = ""
    model: str = ""
    batch: int = bounded(32, least=1, most=256)
    query_prefix: str = ""
    passage_prefix: str = ""
    max_chars: int = bounded(2000, least=1)
    exact_up_to: int = 100_000

    def prepared(self, texts: Sequence[str], *, is_query: bool) -> list[str]:
        """The texts as they are embedded. One without anything to read is a space: servers refuse empty ones."""
        prefix = self.query_prefix if is_query else self.passage_prefix
        whole = (prefix + text[: self.max_chars] for text in texts)
        return [text if text.strip() else " " for text in whole]

    def fingerprint(self, *parts: str) -> str:
        """The parts and, where there are prefixes, a digest of these, with colons between."""
        if self.query_prefix or self.passage_prefix:
            # The length keeps ("a", "bc") and ("ab", "c") apart.
            prefixes = f"{len(self.query_prefix)}:{self.query_prefix}{self.passage_prefix}"
            digest = hashlib.sha256(prefixes.encode("utf-8", "surrogatepass")).hexdigest()
            parts = (*parts, digest[:12])
        return ":".join(parts)


class Embedder(Protocol):
    """What makes vectors of texts. Not shared between event loops."""

    @property
    def fingerprint(self) -> str:
        """What made a vector: kind, model, how texts are prepared. Never a key or a URL.

        Vectors of equal fingerprints may be compared, others not.
        """
        ...

    async def embed(self, texts: Sequence[str], *, is_query: bool = False) -> "NDArray[np.float32]":
        """One row of unit length a text, in order: (n, dimension). No texts: no rows, and nobody is asked.

        Raises:
            ModelUnavailable: not reachable, too slow, refused, its files cannot be read, or it is closed.
            ModelReplyInvalid: what it answered is not one usable vector a text.
        """
        ...

    async def aclose(self) -> None:
        """Let go of connections and files. Calls of `embed` after this one raise ModelUnavailable."""
        ...
