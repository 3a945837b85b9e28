"""`kalito-mcp install`, `uninstall` and `status`, on a home folder with Claude Code."""

import json
import os
import sys
from pathlib import Path

import pytest

from kalito_mcp.capture.spool import Spool
from kalito_mcp.hosts.known import hosts_named
from kalito_mcp.hosts.places import Places
from kalito_mcp.hosts.plans import hook_path
from kalito_mcp.runtime.database_address import LocalFiles
from tests.cli.conftest import Invoke, Outcome, Terminal

UNSET = dict.fromkeys(
    ["CODEX_HOME", "COPILOT_HOME", "GEMINI_CLI_HOME", "CLINE_DIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME"], ""
)
PLUGIN = '{"enabledPlugins": {"kalito@kalito-mcp": true}}'
SETTINGS = '{\n  "model": "opus"\n}\n'


class Home:
    """A home folder, and an installation of kalito whose programs start."""

    def __init__(self, folder: Path, invoke: Invoke) -> None:
        self.path = folder / "home"
        self.claude = self.path / ".claude"
        self.servers = self.path / ".claude.json"
        self.settings = self.claude / "settings.json"
        self.programs = folder / "programs"
        self._invoke = invoke
        self.claude.mkdir(parents=True)
        self.settings.write_text(SETTINGS)
        self.programs.mkdir()
        self.add_program("kalito-mcp")
        self.add_program("kalito-hook")

    def add_program(self, name: str) -> None:
        program = self.programs / name
        program.write_text("#!/bin/sh\necho 1\n")
        program.chmod(0o755)

    def run(self, *arguments: str, **variables: str) -> Outcome:
        return self._invoke(*arguments, **{"HOME": str(self.path), "PATH": "/usr/bin:/bin", **UNSET, **variables})

    def files(self) -> dict[str, bytes]:
        return {str(path): path.read_bytes() for path in self.path.rglob("*") if path.is_file()}


@pytest.fixture
def home(tmp_path: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> Home:
    home = Home(tmp_path, invoke)
    monkeypatch.setattr(sys, "executable", str(home.programs / "python"))
    return home


def test_installing_shows_the_changes_and_what_to_do_next(home: Home) -> None:
    outcome = home.run("install", "--yes")
    assert outcome.code == 0
    assert "found: Claude Code" in outcome.out
    assert "not found: codex, cursor" in outcome.out
    assert "  ~/.claude.json (new): adds server kalito\n  ~/.claude/settings.json: adds 8 hooks\n" in outcome.out
    assert '    +      "type": "stdio",' not in outcome.out
    assert "wrote ~/.claude/settings.json; as it was before: ~/.claude/settings.json.kalito-backup" in outcome.out
    assert "Claude Code: start a new conversation; /mcp lists kalito" in outcome.out
    assert "to undo: kalito-mcp uninstall claude-code" in outcome.out
    assert str(home.programs / "kalito-mcp") in home.servers.read_text()
    assert '"KALITO_HOOKS": "claude-code"' in home.servers.read_text()
    assert "hook_event" in home.settings.read_text()


def test_installing_twice_changes_nothing_the_second_time(home: Home) -> None:
    home.run("install", "--yes")
    before = home.files()
    assert "Claude Code is installed already; nothing to change" in home.run("install").out
    assert home.files() == before


def test_uninstalling_gives_the_folder_of_before(home: Home) -> None:
    before = home.files()
    home.run("install", "--yes")
    outcome = home.run("uninstall", "--yes")
    assert (outcome.code, home.files()) == (0, before)
    assert "restored ~/.claude/settings.json" in outcome.out
    assert "nothing to take out" in home.run("uninstall").out


def test_a_dry_run_writes_nothing_and_shows_a_sentence_for_each_file_and_then_the_lines(home: Home) -> None:
    before = home.files()
    whole, short = home.run("install", "--dry-run").out, home.run("install").out
    assert "nothing was written (--dry-run)" in whole
    assert home.files() == before
    sentences, _, _ = short.partition("--dry-run shows the lines that change")
    assert whole.startswith(sentences)
    assert len(short.splitlines()) < 10
    assert '    +      "type": "stdio",' in whole.removeprefix(sentences)
    assert "    @@ line 1 @@" in whole


def test_hooks_that_a_host_was_told_not_to_run_are_named(home: Home) -> None:
    (home.path / ".codex").mkdir()
    (home.path / ".codex" / "config.toml").write_text("[features]\nhooks = false\n")
    installed, status = home.run("install", "codex", "--yes"), home.run("status", "codex")
    said = f"{home.path}/.codex/config.toml switches all hooks off (features.hooks = false)"
    for outcome in (installed, status):
        assert f"Codex runs no hooks: {said}" in outcome.out
    assert (installed.code, status.code) == (0, 1)


def test_a_database_that_only_this_terminal_names_is_told(home: Home) -> None:
    elsewhere = home.path / "elsewhere.db"
    told = home.run("install", "--dry-run", KALITO_DATABASE=str(elsewhere)).out
    assert f"not {elsewhere}. For all of them, write database = " in told
    config = home.path / ".config" / "kalito" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text(f'database = "{elsewhere}"\n')
    named = {"KALITO_DATABASE": str(elsewhere), "KALITO_CONFIG": str(config)}
    assert "KALITO_DATABASE" not in home.run("install", "--dry-run", **named).out


@pytest.mark.parametrize("hosts", [("copilot",), ("vscode", "copilot")])
def test_a_folder_of_hooks_that_is_empty_goes_with_the_last_of_them(home: Home, hosts: tuple[str, ...]) -> None:
    folder = home.path / ".copilot" / "hooks"
    home.run("install", "--yes", *hosts)
    assert folder.is_dir()
    for host in hosts:
        home.run("uninstall", "--yes", host)
    assert not folder.exists()
    folder.mkdir(parents=True)
    (folder / "others.json").write_text("{}")
    home.run("install", "--yes", *hosts)
    home.run("uninstall", "--yes", *hosts)
    assert [one.name for one in folder.iterdir()] == ["others.json"]


def test_without_a_terminal_nothing_is_written_unless_agreed(home: Home) -> None:
    before = home.files()
    outcome = home.run("install")
    assert outcome.code == 1
    assert "nothing was written: there is no terminal to ask on; add --yes" in outcome.err
    assert home.files() == before


@pytest.mark.parametrize(("answer", "is_written"), [("y\n", True), ("n\n", False)])
def test_a_person_at_the_terminal_is_asked(
    home: Home, monkeypatch: pytest.MonkeyPatch, answer: str, is_written: bool
) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal(answer))
    outcome = home.run("install")
    assert "Write these changes?" in outcome.out
    assert home.servers.exists() is is_written


def test_with_its_plugin_enabled_a_host_is_not_written_into_and_the_status_says_so(home: Home) -> None:
    home.settings.write_text(PLUGIN)
    before = home.files()
    outcome = home.run("install", "--yes")
    assert outcome.code == 0
    assert "Claude Code has kalito by its plugin; with both, replies would be recorded twice" in outcome.out
    assert home.files() == before
    outcome = home.run("status")
    assert (outcome.code, "starts: no, it is not on the PATH, where the plugin looks" in outcome.out) == (1, True)
    outcome = home.run("status", PATH=f"{home.programs}:/usr/bin:/bin")
    assert outcome.code == 0
    assert "  by its plugin: ~/.claude/settings.json enables it" in outcome.out
    assert "  starts: yes" in outcome.out


def test_a_host_with_the_plugin_and_an_entry_is_told_and_can_be_uninstalled(home: Home) -> None:
    home.run("install", "--yes")
    settings = json.loads(home.settings.read_text())
    home.settings.write_text(json.dumps(settings | json.loads(PLUGIN)))
    outcome = home.run("status")
    assert outcome.code == 1
    assert "twice: its plugin is enabled, too" in outcome.out and "kalito-mcp uninstall claude-code" in outcome.out
    home.run("uninstall", "--yes")
    assert json.loads(home.settings.read_text()) == json.loads(SETTINGS) | json.loads(PLUGIN)
    assert not home.servers.exists()


@pytest.mark.parametrize("switched", ['{"kalito@kalito-mcp": false}', '{"kalitos@other": true}', "[]"])
def test_a_plugin_that_is_off_or_another_one_keeps_nothing_from_being_written(home: Home, switched: str) -> None:
    home.settings.write_text(f'{{"enabledPlugins": {switched}}}')
    assert "wrote ~/.claude.json" in home.run("install", "--yes").out


def test_a_broken_file_is_named_and_other_hosts_are_installed(home: Home) -> None:
    home.settings.write_text('{\n  "model": "opus",\n  oops\n}')
    before = home.files()
    outcome = home.run("install", "--yes", "claude-code", "cursor")
    assert outcome.code == 1
    assert "settings.json: line 3, column 3: expected a quoted name; it was left as it is" in outcome.err
    assert {name: data for name, data in home.files().items() if ".cursor" not in name} == before
    assert (home.path / ".cursor" / "mcp.json").exists()


def test_another_server_of_the_same_name_is_not_replaced(home: Home) -> None:
    home.servers.write_text('{"mcpServers": {"kalito": {"command": "/opt/other"}}}')
    before = home.files()
    outcome = home.run("install", "--yes")
    assert 'another server is named "kalito" there' in outcome.err
    assert (outcome.code, home.files()) == (1, before)


def test_the_own_settings_of_an_entry_survive(home: Home) -> None:
    home.servers.write_text(
        '{"mcpServers": {"kalito": {"command": "uvx", "args": ["kalito-mcp", "serve", "--database", "/d.db"],'
        ' "env": {"KALITO_OWNER": "ada"}, "timeout": 9}}}'
    )
    home.run("install", "--yes")
    written = home.servers.read_text()
    assert '"--database"' in written and '"/d.db"' in written
    assert '"KALITO_OWNER": "ada"' in written and '"timeout": 9' in written
    assert "uvx" not in written


def test_keys_of_other_servers_are_not_shown(home: Home) -> None:
    key = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    home.servers.write_text('{\n  "mcpServers": {\n    "other": {"env": {"GITHUB_TOKEN": "' + key + '"}}\n  }\n}')
    outcome = home.run("install", "--dry-run")
    assert "GITHUB_TOKEN" in outcome.out
    assert key not in outcome.out


def test_without_the_hook_program_only_the_entry_is_written(home: Home) -> None:
    (home.programs / "kalito-hook").unlink()
    outcome = home.run("install", "--yes")
    assert "without hooks: kalito-hook is not installed" in outcome.out
    assert home.settings.read_text() == SETTINGS


def test_an_unknown_host_is_refused_with_the_known_ones(home: Home) -> None:
    outcome = home.run("install", "emacs")
    assert outcome.code == 1
    assert "no host 'emacs'; choose among claude-code, codex" in outcome.err


def test_the_status_says_what_is_installed_and_whether_it_starts(home: Home) -> None:
    assert "not installed: kalito-mcp install claude-code" in home.run("status").out
    home.run("install", "--yes")
    outcome = home.run("status")
    assert outcome.code == 0
    assert f"server: {home.programs / 'kalito-mcp'}" in outcome.out
    assert "starts: yes" in outcome.out
    assert "hooks: UserPromptSubmit, Stop, PreCompact" in outcome.out
    assert "missing" not in outcome.out


def test_the_status_fails_if_the_program_is_gone_or_ends_badly(home: Home) -> None:
    home.run("install", "--yes")
    program = home.programs / "kalito-mcp"
    program.write_text("#!/bin/sh\nexit 3\n")
    outcome = home.run("status")
    assert (outcome.code, "starts: no, it ends with 3" in outcome.out) == (1, True)
    program.unlink()
    outcome = home.run("status")
    assert (outcome.code, "starts: no, it is not there" in outcome.out) == (1, True)


def test_the_status_fails_if_the_hook_program_is_gone(home: Home) -> None:
    home.run("install", "--yes", "claude-code", "codex")
    (home.programs / "kalito-hook").unlink()
    outcome = home.run("status")
    assert (outcome.code, outcome.out.count(f"{home.programs / 'kalito-hook'} is not there")) == (1, 2)


def test_the_status_names_a_broken_file(home: Home) -> None:
    home.settings.write_text("{")
    outcome = home.run("status")
    assert outcome.code == 1
    assert "settings.json: line 1, column 2" in outcome.out


def test_without_any_host_nothing_is_done(home: Home) -> None:
    home.settings.unlink()
    home.claude.rmdir()
    before = home.files()
    said = home.run("install", "--yes").out
    assert "found: no assistant" in said
    assert "`kalito-mcp install claude-code`" in said
    assert "no assistant found; known are claude-code, codex" in home.run("status").out
    assert home.files() == before


def test_a_dry_run_of_uninstalling_writes_nothing(home: Home) -> None:
    home.run("install", "--yes")
    before = home.files()
    outcome = home.run("uninstall", "--dry-run")
    assert "~/.claude.json (deleted)" in outcome.out
    assert "nothing was written (--dry-run)" in outcome.out
    assert home.run("uninstall").code == 1
    assert home.files() == before
    assert "Cursor has nothing of kalito" in home.run("uninstall", "cursor").out


def test_a_file_that_changes_while_the_person_is_asked_is_not_overwritten(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Slow(Terminal):
        def readline(self, size: int = -1, /) -> str:
            home.settings.write_text("{}")
            return super().readline(size)

    monkeypatch.setattr(sys, "stdin", Slow("y\n"))
    outcome = home.run("install")
    assert outcome.code == 1
    assert "settings.json was changed by another program just now; run the command again" in outcome.err
    assert home.settings.read_text() == "{}"
    assert "to undo" not in outcome.out
    assert "start a new conversation" not in outcome.out


def test_from_a_cache_small_programs_are_written_and_go_with_the_last_host(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = home.files()
    home.programs.rename(home.programs.with_name("archive-v0"))
    monkeypatch.setattr(sys, "executable", str(home.programs.with_name("archive-v0") / "python"))
    programs = home.path / ".local" / "share" / "kalito" / "bin"
    installed = home.run("install", "--yes", "claude-code", "cursor").out
    assert f"this program is in a cache; hosts will start it by {programs / 'kalito-mcp'}" in installed
    assert str(programs / "kalito-mcp") in home.servers.read_text()
    assert {path.name for path in programs.iterdir()} == {"kalito-mcp", "kalito-hook"}
    assert "kalito/bin" not in home.run("uninstall", "--yes", "cursor").out.replace(str(programs), "")
    assert len(list(programs.iterdir())) == 2
    assert "~/.local/share/kalito/bin/kalito-hook (deleted)" in home.run("uninstall", "--dry-run").out
    outcome = home.run("uninstall", "--yes")
    assert "deleted ~/.local/share/kalito/bin/kalito-mcp" in outcome.out
    assert (outcome.code, home.files()) == (0, before)


def test_the_small_programs_stay_while_a_host_cannot_be_changed(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    home.programs.rename(home.programs.with_name("archive-v0"))
    monkeypatch.setattr(sys, "executable", str(home.programs.with_name("archive-v0") / "python"))
    home.run("install", "--yes", "claude-code", "cursor")
    (home.path / ".cursor" / "mcp.json").write_text("{")
    assert home.run("uninstall", "--yes").code == 1
    assert (home.path / ".local" / "share" / "kalito" / "bin" / "kalito-mcp").exists()


def test_an_entry_without_a_whole_path_is_shown_as_not_checked(home: Home) -> None:
    home.servers.write_text('{"mcpServers": {"kalito": {"command": "kalito-mcp", "args": ["serve"]}}}')
    outcome = home.run("status")
    assert "starts: not checked: kalito-mcp is not a whole path" in outcome.out
    assert "hooks: none: kalito-mcp install claude-code" in outcome.out


def test_the_status_says_how_many_events_wait_for_a_server(home: Home) -> None:
    spool = Spool(LocalFiles(home.path / ".local" / "share" / "kalito" / "memory.db").spool)
    for number in range(2):
        spool.put({"host": "codex", "event": "Stop"}, at_ms=number, event_id=str(number))
    assert home.run("status").out.startswith("2 events of hooks wait for the next server\n")


def test_installing_hooks_for_vscode_does_not_make_copilot_found(home: Home) -> None:
    home.run("install", "--yes", "vscode")
    assert (home.path / ".copilot" / "hooks").is_dir()
    assert "Copilot CLI" not in home.run("install", "--dry-run").out


def test_the_status_begins_with_a_pause_and_excluded_folders(home: Home) -> None:
    assert home.run("status").out.startswith("Claude Code\n")
    home.run("pause")
    home.run("exclude", str(home.claude))
    outcome = home.run("status")
    assert outcome.code == 0
    assert outcome.out.splitlines()[:3] == [
        "paused: nothing is remembered; `kalito-mcp resume` ends it",
        f"nothing is remembered in {home.claude}: it is excluded",
        "Claude Code",
    ]
    home.run("pause", "--for", "2h")
    assert home.run("status").out.startswith("paused until 2")


def test_the_status_fails_if_a_pause_cannot_be_read(home: Home) -> None:
    home.run("pause")
    LocalFiles(home.path / ".local" / "share" / "kalito" / "memory.db").switch.write_text("{")
    outcome = home.run("status")
    assert outcome.code == 1
    assert "cannot be read, so nothing is remembered: run `kalito-mcp resume`" in outcome.out.splitlines()[0]


def test_status_says_when_a_hook_was_heard_last(home: Home) -> None:
    home.run("install", "claude-code", "--yes")
    assert "last event: none yet" in home.run("status").out
    heard = LocalFiles(home.path / ".local" / "share" / "kalito" / "memory.db").trace("claude-code")
    heard.parent.mkdir(parents=True)
    heard.touch()
    os.utime(heard, (1_790_000_000, 1_790_000_000))
    assert "last event: 2026-09-2" in home.run("status").out


def test_what_the_chosen_hosts_have_kept_is_imported_after_it_is_written(home: Home) -> None:
    transcript = home.claude / "projects" / "-home-ann-shop" / "5b0c1d2e-0000-4000-8000-000000000001.jsonl"
    transcript.parent.mkdir(parents=True)
    said = {"role": "user", "content": "We fly on May 3."}
    known = {"type": "user", "sessionId": transcript.stem, "cwd": "/home/ann/shop", "uuid": "u1"}
    transcript.write_text(json.dumps(known | {"timestamp": "2026-03-04T10:00:00Z", "message": said}) + "\n")
    database = home.path / ".local" / "share" / "kalito" / "memory.db"

    outcome = home.run("install", "--import", "--dry-run", "claude-code", "codex")
    assert outcome.code == 0
    assert "nothing was written (--dry-run)" in outcome.out and "found 1 message in 1 session" in outcome.out
    assert not home.servers.exists() and not database.exists()

    outcome = home.run("install", "--import", "--yes", "claude-code", "claude-desktop")
    assert outcome.code == 0
    wrote, imported = outcome.out.index("wrote ~/.claude.json"), outcome.out.index("imported 1 message in 1 session")
    assert wrote < imported
    assert "nothing to change" in (again := home.run("install", "--import", "claude-code").out)
    assert "imported 0 messages" in again
    assert "imported" not in home.run("install", "--import", "--yes", "claude-desktop").out


def test_nothing_is_imported_if_the_person_does_not_agree(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal("n\n"))
    outcome = home.run("install", "--import")
    assert outcome.code != 0
    assert "Claude Code: " not in outcome.out.partition("Write these changes?")[2]


def test_hooks_that_two_hosts_read_are_written_once_and_stay_until_both_are_taken_out(home: Home) -> None:
    hooks = home.path / ".copilot" / "hooks" / "kalito.json"
    outcome = home.run("install", "--yes", "vscode", "copilot")
    assert (outcome.code, outcome.err, outcome.out.count("wrote ~/.copilot/hooks/kalito.json")) == (0, "", 1)
    assert home.run("status", "vscode", "copilot").out.count("hooks: sessionStart, userPromptSubmitted") == 2

    outcome = home.run("uninstall", "--yes", "copilot")
    assert (outcome.code, hooks.exists()) == (0, True)
    assert "missing" not in home.run("status", "vscode").out
    assert home.run("uninstall", "--yes", "vscode").code == 0
    assert not hooks.exists()

    before = home.files()
    home.run("install", "--yes", "vscode", "copilot")
    outcome = home.run("uninstall", "--yes")
    assert (outcome.code, outcome.err, home.files()) == (0, "", before)


def test_vscode_reads_its_hooks_wherever_those_of_copilot_are(home: Home, tmp_path: Path) -> None:
    home.run("install", "--yes", "vscode")
    assert (home.path / ".copilot" / "hooks" / "kalito.json").exists()
    vscode, copilot = hosts_named(("vscode", "copilot"))
    moved = Places("linux", tmp_path, {"COPILOT_HOME": str(tmp_path / "moved")})
    assert hook_path(vscode, moved) == tmp_path / ".copilot" / "hooks" / "kalito.json"
    assert hook_path(copilot, moved) == tmp_path / "moved" / "hooks" / "kalito.json"
