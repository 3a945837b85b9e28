"""`kalito-mcp migrate`, killed at each step and run again, to a real server and back."""

import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Final

import anyio
import pytest

from kalito_mcp.domain.archive import FIELDS
from kalito_mcp.domain.transfer import MOVED
from kalito_mcp.runtime.crash_points import VARIABLE
from tests.campaign import LATER, first_of
from tests.cli.conftest import Invoke
from tests.everything import lay_everything
from tests.postgres import OWNER, new_database, shared_server
from tests.server import prepared
from tests.server.wire import clean_environment

# A row of most tables is a batch.
SMALL: Final = """
import sys
from kalito_mcp.cli.main import main
from kalito_mcp.upkeep import transfer

transfer._AT_ONCE = int(sys.argv.pop(1))
sys.argv[0] = "kalito-mcp"
main()
"""
GOES_ON: Final = ("transfer.written", "transfer.vectors")
"""Where the next run gets further. From the others it gets as far as this one."""

POINTS: Final = ("transfer.begun", "transfer.adding", *GOES_ON, "transfer.finished")


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("everything") / "memory.db"
    anyio.run(lay_everything, path)
    return path


def migrate(
    source: object,
    target: object,
    *,
    at_once: int = 2_000,
    point: str = "",
    direct: str = "",
    killed_after_s: float = 0,
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", SMALL, str(at_once), "migrate", "--database", str(source), "--to", str(target)]
    environment = clean_environment(**{VARIABLE: point, "KALITO_DATABASE_DIRECT": direct})
    options: dict[str, Any] = {"env": environment, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with prepared.start(command, **options) as running:
        if killed_after_s:
            with suppress(subprocess.TimeoutExpired):
                running.wait(killed_after_s)
            running.kill()
        out, err = running.communicate()
    return subprocess.CompletedProcess(command, running.returncode, out, err)


def until_done(source: object, target: object, points: Sequence[str], **options: Any) -> tuple[str, int]:
    """Run it, killed at each point, and there again until it gets past. What the last run says, and how often it was
    killed."""
    kills = 0
    for point in (*points, ""):
        while (done := migrate(source, target, point=point, **options)).returncode:
            assert done.returncode == -signal.SIGKILL, done.stderr
            kills += 1
            if point not in GOES_ON:
                break
    return done.stdout.partition("these have the same digests")[0], kills


@pytest.mark.parametrize(
    ("at_once", "back", "least_kills"), first_of([(200, (), 6), (1, POINTS, 60)]), ids=["there", "each table"]
)
def test_it_ends_the_same_wherever_it_is_killed_there_and_back(
    everything: Path, tmp_path: Path, at_once: int, back: Sequence[str], least_kills: int
) -> None:
    path = Path(shutil.copy(everything, tmp_path / "memory.db"))
    server, name = shared_server(), anyio.run(new_database)
    place, file = server.url(name), tmp_path / "back.db"
    tables, kills = until_done(path, place, POINTS, at_once=at_once, direct=server.url(name, OWNER))
    tables_of_file, kills_of_file = until_done(place, file, back, at_once=at_once)
    assert tables == tables_of_file
    assert tables.count("\n") == len(FIELDS) + len(MOVED)
    assert content(file) == content(path)
    assert kills + kills_of_file >= least_kills


@LATER
def test_it_ends_the_same_whenever_it_is_killed(everything: Path, tmp_path: Path) -> None:
    path = Path(shutil.copy(everything, tmp_path / "memory.db"))
    chance, place = random.Random(7), shared_server().url(anyio.run(new_database))
    for source, target in ((path, place), (place, tmp_path / "back.db")):
        ends = {
            migrate(source, target, at_once=1, killed_after_s=chance.uniform(0.01, 1)).returncode for _ in range(20)
        }
        assert -signal.SIGKILL in ends
        assert migrate(source, target).returncode == 0
    assert content(tmp_path / "back.db") == content(path)


def content(path: Path) -> list[list[tuple[object, ...]]]:
    with closing(sqlite3.connect(path)) as file:
        return [
            file.execute(f"SELECT * FROM {table} ORDER BY 1, 2").fetchall()
            for table in ("records", "sessions", "memory_edits", "tombstones", "audit_log", "given", "graph_edges")
        ]


def test_it_says_what_to_do_next_and_what_stays(everything: Path, tmp_path: Path, invoke: Invoke) -> None:
    path = Path(shutil.copy(everything, tmp_path / "memory.db"))
    (tmp_path / "memory.db.hooks").mkdir()
    done = invoke("migrate", "--database", str(path), "--to", str(tmp_path / "other.db"))
    assert done.code == 0, done.err
    assert f"set KALITO_DATABASE={tmp_path / 'other.db'}" in done.out
    assert f"{path}.hooks stays where it is; to go on with it, move it to {tmp_path / 'other.db.hooks'}" in done.out
    assert "snapshots" not in done.out
    name = anyio.run(new_database)
    done = invoke("migrate", "--database", str(path), "--to", shared_server().url(name))
    assert "set KALITO_DATABASE to the URL" in done.out
    assert [line for line in done.err.splitlines() if "rows moved" not in line] == [
        "comparing what is there already",
        "building the text index",
        "comparing both sides",
    ]
    listed = invoke("token", "list", KALITO_DATABASE=shared_server().url(name))
    assert "grant_1" in listed.out


def test_those_who_have_a_key_and_no_record_are_people_there(tmp_path: Path, invoke: Invoke) -> None:
    path, place = str(tmp_path / "memory.db"), shared_server().url(anyio.run(new_database))
    assert invoke("remember", "Hello.", KALITO_DATABASE=path).code == 0
    for command in (("user", "add", "ida"), ("space", "create", "crew"), ("space", "add", "crew", "jon")):
        assert invoke(*command, KALITO_DATABASE=path).code == 0
    assert invoke("migrate", "--database", path, "--to", place).code == 0
    there, before = (invoke("user", "list", KALITO_DATABASE=one).out for one in (place, path))
    assert there == before
    assert invoke("user", "add", "Ida", KALITO_DATABASE=place).code == 1
    assert invoke("user", "erase", "ida", "--yes", KALITO_DATABASE=place).code == 0
    assert "ida" not in invoke("user", "list", KALITO_DATABASE=place).out
    assert "ida" not in invoke("token", "list", KALITO_DATABASE=place).out


def test_where_the_memory_is_already_nothing_is_moved(everything: Path, tmp_path: Path, invoke: Invoke) -> None:
    path = Path(shutil.copy(everything, tmp_path / "memory.db"))
    done = invoke("migrate", "--database", str(path), "--to", os.path.relpath(path))
    assert (done.code, done.out) == (1, "")
    assert "is where the memory is already" in done.err


def test_a_memory_that_a_process_uses_is_not_moved(everything: Path, tmp_path: Path) -> None:
    path = Path(shutil.copy(everything, tmp_path / "memory.db"))
    with closing(sqlite3.connect(path)) as used:
        used.execute("SELECT count(*) FROM records").fetchall()
        done = migrate(path, tmp_path / "other.db")
    assert done.returncode == 1
    assert "is open" in done.stderr
    assert not (tmp_path / "other.db").exists()


def test_tables_that_are_missing_and_no_role_to_make_them_are_told(everything: Path, tmp_path: Path) -> None:
    path = Path(shutil.copy(everything, tmp_path / "memory.db"))
    done = migrate(path, shared_server().url("postgres"))
    assert done.returncode == 1
    assert "vector" in done.stderr or "KALITO_DATABASE_DIRECT" in done.stderr
