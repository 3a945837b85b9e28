"""The hooks of hosts, as hosts call them: by a tool of the server that the host has started, or as a command.

A text that is told has a mark of its own, by which it is found in the database.
"""

import json
import re
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bench.report import ROOT
from bench.wire import ServerGone, WireServer, clean_environment, memory_command
from kalito_mcp.runtime.database_address import LocalFiles

LIMIT_S: Final = 0.3
"""The longest that a hook may take."""
_HOOK: Final = "from kalito_mcp.cli.hook import main; main()"
_START_S: Final = 60.0
_POLL_S: Final = 0.1
_LOST_S: Final = 30.0
_MARK: Final = re.compile(r"\[said (\w+)\]")
_SELECT_SAID: Final = """
SELECT r.text, p.id FROM records r JOIN sessions s ON s.key = r.session_key
LEFT JOIN projects p ON p.key = s.project_key WHERE r.type = 'message' AND r.client_key IS NOT NULL
"""


def marked(text: str, mark: str) -> str:
    """The text with its mark. The mark is a word."""
    return f"{text} [said {mark}]"


@dataclass(frozen=True, slots=True)
class Told:
    """What one hook did. `took_s` is as its host sees it, until the answer or the end of the process."""

    mark: str
    took_s: float
    answer: str = ""
    exit_code: int = 0
    error: str = ""

    @property
    def is_late(self) -> bool:
        """Whether the host waited longer than promised."""
        return self.took_s > LIMIT_S


class ToolHost:
    """A host that has started a server and calls its tool `hook_event`: one call at a time."""

    def __init__(self, database: Path, folder: Path, host: str = "claude-code") -> None:
        self._host = host
        self._database = database
        environment = clean_environment(folder) | {"KALITO_HOOKS": host}
        self._start: Callable[[], WireServer] = lambda: WireServer(
            memory_command(database), environment, folder / f"{host}.log"
        )
        self.server = self._start()
        self._calls = ThreadPoolExecutor(1)

    @property
    def process_id(self) -> int:
        """The process id of the server."""
        return self.server.process_id

    def greet(self) -> None:
        """Shake hands, and wait until the server has opened the memory and listens for commands."""
        self.server.shake_hands()
        self.server.call("search_memory", {"query": "zeppelin"})
        wait_until(lambda: place_of(self._database, self.process_id).exists(), _START_S)

    def start_again(self) -> None:
        """Start another server in place of one that is gone."""
        self.server.close()
        self.server = self._start()
        self.greet()

    def tell(self, event: str, payload: Mapping[str, str], mark: str) -> Told:
        """Tell an event, and wait for the answer. The error of a call that was cut off is `gone`."""
        started = time.perf_counter()
        arguments = {"host": self._host, "event": event, **payload}
        calling: Future[dict[str, Any]] = self._calls.submit(self.server.call, "hook_event", arguments)
        try:
            result = calling.result(_LOST_S)
        except ServerGone:
            return Told(mark, time.perf_counter() - started, error="gone")
        except RuntimeError as error:
            return Told(mark, time.perf_counter() - started, error=str(error))
        return Told(mark, time.perf_counter() - started, str(result["content"][0]["text"]))

    def ping(self) -> float:
        """The seconds of a call that does nothing."""
        started = time.perf_counter()
        self.server.request("ping")
        return time.perf_counter() - started

    def close(self) -> None:
        """End the server."""
        self.server.close()
        self._calls.shutdown()


class CommandHost:
    """A host that runs `kalito-hook HOST EVENT`."""

    def __init__(self, database: Path, folder: Path, host: str = "codex") -> None:
        self._host = host
        own = {"KALITO_DATABASE": str(database), "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": ""}
        self._environment = clean_environment(folder) | own

    def tell(self, event: str, payload: Mapping[str, str], mark: str) -> Told:
        """Tell an event, and wait for the end of the process."""
        command = [sys.executable, "-c", _HOOK, self._host, event]
        given = json.dumps(payload).encode()
        started = time.perf_counter()
        done = subprocess.run(command, input=given, env=self._environment, cwd="/", capture_output=True, check=False)
        took_s = time.perf_counter() - started
        return Told(mark, took_s, done.stdout.decode(), done.returncode, done.stderr.decode())

    def bare_process(self) -> float:
        """The seconds of a Python process that does nothing."""
        started = time.perf_counter()
        subprocess.run([sys.executable, "-c", ""], env=self._environment, cwd="/", check=True)
        return time.perf_counter() - started


def place_of(database: Path, process_id: int) -> Path:
    """Where a server says where it listens."""
    return LocalFiles(database).hooks / f"server-{process_id}.json"


def wait_until(is_so: Callable[[], bool], patience_s: float) -> bool:
    """Whether it became so in this time."""
    until = time.monotonic() + patience_s
    while not is_so():
        if time.monotonic() > until:
            return False
        time.sleep(_POLL_S)
    return True


def stored(database: Path) -> dict[str, list[str | None]]:
    """The projects of the messages with each mark: one for each message."""
    found: dict[str, list[str | None]] = {}
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        for text, project in connection.execute(_SELECT_SAID):
            for mark in _MARK.findall(text):
                found.setdefault(mark, []).append(project)
    return found


def kept_for_later(database: Path) -> int:
    """How many events the spool has, also those that a server is about to record."""
    with suppress(OSError):
        return sum(not file.name.endswith(".broken") for file in LocalFiles(database).spool.iterdir())
    return 0


def not_once(database: Path, marks: Iterable[str]) -> Counter[str]:
    """How many of the marks are `lost` or `doubled`."""
    found = stored(database)
    counts = [len(found.get(mark, [])) for mark in marks]
    return Counter({"lost": counts.count(0), "doubled": sum(count > 1 for count in counts)})
