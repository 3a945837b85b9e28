"""A server whose database cannot be opened, or not be written, tries again: what was in the way has often gone."""

import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Final, cast

import anyio
import pytest

from kalito_mcp.errors import StorageBusy, StorageError
from kalito_mcp.memory import Memory
from kalito_mcp.server import memory_handle
from kalito_mcp.server.memory_handle import MemoryHandle
from tests.bridge.machines import hook, said, text_of, texts_at, until
from tests.campaign import first_of
from tests.server.wire import clean_environment, served
from tests.storage.conftest import Disk, disk

__all__ = ["disk"]  # the fixture
IMPATIENT: Final = {"KALITO_MEMORY_BUSY_TIMEOUT_S": "0.2"}


class _Opened:
    """Stands for a memory: whether it can be written is all that matters here."""

    def __init__(self, *, is_read_only: bool) -> None:
        self.is_read_only = is_read_only
        self.is_closed = False


class _Openings:
    """Opens what it is given, one after the other; the last one again and again."""

    def __init__(self, *outcomes: Exception | _Opened) -> None:
        self._outcomes = list(outcomes)
        self.count = 0

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Memory]:
        self.count += 1
        outcome = self._outcomes.pop(0) if len(self._outcomes) > 1 else self._outcomes[0]
        await anyio.sleep(0.01)
        if isinstance(outcome, Exception):
            raise outcome
        yield cast("Memory", outcome)
        outcome.is_closed = True


@pytest.fixture
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_handle, "PAUSE_S", 0.01)
    monkeypatch.setattr(memory_handle, "_LONGER_PAUSE_S", 0.0)


@pytest.mark.anyio
@pytest.mark.usefixtures("_quick")
async def test_the_next_call_opens_the_memory_that_could_not_be_opened() -> None:
    found = _Opened(is_read_only=False)
    openings = _Openings(StorageBusy("locked"), StorageBusy("still locked"), found)
    handle = MemoryHandle(openings.open, None)
    async with handle.open():
        with pytest.raises(StorageBusy, match=r"^locked"):
            await handle.memory()
        with pytest.raises(StorageBusy, match="still locked"):
            await handle.memory()
        for _ in range(3):
            assert await handle.memory() is cast("Memory", found)
        assert not found.is_closed
    assert openings.count == 3
    assert found.is_closed


@pytest.mark.anyio
@pytest.mark.usefixtures("_quick")
async def test_calls_at_once_share_one_attempt() -> None:
    openings = _Openings(StorageBusy("locked"))
    handle = MemoryHandle(openings.open, None)

    async def call() -> None:
        with pytest.raises(StorageBusy):
            await handle.memory()

    with pytest.raises(StorageBusy):
        async with handle.open():
            await call()
            async with anyio.create_task_group() as tasks:
                for _ in range(20):
                    tasks.start_soon(call)
    assert openings.count == 2


@pytest.mark.anyio
@pytest.mark.usefixtures("_quick")
async def test_a_failure_that_is_not_kalitos_own_is_said_and_ends_nothing() -> None:
    found = _Opened(is_read_only=False)
    handle = MemoryHandle(_Openings(FileNotFoundError(2, "No such file", "/gone"), found).open, None)
    async with handle.open():
        with pytest.raises(StorageError, match="the memory cannot be opened: No such file: /gone"):
            await handle.memory()
        assert await handle.memory() is cast("Memory", found)


@pytest.mark.anyio
@pytest.mark.usefixtures("_quick")
async def test_a_memory_that_could_only_be_read_is_opened_for_writing_when_that_is_possible() -> None:
    reading, again, writing = (_Opened(is_read_only=one) for one in (True, True, False))
    handle = MemoryHandle(_Openings(reading, StorageBusy("locked"), again, writing).open, None)
    async with handle.open():
        assert [await handle.memory() for _ in range(5)] == [reading, reading, reading, writing, writing]
        assert again.is_closed
        assert not reading.is_closed  # calls may be using it
    assert reading.is_closed
    assert writing.is_closed


def filled(database: Path) -> bytes:
    """The bytes of a database with one note."""
    database.parent.mkdir(exist_ok=True)
    command = [sys.executable, "-m", "kalito_mcp", "remember", "the first lantern"]
    subprocess.run(command, env=clean_environment(KALITO_DATABASE=str(database)), check=True, capture_output=True)
    return database.read_bytes()


def damaged(database: Path) -> Callable[[], object]:
    content = database.read_bytes()
    database.write_bytes(b"garbage" * 5_000)
    return lambda: database.write_bytes(content)


def of_a_newer_release(database: Path) -> Callable[[], object]:
    content = database.read_bytes()
    with closing(sqlite3.connect(database)) as opened:
        opened.execute("PRAGMA user_version = 9999")
    return lambda: database.write_bytes(content)


def not_mounted(database: Path) -> Callable[[], object]:
    away = database.parent.rename(database.parent.with_name("away"))
    database.parent.write_text("a file in its place")

    def mount() -> None:
        database.parent.unlink()
        away.rename(database.parent)

    return mount


def locked(database: Path) -> Callable[[], object]:
    holder = sqlite3.connect(database, isolation_level=None)
    holder.execute("PRAGMA locking_mode = EXCLUSIVE")
    holder.execute("BEGIN EXCLUSIVE")
    holder.execute("CREATE TABLE held (x)")

    def end() -> None:
        holder.execute("ROLLBACK")
        holder.close()

    return end


def a_folder(database: Path) -> Callable[[], object]:
    away = database.rename(database.with_name("away"))
    database.mkdir()

    def replace() -> None:
        database.rmdir()
        away.rename(database)

    return replace


HINDRANCES: Final[dict[str, tuple[Callable[[Path], Callable[[], object]], str]]] = {
    "damaged, and restored": (damaged, "storage_damaged"),
    "of a newer release, and restored": (of_a_newer_release, "schema_too_new"),
    "on a drive that is not mounted": (not_mounted, "storage_read_only: cannot create"),
    "locked by another program": (locked, "storage_busy"),
    "a folder": (a_folder, "storage_damaged"),
}


@pytest.mark.parametrize("name", first_of(HINDRANCES, 2))
def test_a_server_serves_as_soon_as_what_was_in_the_way_of_its_database_has_gone(tmp_path: Path, name: str) -> None:
    hinder, code = HINDRANCES[name]
    database = tmp_path / "memory" / "memory.db"
    filled(database)
    end = hinder(database)
    with served(tmp_path / "elsewhere", KALITO_DATABASE=str(database), **IMPATIENT) as wire:
        for number in (1, 2):
            assert text_of(said(wire, number, "search_memory", query="lantern")).startswith(code)
        end()
        assert "the first lantern" in text_of(said(wire, 3, "search_memory", query="lantern"))
        assert not said(wire, 4, "remember", type="note", text="the second lantern")["isError"]
        wire.close_stdin()
        assert wire.exit_code() == 0


def test_what_hooks_report_meanwhile_is_taken_in_without_any_call(tmp_path: Path) -> None:
    database = tmp_path / "memory" / "memory.db"
    filled(database)
    end = damaged(database)
    with served(database) as wire:
        assert text_of(said(wire, 1, "search_memory", query="lantern")).startswith("storage_damaged")
        prompt = {"session_id": "c", "prompt": "The second lantern is amber.", "cwd": "/"}
        assert hook(database.parent, "claude-code", "UserPromptSubmit", prompt) == ""
        end()
        until(lambda: "The second lantern is amber." in texts_at(database.parent), "it is recorded")


def test_on_a_full_disk_a_server_reads_and_it_records_as_soon_as_there_is_room(disk: Disk, tmp_path: Path) -> None:
    filled(disk.database)
    ballast = disk.fill()
    with served(tmp_path / "elsewhere", KALITO_DATABASE=str(disk.database)) as wire:
        assert "the first lantern" in text_of(said(wire, 1, "search_memory", query="lantern"))
        context = text_of(said(wire, 2, "build_context", query="lantern"))
        assert "the first lantern" in context
        assert text_of(said(wire, 3, "remember", type="note", text="the second lantern")).startswith("storage_full")
        ballast.unlink()
        until(
            lambda: not said(wire, 4, "remember", type="note", text="the second lantern")["isError"], "it records again"
        )
        assert "the second lantern" in text_of(said(wire, 5, "search_memory", query="second lantern"))


@pytest.mark.campaign
def test_on_a_full_disk_a_command_searches(disk: Disk) -> None:
    filled(disk.database)
    disk.fill()
    command = [sys.executable, "-m", "kalito_mcp", "search", "lantern"]
    outcome = subprocess.run(
        command, env=clean_environment(KALITO_DATABASE=str(disk.database)), check=True, capture_output=True, text=True
    )
    assert "the first lantern" in outcome.stdout


def test_a_server_started_in_a_folder_that_was_deleted_serves_what_is_personal(tmp_path: Path) -> None:
    database = tmp_path / "memory" / "memory.db"
    filled(database)
    gone = tmp_path / "gone"
    gone.mkdir()
    code = f"import os; os.chdir({str(gone)!r}); os.rmdir({str(gone)!r})"
    with served(database, code=code, KALITO_PROJECT="") as wire:
        assert "the first lantern" in text_of(said(wire, 1, "search_memory", query="lantern"))
