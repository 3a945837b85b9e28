"""Qdrant for tests: the local mode of its client, which is a Qdrant in this process."""

import threading
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final

import pytest

from kalito_mcp.storage.qdrant.collections import MODULE, QdrantCollections
from kalito_mcp.storage.qdrant.points import QdrantPoints

needs_qdrant: Final = pytest.mark.skipif(
    find_spec(MODULE) is None, reason="the package of the extra `qdrant` is not installed; `make .venv/.dev` does"
)
NAME: Final = "Qdrant of the tests"


class LocalClient:
    """An empty Qdrant in memory, for one thread at a time."""

    def __init__(self) -> None:
        self._client: Any = import_module(MODULE).QdrantClient(":memory:")
        self._lock = threading.Lock()

    def create_payload_index(self, *_: Any, **__: Any) -> None:
        """The local mode has none."""

    def query_points(self, *arguments: Any, search_params: object = None, **named: Any) -> Any:
        """The local mode always compares all."""
        del search_params
        return self.__getattr__("query_points")(*arguments, **named)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            with self._lock:
                return getattr(self._client, name)(*arguments, **named)

        return call


class SharedCollections(QdrantCollections):
    """Collections of a client that several stores share, as several processes share a server."""

    def __init__(self, client: Any) -> None:
        super().__init__(lambda: client)

    def close(self) -> None:
        """The others go on."""


def points_of(client: Any, name: str = NAME) -> QdrantPoints:
    """The points in this client, as one process sees them."""
    return QdrantPoints(name, SharedCollections(client), timeout_s=30.0)


def stored_rows(client: Any) -> set[str]:
    """Collection, row and id of all points."""
    found: set[str] = set()
    for one in client.get_collections().collections:
        page, _ = client.scroll(one.name, limit=10_000)
        found |= {f"{one.name}:{point.payload['row']}:{point.id}" for point in page}
    return found
