"""One server for the tests of a module. Each test uses sessions of its own."""

from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from tests.web.rest.served import Served, served


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder: Path = tmp_path_factory.mktemp("rest")
    with served(folder) as running:
        yield running


@pytest.fixture
def client(server: Served) -> Iterator[httpx2.Client]:
    """A client that may do everything."""
    with server.client() as one:
        yield one
