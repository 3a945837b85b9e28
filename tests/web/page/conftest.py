"""One server for the tests of a module, and a person who may do everything. Each test uses words of its own."""

from collections.abc import Iterator

import httpx2
import pytest

from tests.web.page.visiting import Person, signed_in
from tests.web.rest.served import Served, served

OFTEN = {"KALITO_HTTP_CALLS_PER_MINUTE": "1000000", "KALITO_HTTP_WRITES_PER_MINUTE": "1000000"}
"""Settings for tests that make more calls than a person does."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("page"), **OFTEN) as running:
        yield running


@pytest.fixture
def client(server: Served) -> Iterator[httpx2.Client]:
    """A program that may do everything."""
    with server.client() as one:
        yield one


@pytest.fixture
def person(server: Served) -> Iterator[Person]:
    """Somebody who may do everything."""
    with signed_in(server) as one:
        yield one
