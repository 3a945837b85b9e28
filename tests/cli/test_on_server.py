"""Commands on a memory that is on PostgreSQL, where they say something else than on a file."""

from collections.abc import Iterator

import anyio
import pytest

from kalito_mcp.storage.on_server import COPIES
from tests.cli.conftest import Invoke
from tests.postgres import OWNER, new_database, shared_server


@pytest.fixture
def address() -> Iterator[dict[str, str]]:
    """An empty database, as the environment names it."""
    server, name = shared_server(), anyio.run(new_database)
    yield {"KALITO_DATABASE": server.url(name), "KALITO_DATABASE_DIRECT": server.url(name, OWNER)}


def test_a_purge_says_where_the_words_stay_for_a_while(invoke: Invoke, address: dict[str, str]) -> None:
    stored = invoke("remember", "Bees sleep in winter.", **address)
    assert stored.code == 0, stored.err
    note = stored.out.split()[-1]
    for arguments in ([note, "--yes"], []):
        purged = invoke("purge", *arguments, **address)
        assert purged.code == 0, purged.err
        assert "no erased text remains in the memory's tables" in purged.out
        assert "files\n" not in purged.out
        for one in COPIES:
            assert f"note: {one}" in purged.out.splitlines()


def test_erasing_a_person_says_the_same(invoke: Invoke, address: dict[str, str]) -> None:
    invoke("user", "add", "anna", **address)
    erased = invoke("user", "erase", "anna", "--yes", **address)
    assert erased.code == 0, erased.err
    for one in COPIES:
        assert f"note: {one}" in erased.out.splitlines()
