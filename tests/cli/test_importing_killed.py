"""An import that is killed or interrupted goes on at the next run, and ends as if nothing had happened."""

import hashlib
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from tests.exchange.files import Transcript
from tests.server import prepared
from tests.server.wire import clean_environment

SESSIONS, MESSAGES = 6, 60
SELECT_ALL = """
SELECT s.id, r.seq, r.role, r.text, r.client_key, r.created_at, p.id FROM records r
JOIN sessions s ON s.key = r.session_key LEFT JOIN projects p ON p.key = r.project_key
WHERE r.type = 'message' ORDER BY s.id, r.seq
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("home")
    for number in range(SESSIONS):
        told = Transcript(f"{number:08d}-3c1e-4d44-9a52-{number:012d}", cwd=f"/home/ann/{number}")
        for turn in range(MESSAGES // 2):
            told.user(f"Where is boat {turn} of harbour {number}?")
            told.assistant(f"Boat {turn} is at pier {turn % 7}.")
        told.write(folder / ".claude" / "projects" / "p")
    return folder


def start(database: Path, home: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "kalito_mcp", "import", "claude-code", "--database", str(database)]
    environment = clean_environment(HOME=str(home))
    return prepared.start(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(database: Path, home: Path) -> str:
    with start(database, home) as running:
        out, err = running.communicate()
    assert running.returncode == 0, err
    return out


def digest(database: Path) -> str:
    with closing(sqlite3.connect(database)) as connection:
        return hashlib.sha256(repr(connection.execute(SELECT_ALL).fetchall()).encode()).hexdigest()


def stored_messages(database: Path) -> int:
    """How many messages another connection sees; 0 before there is a table."""
    if not database.exists():
        return 0
    try:
        with closing(sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)) as connection:
            [[count]] = connection.execute("SELECT count(*) FROM records WHERE type = 'message'")
            return int(count)
    except sqlite3.Error:
        return 0


def stop_within(running: subprocess.Popen[str], database: Path, with_signal: int, chance: random.Random) -> None:
    """Send the signal when some random number of messages is stored, and a random moment has passed."""
    enough = chance.randrange(1, SESSIONS * MESSAGES)
    while running.poll() is None and stored_messages(database) < enough:
        pass
    time.sleep(chance.uniform(0, 0.02))
    if running.poll() is None:
        running.send_signal(with_signal)


def test_a_killed_import_ends_like_an_undisturbed_one(tmp_path: Path, home: Path) -> None:
    finish(tmp_path / "undisturbed.db", home)
    chance = random.Random(7)
    database = tmp_path / "killed.db"
    ends: list[int | None] = []
    for _ in range(4):
        with start(database, home) as running:
            stop_within(running, database, signal.SIGKILL, chance)
        ends.append(running.returncode)
    assert -signal.SIGKILL in ends
    finish(database, home)
    assert stored_messages(database) == SESSIONS * MESSAGES
    assert digest(database) == digest(tmp_path / "undisturbed.db")


@pytest.mark.skipif(os.name == "nt", reason="a process there gets no SIGINT of its own")
def test_an_interrupted_import_says_what_it_did_and_goes_on(tmp_path: Path, home: Path) -> None:
    database = tmp_path / "memory.db"
    with start(database, home) as running:
        while not stored_messages(database) and running.poll() is None:
            pass
        running.send_signal(signal.SIGINT)
        out, err = running.communicate()
    assert running.returncode == 130
    assert out.endswith("stopped; run it again to go on\n")
    assert "Traceback" not in err
    again = finish(database, home)
    assert "imported" in again
    assert stored_messages(database) == SESSIONS * MESSAGES
