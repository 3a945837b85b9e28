"""The command line as a whole: what it prints, what it imports, how it fails."""

import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from kalito_mcp.cli.commands import commands
from kalito_mcp.version import __version__
from tests.cli.conftest import Invoke
from tests.meaning_package import MEANING
from tests.server.wire import clean_environment

HEAVY = ("mcp", "mcp_types", "pydantic", "httpx2", "starlette", "uvicorn", "numpy")
COMMANDS = (
    "serve", "demo", "stats", "doctor", "snapshot", "reindex",
    "remember", "search", "show", "history", "edit", "revert", "forget", "restore", "purge", "tasks",
)  # fmt: skip


def imported_by(*arguments: str, database: Path) -> set[str]:
    """The modules that a command has imported when it ends."""
    environment = clean_environment(KALITO_DATABASE=str(database), **MEANING)
    # Any variable that is a setting is checked with pydantic.
    del environment["KALITO_MEMORY_ZONE"]
    result = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "kalito_mcp", *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr[-2000:]
    names = [row.rpartition("|")[2].strip() for row in result.stderr.splitlines() if row.startswith("import time:")]
    assert "click" in names
    return set(names)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["serve", "--help"],
        ["stats"],
        ["doctor", "--deep"],
        ["snapshot", "list"],
    ],
)
def test_a_command_that_does_not_serve_never_imports_the_protocol(remembered: Path, arguments: list[str]) -> None:
    names = imported_by(*arguments, database=remembered)
    assert not {name.partition(".")[0] for name in names} & set(HEAVY)


def test_stats_imports_no_event_loop_no_rule_and_no_policy_that_nobody_set(remembered: Path) -> None:
    names = imported_by("stats", "--json", database=remembered)
    assert not names & {"asyncio", "anyio", "aiosqlite", "logging", "numpy", "pydantic"}
    ours = {name.split(".")[1] for name in names if name.startswith("kalito_mcp.")}
    known = "__main__ cli config domain errors ports reading runtime storage text version"
    assert ours <= set(known.split())
    rules = {"kalito_mcp.storage.sqlite.database", "kalito_mcp.config.settings", "kalito_mcp.runtime.long_texts"}
    assert not names & rules


def test_the_help_names_every_command_and_imports_none(invoke: Invoke) -> None:
    outcome = invoke("--help")
    assert outcome.code == 0
    for command in COMMANDS:
        assert f"  {command} " in outcome.out
    first = outcome.out.partition("Most used:\n")[2].splitlines()[:6]
    assert [line.split()[0] for line in first] == ["install", "import", "open", "search", "profile", "pause"]
    assert invoke("-h").out == outcome.out
    lines = [line for line in outcome.out.partition("Most used:")[2].splitlines() if line.startswith("  ")]
    assert len(lines) == len(commands.list_commands(click.Context(commands))), "one line for each command"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("arguments", [["--help"], ["stats"], ["search", "seat"], ["export", "-"]])
def test_output_that_cannot_be_written_is_a_sentence_and_no_traceback(remembered: Path, arguments: list[str]) -> None:
    environment = clean_environment(KALITO_DATABASE=str(remembered))
    with Path("/dev/full").open("wb") as full:
        ran = subprocess.run(
            [sys.executable, "-m", "kalito_mcp", *arguments],
            env=environment, stdout=full, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert (ran.returncode, ran.stderr.splitlines()[-1]) == (
        1,
        "kalito-mcp: cannot write the output: No space left on device",
    )
    assert "Traceback" not in ran.stderr


def test_every_command_explains_itself(invoke: Invoke) -> None:
    for command in (*COMMANDS, *(f"snapshot {one}" for one in ("save", "list", "show", "restore", "diff"))):
        outcome = invoke(*command.split(), "--help")
        assert outcome.code == 0
        assert outcome.out.startswith(f"Usage: kalito-mcp {command}")


def test_the_version_is_the_packages(invoke: Invoke) -> None:
    assert invoke("--version").out == f"kalito-mcp, version {__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["sevre"], "no command 'sevre'; did you mean 'serve'?"),
        (["project", "lst"], "did you mean 'list'?"),
        (["stats", "--sesion", "x"], "No such option"),
        (["serve", "--port", "70000"], "70000 is not in the range"),
        (["serve", "--transport", "carrier-pigeon"], "is not one of 'stdio', 'http', 'sse'"),
    ],
)
def test_a_mistyped_command_line_is_exit_code_2_and_points_to_the_help(
    invoke: Invoke, arguments: list[str], words: str
) -> None:
    outcome = invoke(*arguments)
    assert (outcome.code, outcome.out) == (2, "")
    assert words in outcome.err
    assert "--help" in outcome.err


@pytest.mark.parametrize("command", ["stats", "doctor"])
@pytest.mark.parametrize(
    ("database", "words"),
    [
        ("x" * 300, "cannot be reached: File name too long"),
        ("~nobody-of-that-name/memory.db", "no such user; write the whole path"),
        ("", "cannot be a database; name a file"),
    ],
)
def test_a_path_that_cannot_be_one_is_said_so_in_one_line(
    invoke: Invoke, command: str, database: str, words: str
) -> None:
    outcome = invoke(command, "--database", database)
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err.startswith("kalito-mcp: ")
    assert words in outcome.err
    assert outcome.err.count("\n") == 1


@pytest.mark.parametrize("command", ["stats", "reindex"])
@pytest.mark.parametrize("kind", ["a folder", "no database", "below a file"])
def test_a_file_that_is_no_database_is_refused_in_one_line_and_not_changed(
    invoke: Invoke, remembered: Path, command: str, kind: str
) -> None:
    path = remembered.with_name("other.db")
    if kind == "a folder":
        path.mkdir()
    elif kind == "no database":
        path.write_bytes(b"Dear diary, " * 1000)
    else:
        path = remembered / "memory.db"
    before = path.read_bytes() if path.is_file() else b""
    outcome = invoke(command, "--database", str(path))
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err.startswith(("kalito-mcp: ", f"kalito-mcp: {path}"))
    assert str(path) in outcome.err
    assert outcome.err.count("\n") == 1
    assert (path.read_bytes() if path.is_file() else b"") == before


def test_a_closed_pipe_is_no_error(remembered: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    result = subprocess.run(
        [sys.executable, "-m", "kalito_mcp", "stats"],
        env=clean_environment(KALITO_DATABASE=str(remembered)),
        stdout=write,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(write)
    assert b"Traceback" not in result.stderr
