"""Embedders turn texts into vectors of meaning. They can be switched off: then nothing is embedded."""

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

from kalito_mcp.domain.validation import Policy, bounded

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class VectorPolicy(Policy):
    """Which embedder is used, and how texts are prepared for it.

    `embedder` is `auto` (the best that is installed), `none` or empty, `meaning` (the model that comes with
    kalito-mcp), `e5` (the model of the extra), or the name of a model server, which needs a `model`. Texts are cut
    after `max_chars`, then the prefix is put before them. `batch` texts go to a server at once.

    `qdrant` is the URL of a Qdrant server that keeps the vectors; empty keeps them in the database. The key is in the
    environment variable `qdrant_api_key_env`. No search waits longer for it than `qdrant_timeout_s`.
    """

    embedder: str = "auto"
    model: str = ""
    batch: int = bounded(32, least=1, most=256)
    query_prefix: str = ""
    passage_prefix: str = ""
    max_chars: int = bounded(2000, least=1)
    qdrant: str = ""
    qdrant_api_key_env: str = ""
    qdrant_timeout_s: float = bounded(2.0, least=0.1, most=30)

    def prepared(self, texts: Sequence[str], *, is_query: bool) -> list[str]:
        """The texts as they are embedded. A blank text becomes a space, because servers refuse empty ones."""
        prefix = self.query_prefix if is_query else self.passage_prefix
        whole = (prefix + text[: self.max_chars] for text in texts)
        return [text if text.strip() else " " for text in whole]

    def fingerprint(self, *parts: str) -> str:
        """The parts, joined by colons. If there are prefixes, a digest of them is the last part."""
        if self.query_prefix or self.passage_prefix:
            # The length keeps ("a", "bc") and ("ab", "c") apart.
            prefixes = f"{len(self.query_prefix)}:{self.query_prefix}{self.passage_prefix}"
            digest = hashlib.sha256(prefixes.encode("utf-8", "surrogatepass")).hexdigest()
            parts = (*parts, digest[:12])
        return ":".join(parts)


class Unrelated(NamedTuple):
    """The mean and the standard deviation of the cosines of texts that have nothing to do with each other."""

    mean: float
    spread: float


class Embedder(Protocol):
    """Makes vectors of texts. Never share one between event loops."""

    @property
    def fingerprint(self) -> str:
        """Identifies how vectors are made: kind, model, preparation of texts. Contains no key or URL.

        Only vectors of equal fingerprints may be compared.
        """

    @property
    def replaces(self) -> Collection[str]:
        """The kinds of embedders, as their fingerprints begin, whose vectors those of this one replace without being
        asked. Those of any other stay until `kalito-mcp reindex`."""

    @property
    def unrelated(self) -> Unrelated | None:
        """The cosines of a query with unrelated texts, by this model. None if they are not known.

        Models differ in them, so cosines are measured from there before they are added to anything else.
        """

    async def embed(self, texts: Sequence[str], *, is_query: bool = False) -> "NDArray[np.float32]":
        """Return one row of unit length for each text, in order: (n, dimension). No texts: no rows, no request.

        Raises:
            ModelUnavailable: the embedder is closed, its files cannot be read, or its server cannot be reached, is too
                slow or refuses.
            ModelReplyInvalid: the server did not return one usable vector for each text.
        """

    async def aclose(self) -> None:
        """Release connections and files. Later calls of `embed` raise ModelUnavailable."""
