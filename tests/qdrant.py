"""Qdrant for tests: the local mode of its client, which is a Qdrant in this process."""

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final

import pytest

from kalito_mcp.storage.qdrant.collections import QdrantCollections
from kalito_mcp.storage.qdrant.place import MODULE
from kalito_mcp.storage.qdrant.points import QdrantPoints

needs_qdrant: Final = pytest.mark.skipif(
    find_spec(MODULE) is None, reason="the package of the extra `qdrant` is not installed; `make .venv/.dev` does"
)
NAME: Final = "Qdrant of the tests"


def local_client() -> Any:
    """An empty Qdrant in memory."""
    return import_module(MODULE).QdrantClient(":memory:")


class SharedCollections(QdrantCollections):
    """Collections of a client that several stores share, as several processes share a server."""

    def __init__(self, connect: Callable[[], Any]) -> None:
        super().__init__(connect, is_local=True)

    def close(self) -> None:
        """The others go on."""


def points_of(client: Any, name: str = NAME, *, timeout_s: float = 30.0) -> QdrantPoints:
    """The points in this client, as one process sees them."""
    return QdrantPoints(name, SharedCollections(lambda: client), timeout_s=timeout_s)


def stored_rows(client: Any) -> set[str]:
    """Collection, row and id of all points."""
    found: set[str] = set()
    for one in client.get_collections().collections:
        page, _ = client.scroll(one.name, limit=10_000)
        found |= {f"{one.name}:{point.payload['row']}:{point.id}" for point in page}
    return found
