"""Adapts any embedding provider to the graph. Pure, as far as the provider is.

Only `embed` is required of a provider. Its vectors become sparse ones of unit length here, and nowhere else.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from kalito_mcp.domain.graph import EmbeddingProvider
from kalito_mcp.domain.sparse_vectors import SparseVector
from kalito_mcp.domain.wording import camel_case
from kalito_mcp.errors import InvalidInput


class SparseEmbedder:
    """A provider's vectors and state, with a default for each of its optional members."""

    def __init__(self, provider: EmbeddingProvider) -> None:
        self._provider = provider

    @property
    def fingerprint(self) -> str:
        """A short text that two embedders share only if their vectors may be compared; by default the state."""
        fingerprint = self._member("fingerprint")
        return json.dumps(self.export_state(), sort_keys=True) if fingerprint is None else str(fingerprint)

    def embed(self, text: str) -> SparseVector:
        """The text's vector. Raises InvalidInput if the provider returned something else."""
        return _sparse(self._provider.embed(text))

    def embed_all(self, texts: Sequence[str]) -> list[SparseVector]:
        """The vectors, in the order of the texts; by default one by one."""
        embed_all = self._member("embed_all")
        return [_sparse(one) for one in (embed_all(texts) if embed_all else map(self._provider.embed, texts))]

    def export_state(self) -> dict[str, Any]:
        """The provider's identity, JSON-ready; by default the name of its class."""
        export_state = self._member("export_state")
        kind = type(self._provider)
        state: dict[str, Any] = export_state() if export_state else {"kind": f"{kind.__module__}.{kind.__qualname__}"}
        return state

    def import_state(self, state: dict[str, Any]) -> None:
        """Let the provider take over a stored state; by default the state must be its own.

        Raises:
            InvalidInput: the state of another embedder; the message says what differs.
        """
        if import_state := self._member("import_state"):
            import_state(state)
            return
        own, state = snake_keys(self.export_state()), snake_keys(state)
        differing = [
            f"{name} is {state.get(name)!r} there and {own.get(name)!r} here"
            for name in dict.fromkeys([*own, *state])
            if name not in own or name not in state or state[name] != own[name]
        ]
        if differing:
            raise InvalidInput(f"the vectors are from another embedder ({'; '.join(differing)}); embed the texts again")

    def _member(self, name: str) -> Any:
        """An optional member of the provider, in snake_case or in camelCase; None if it has neither."""
        member = getattr(self._provider, name, None)
        return getattr(self._provider, camel_case(name), None) if member is None else member


def snake_keys(data: Mapping[str, Any]) -> dict[str, Any]:
    """The object with camelCase keys in snake_case."""
    return {
        "".join(f"_{one.lower()}" if one.isupper() else one for one in str(name)): value for name, value in data.items()
    }


def _sparse(vector: SparseVector | Mapping[int, float] | Sequence[float]) -> SparseVector:
    if isinstance(vector, SparseVector):
        return vector
    return SparseVector.of(vector if isinstance(vector, Mapping) else enumerate(vector))
