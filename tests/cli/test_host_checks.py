"""`kalito-mcp doctor` of hosts: a prompt goes the whole way, through real processes, or the broken link is named."""

import json
import os
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from kalito_mcp.cli import host_checks
from kalito_mcp.cli.host_checks import SESSION
from kalito_mcp.runtime.database_address import LocalFiles
from kalito_mcp.switch import FOR_EVER, Switch, write_switch
from tests.campaign import first_of
from tests.cli.conftest import Invoke, Outcome
from tests.cli.test_doctor import findings
from tests.cli.test_hosts import PLUGIN, UNSET

ROOT = Path(__file__).parents[2]
PROGRAM = """#!/bin/sh
PYTHONPATH={root} exec {python} -c "import sys; from kalito_mcp.cli.{module} import main; main()" "$@"
"""
WHOLE = ["configuration", "program", "server", "hook", "database", "clean-up"]


class Installed:
    """A home folder with hosts that kalito is installed in, and programs of kalito that run this code."""

    def __init__(self, folder: Path, invoke: Invoke) -> None:
        self.path = folder / "home"
        self.settings = self.path / ".claude" / "settings.json"
        self.servers = self.path / ".claude.json"
        self.codex = self.path / ".codex" / "hooks.json"
        self.programs = folder / "programs"
        self.database = self.path / ".local" / "share" / "kalito" / "memory.db"
        self._invoke = invoke
        self._python = sys.executable
        self.path.mkdir()
        self.programs.mkdir()
        self.add_program("kalito-mcp", "main")
        self.add_program("kalito-hook", "hook")

    def add_program(self, name: str, module: str) -> None:
        self.write_program(name, PROGRAM.format(root=ROOT, python=self._python, module=module))

    def write_program(self, name: str, text: str) -> None:
        program = self.programs / name
        program.write_text(text)
        program.chmod(0o755)

    def run(self, *arguments: str, PATH: str = "/usr/bin:/bin") -> Outcome:  # noqa: N803 - the variable
        return self._invoke(*arguments, HOME=str(self.path), PATH=PATH, **UNSET)

    def broken(self, *arguments: str) -> tuple[str, str]:
        """The one broken link that doctor names, and what it says of it."""
        outcome = self.run("doctor", *arguments)
        [line] = [line.removeprefix(" FAILED  ") for line in outcome.out.splitlines() if line.startswith(" FAILED")]
        assert (outcome.code, outcome.err) == (1, "")
        host_and_link, _, detail = line.partition(": ")
        return host_and_link, detail

    def change(self, file: Path, change: Any) -> None:
        document = json.loads(file.read_text())
        change(document)
        file.write_text(json.dumps(document))


@pytest.fixture
def installed(tmp_path: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> Installed:
    installed = Installed(tmp_path, invoke)
    monkeypatch.setattr(sys, "executable", str(installed.programs / "python"))
    assert installed.run("install", "--yes", "claude-code", "codex", "claude-desktop").code == 0
    return installed


def test_a_prompt_goes_the_whole_way_and_nothing_of_it_is_left(installed: Installed) -> None:
    outcome = installed.run("doctor")
    assert (outcome.code, outcome.err) == (0, "")
    found = findings(outcome.out)
    for link in WHOLE:
        assert found[f"Claude Code, {link}"] == found[f"Codex, {link}"] == "ok"
    assert found["Codex, hook program"] == found["Claude Desktop, server"] == "ok"
    assert "Claude Code, hook: UserPromptSubmit calls hook_event" in outcome.out
    assert f"Codex, hook: UserPromptSubmit runs {installed.programs / 'kalito-hook'} codex" in outcome.out
    assert f"the prompt is in {installed.database}" in outcome.out
    assert "Codex, in the program itself: run /hooks and trust" in outcome.out

    with closing(sqlite3.connect(installed.database)) as other:
        assert other.execute("SELECT id, hidden_count FROM sessions").fetchall() == [(SESSION, 2)]
        assert not other.execute("SELECT 1 FROM records WHERE text LIKE '%doctor%'").fetchall()
        assert not other.execute("SELECT 1 FROM projects").fetchall()
    assert not list(LocalFiles(installed.database).spool.glob("*"))
    assert not LocalFiles(installed.database).trace("claude-code").exists()
    assert not LocalFiles(installed.database).trace("codex").exists()


@pytest.mark.campaign
def test_the_plugin_is_checked_as_its_files_say(installed: Installed) -> None:
    installed.change(installed.settings, lambda document: document.update(json.loads(PLUGIN)))
    link, detail = installed.broken("claude-code")
    assert (link, "its plugin is enabled, too" in detail) == ("Claude Code, configuration", True)
    installed.run("uninstall", "--yes")
    link, detail = installed.broken()
    assert (link, "is not on the PATH, where the plugin looks" in detail) == ("Claude Code, program", True)
    outcome = installed.run("doctor", PATH=f"{installed.programs}:/usr/bin:/bin")
    assert (outcome.code, outcome.err) == (0, "")
    assert {findings(outcome.out)[f"Claude Code, {link}"] for link in WHOLE} == {"ok"}
    assert f"Claude Code, configuration: {installed.settings}\n" in outcome.out


@pytest.mark.campaign
def test_when_a_host_was_heard_last_stays(installed: Installed) -> None:
    trace = LocalFiles(installed.database).trace("codex")
    trace.parent.mkdir(parents=True)
    trace.touch()
    os.utime(trace, (1_790_000_000, 1_790_000_000))
    assert installed.run("doctor", "codex").code == 0
    assert trace.stat().st_mtime == 1_790_000_000


def test_a_database_that_is_named_is_checked_alone(installed: Installed, tmp_path: Path) -> None:
    outcome = installed.run("doctor", "--database", str(tmp_path / "other.db"))
    assert outcome.code == 0
    assert not [check for check in findings(outcome.out) if check.startswith("Codex")]
    assert not installed.database.exists()


def test_without_an_installed_host_there_is_nothing_to_check(installed: Installed) -> None:
    installed.run("uninstall", "--yes")
    outcome = installed.run("doctor")
    assert outcome.code == 0
    assert not [check for check in findings(outcome.out) if "," in check]
    link, detail = installed.broken("cursor")
    assert (link, "has no entry of kalito; run `kalito-mcp install cursor`" in detail) == (
        "Cursor, configuration",
        True,
    )


def test_a_program_that_is_gone_or_cannot_be_executed_is_named(installed: Installed) -> None:
    hook = installed.programs / "kalito-hook"
    hook.chmod(0o644)
    link, detail = installed.broken("codex")
    assert (link, "cannot be executed" in detail) == ("Codex, hook program", True)
    (installed.programs / "kalito-mcp").unlink()
    link, detail = installed.broken("codex")
    assert (link, "is not there; run `kalito-mcp install` again" in detail) == ("Codex, program", True)


def test_a_server_that_does_not_start_is_named_with_its_last_words(installed: Installed) -> None:
    installed.write_program("kalito-mcp", "#!/bin/sh\necho 'kalito-mcp: no memory today' >&2\nexit 3\n")
    link, detail = installed.broken("claude-desktop")
    assert link == "Claude Desktop, server"
    assert detail.startswith("it does not start: ") and detail.endswith("(no memory today)")


def test_a_pause_is_named_and_nothing_is_sent(installed: Installed) -> None:
    write_switch(LocalFiles(installed.database).switch, Switch(FOR_EVER))
    link, detail = installed.broken("codex")
    assert (link, "`kalito-mcp resume`" in detail) == ("Codex, memory", True)
    assert not installed.database.exists()


def test_a_folder_in_which_nothing_is_remembered_is_named(installed: Installed) -> None:
    write_switch(LocalFiles(installed.database).switch, Switch(None, (str(Path.cwd()),)))
    link, detail = installed.broken("codex")
    assert (link, f"nothing is remembered in {Path.cwd()}" in detail) == ("Codex, memory", True)


def test_a_hook_and_a_server_of_two_databases_are_named(installed: Installed, tmp_path: Path) -> None:
    config = installed.codex.with_name("config.toml")
    other = tmp_path / "other.db"
    config.write_text(config.read_text().replace('["serve"]', f'["serve", "--database", "{other}"]'))
    link, detail = installed.broken("codex")
    assert (link, f"reports to {installed.database}, but the server remembers in {other}" in detail) == (
        "Codex, hook",
        True,
    )


@pytest.mark.parametrize(
    ("script", "link", "said"),
    first_of(
        [
            ("exit 0", "hook", "but the prompt is not in"),
            ("echo 'kalito-hook: OSError: no space' >&2", "hook", "kalito-hook: OSError: no space"),
            ("echo oops >&2; exit 7", "hook", "it ends with 7: oops"),
            (
                'cat > "$HOME/.local/share/kalito/memory.db.hooks/spool/1.broken"',
                "database",
                "cannot record the prompt",
            ),
        ]
    ),
)
def test_a_hook_whose_prompt_does_not_arrive_is_named(
    installed: Installed, monkeypatch: pytest.MonkeyPatch, script: str, link: str, said: str
) -> None:
    monkeypatch.setattr(host_checks, "_ARRIVES_WITHIN_S", 0.5)
    spool = LocalFiles(installed.database).spool
    spool.mkdir(parents=True)
    installed.write_program("kalito-hook", f"#!/bin/sh\n{script}\n")
    named, detail = installed.broken("codex")
    assert (named, said in detail) == (f"Codex, {link}", True)
    assert not list(spool.iterdir())


@pytest.mark.campaign
def test_hosts_that_share_a_file_and_those_that_name_no_folder_are_checked_too(installed: Installed) -> None:
    installed.run("uninstall", "--yes")
    installed.run("install", "--yes", "vscode", "windsurf")
    outcome = installed.run("doctor")
    assert (outcome.code, outcome.err) == (0, "")
    found = findings(outcome.out)
    assert found["VS Code, clean-up"] == found["Windsurf, clean-up"] == "ok"
    assert not [check for check in found if check.startswith("Copilot")]
    installed.change(installed.path / ".config" / "Code" / "User" / "mcp.json", lambda document: document.clear())
    link, detail = installed.broken()
    assert (link, "has no entry of kalito" in detail) == ("VS Code, configuration", True)


def test_a_server_that_remembers_elsewhere_than_its_entry_says_is_named(
    installed: Installed, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(host_checks, "_LISTENS_WITHIN_S", 1.0)
    program = installed.programs / "kalito-mcp"
    line = f"#!/bin/sh\nexport KALITO_DATABASE={tmp_path / 'other.db'}\n"
    installed.write_program("kalito-mcp", program.read_text().replace("#!/bin/sh\n", line))
    link, detail = installed.broken("codex")
    assert (link, f"hooks do not find it in {LocalFiles(installed.database).hooks}" in detail) == (
        "Codex, server",
        True,
    )


@pytest.mark.parametrize(
    ("change", "broken", "said"),
    [
        (
            lambda one: one.settings.write_text('{"hooks": oops}'),
            "Claude Code, configuration",
            "settings.json: line 1, column 11",
        ),
        (
            lambda one: one.change(one.settings, lambda document: document.update(disableAllHooks=True)),
            "Claude Code, configuration",
            "switches all hooks off",
        ),
        (
            lambda one: one.change(
                one.servers, lambda document: document["mcpServers"]["kalito"].update(disabled=True)
            ),
            "Claude Code, configuration",
            "switched off",
        ),
        (
            lambda one: one.change(one.servers, lambda document: document["mcpServers"]["kalito"].pop("env")),
            "Claude Code, hook",
            "run `kalito-mcp install claude-code` again",
        ),
    ],
)
def test_what_a_host_was_told_otherwise_is_named(
    installed: Installed, change: Callable[[Installed], object], broken: str, said: str
) -> None:
    change(installed)
    link, detail = installed.broken("claude-code")
    assert (link, said in detail) == (broken, True)
