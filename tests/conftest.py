"""Fixtures and hooks of every test."""

import os
import shutil
import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Final

import hypothesis
import pytest
from hypothesis import HealthCheck

from kalito_mcp.access import passphrases
from kalito_mcp.storage.sqlite.database import SqliteStore
from tests import meaning_package
from tests.empty_database import lay_empty_database
from tests.scripted import CountedIds, ScriptedClock

if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    # Run in the background of a shell, tests would hand this on to the servers that they start and interrupt.
    signal.signal(signal.SIGINT, signal.default_int_handler)

# How long an example takes says more about the machine's other work than about the code. `make campaigns` draws more
# examples; to look for a counterexample, run `pytest --hypothesis-profile thorough`.
_DRAWN: Final = hypothesis.settings(
    deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
for _profile, _examples in {"check": 8, "campaigns": 100, "thorough": 1_000}.items():
    hypothesis.settings.register_profile(_profile, _DRAWN, max_examples=_examples)
hypothesis.settings.load_profile("check")


_IN_MEMORY: Final = Path("/dev/shm")  # noqa: S108 - pytest makes folders of its own below it
_ROOM_BYTES: Final = 4 << 30
_FULL_COST: Final = passphrases.COST


def pytest_configure(config: pytest.Config) -> None:
    """Tests write and sync thousands of small databases: in memory, where there is room for them. They make thousands
    of HTTP clients, each of which reads for 30 ms whom it trusts: here that is one authority, which has no key. They
    search by words, unless they ask for the model, which is laid out once for all of them. What they store of a
    passphrase takes a thirtieth of the time; it carries its own cost.
    """
    del config
    pytest.MonkeyPatch().setattr(passphrases, "COST", 1 << 10)
    meaning_package.hide()
    os.environ["XDG_CACHE_HOME"] = str(Path(__file__).parents[1] / "build" / "cache")
    os.environ["SSL_CERT_FILE"] = str(Path(__file__).with_name("nobody.pem"))
    if os.access(_IN_MEMORY, os.W_OK) and shutil.disk_usage(_IN_MEMORY).free > _ROOM_BYTES:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(_IN_MEMORY))


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """One more than there are processors: many tests wait for another process."""
    del config
    return (os.cpu_count() or 1) + 1


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def clock() -> ScriptedClock:
    return ScriptedClock()


@pytest.fixture
def ids() -> CountedIds:
    return CountedIds()


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """The path of a database that does not exist yet."""
    return tmp_path / "memory.db"


@pytest.fixture
def full_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    """Passphrases as they are stored in earnest."""
    monkeypatch.setattr(passphrases, "COST", _FULL_COST)


@pytest.fixture
def meaning_installed() -> Iterator[None]:
    """The model of every installation, which the other tests run without."""
    meaning_package.show()
    yield
    meaning_package.hide()


@pytest.fixture
async def store(database: Path) -> AsyncIterator[SqliteStore]:
    """A fresh store, closed when the test ends."""
    opened = await SqliteStore.open(lay_empty_database(database))
    yield opened
    await opened.close()
