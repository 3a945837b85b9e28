"""Runs the command line in this process, on a database with a few records."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import anyio
import pytest

from kalito_mcp.cli.main import main
from kalito_mcp.domain.records import CreatePinRequest, NewMessage, Role
from kalito_mcp.wiring import open_memory
from tests.empty_database import lay_empty_database
from tests.server.wire import clean_environment


@dataclass(frozen=True)
class Outcome:
    """The result of a command."""

    code: int
    out: str
    err: str


class Terminal(StringIO):
    """Standard input with a person at the terminal."""

    def isatty(self) -> bool:
        return True


Invoke = Callable[..., Outcome]


@pytest.fixture
def invoke(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Invoke:
    """Runs a command like the shell, with a clean environment and these variables."""

    def run(*arguments: str, **environment: str) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["kalito-mcp", *arguments])
        monkeypatch.setattr("os.environ", clean_environment(**environment))
        with pytest.raises(SystemExit) as ended:
            main()
        written = capsys.readouterr()
        code = ended.value.code
        return Outcome(code if isinstance(code, int) else 0, written.out, written.err)

    return run


@pytest.fixture
def remembered(tmp_path: Path) -> Path:
    """A database with two sessions, three messages and a pin."""
    database = tmp_path / "memory.db"

    async def remember() -> None:
        async with open_memory(lay_empty_database(database)) as memory:
            await memory.record_messages("trip/oslo", [NewMessage(Role.USER, "We fly on May 3.")])
            await memory.create_pin(CreatePinRequest("trip/oslo", "Prefers the window seat."))
            await memory.record_messages("tax", [NewMessage(Role.USER, "Filed."), NewMessage(Role.ASSISTANT, "Good.")])
            await memory.settled()

    anyio.run(remember)
    return database
