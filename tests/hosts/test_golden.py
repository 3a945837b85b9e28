"""What is written into the files of each host, from files that people edited. RENEW_GOLDEN=1 writes them again.

`golden/HOST/before/` is a home folder, with a name for each file; `golden/HOST/after/` is it when kalito is installed.
"""

import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from kalito_mcp.errors import ConfigurationError
from kalito_mcp.hosts.facts import Host, Launcher
from kalito_mcp.hosts.files import backup_of
from kalito_mcp.hosts.known import HOSTS, hosts_named
from kalito_mcp.hosts.places import Places
from kalito_mcp.hosts.plans import Change, plan_install, plan_uninstall, state_of

GOLDEN = Path(__file__).with_name("golden")
LAUNCHER = Launcher("/home/ada/.local/bin/kalito-mcp", "/home/ada/.local/bin/kalito-hook")
every_host = pytest.mark.parametrize("host", HOSTS, ids=lambda host: host.key)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def places(home: Path) -> Places:
    return Places("linux", home, {})


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in _files(folder)}


def _files(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.rglob("*")) if path.is_file()]


def make(changes: Sequence[Change]) -> int:
    for change in changes:
        change.make()
    return len(changes)


def install(host: Host, home: Path, *, launcher: Launcher = LAUNCHER, has_hooks: bool = True) -> int:
    return make(plan_install(host, places(home), launcher, has_hooks=has_hooks))


def uninstall(host: Host, home: Path) -> int:
    return make(plan_uninstall(host, places(home)))


@every_host
def test_the_files_of_a_host_become_what_is_expected_once_and_are_given_back(host: Host, home: Path) -> None:
    shutil.copytree(GOLDEN / host.key / "before", home)
    before = contents(home)
    assert install(host, home) > 0
    written = {name: data for name, data in contents(home).items() if not name.endswith(".kalito-backup")}
    if os.environ.get("RENEW_GOLDEN"):
        shutil.rmtree(GOLDEN / host.key / "after", ignore_errors=True)
        for name, data in written.items():
            (GOLDEN / host.key / "after" / name).parent.mkdir(parents=True, exist_ok=True)
            (GOLDEN / host.key / "after" / name).write_bytes(data)
    assert written == contents(GOLDEN / host.key / "after")
    assert install(host, home) == 0
    uninstall(host, home)
    assert contents(home) == before


@every_host
def test_a_host_without_files_gets_them_and_loses_them_again(host: Host, home: Path) -> None:
    install(host, home)
    assert contents(home)
    assert install(host, home) == 0
    uninstall(host, home)
    assert contents(home) == {}


@every_host
def test_line_ends_and_a_byte_order_mark_survive(host: Host, home: Path) -> None:
    mark = b"\xef\xbb\xbf"
    shutil.copytree(GOLDEN / host.key / "before", home)
    for path in _files(home):
        path.write_bytes(mark + path.read_bytes().replace(b"\n", b"\r\n"))
    before = contents(home)
    install(host, home)
    for name, data in contents(home).items():
        if before.get(name, mark) != mark:
            assert data.startswith(mark) and not data.removeprefix(mark).startswith(b"\xef\xbb\xbf")
            assert data.count(b"\n") == data.count(b"\r\n")
    uninstall(host, home)
    assert contents(home) == before


@every_host
def test_a_change_that_its_user_made_meanwhile_survives_uninstalling(host: Host, home: Path) -> None:
    shutil.copytree(GOLDEN / host.key / "before", home)
    path = Path(host.entry.where(places(home)))
    before = path.read_text()
    install(host, home)
    comment = "// mine\n" if path.suffix.startswith(".json") else "# mine\n"
    path.write_text(comment + path.read_text())
    uninstall(host, home)

    after = path.read_text()
    assert after.startswith(comment)
    assert host.entry.writer.parse(after) == host.entry.writer.parse(before)
    assert backup_of(path).read_text() == before


def test_a_file_that_its_host_rewrites_loses_ours_and_nothing_else(home: Path) -> None:
    (home / ".claude").mkdir(parents=True)
    path = home / ".claude.json"
    path.write_text('{\n  "numStartups": 3\n}')
    install(HOSTS[0], home)
    path.write_text(path.read_text().replace("3", "4"))
    uninstall(HOSTS[0], home)
    assert path.read_text() == '{\n  "numStartups": 4\n}'


@every_host
def test_a_file_that_is_broken_is_left_as_it_is(host: Host, home: Path) -> None:
    shutil.copytree(GOLDEN / host.key / "before", home)
    path = Path(host.entry.where(places(home)))
    path.write_text(path.read_text() + "\n]] broken")
    before = contents(home)
    for change in (install, uninstall):
        with pytest.raises(Exception, match=rf"{path.name}: line \d+, column \d+: .*left as it is"):
            change(host, home)
    assert contents(home) == before


@every_host
def test_without_hooks_only_the_entry_is_written_and_hooks_of_before_go(host: Host, home: Path) -> None:
    shutil.copytree(GOLDEN / host.key / "before", home)
    install(host, home)
    install(host, home, has_hooks=False)
    after = b"".join(data for name, data in contents(home).items() if not name.endswith(".kalito-backup"))
    assert b"kalito-mcp" in after
    assert b"kalito-hook" not in after and b"hook_event" not in after and b"KALITO_HOOKS" not in after


@every_host
def test_a_moved_program_replaces_the_entry_and_keeps_the_first_backup(host: Host, home: Path) -> None:
    shutil.copytree(GOLDEN / host.key / "before", home)
    before = contents(home)
    install(host, home)
    install(host, home, launcher=Launcher("/opt/new/kalito-mcp", "/opt/new/kalito-hook"))
    assert all(b"/home/ada/.local" not in data for name, data in contents(home).items() if name not in before)
    uninstall(host, home)
    assert contents(home) == before


def test_hooks_that_share_a_group_with_ours_stay(home: Path) -> None:
    (host,) = [host for host in HOSTS if host.key == "codex"]
    path = home / ".codex" / "hooks.json"
    path.parent.mkdir(parents=True)
    path.write_text(
        '{"hooks": {"Stop": [{"matcher": "*", "hooks": [{"command": "/old/kalito-hook codex Stop"}, '
        '{"command": "mine"}]}], "Gone": [{"hooks": [{"command": "kalito-hook codex Gone"}]}], "Odd": 5}}'
    )
    install(host, home)
    written = json.loads(path.read_text())["hooks"]
    assert written["Stop"][0] == {"matcher": "*", "hooks": [{"command": "mine"}]}
    assert "kalito-hook codex Stop" in written["Stop"][1]["hooks"][0]["command"]
    assert "Gone" not in written
    uninstall(host, home)
    assert json.loads(path.read_text()) == {
        "hooks": {"Stop": [{"matcher": "*", "hooks": [{"command": "mine"}]}], "Odd": 5}
    }


@pytest.mark.parametrize("hooks", ["[]", '"x"', '{"Stop": {}}'])
def test_hooks_of_another_shape_are_left_as_they_are(home: Path, hooks: str) -> None:
    path = home / ".claude" / "settings.json"
    path.parent.mkdir(parents=True)
    path.write_text(f'{{"hooks": {hooks}}}')
    with pytest.raises(ConfigurationError, match=r"settings\.json: .*left as it is"):
        install(HOSTS[0], home)
    assert path.read_text() == f'{{"hooks": {hooks}}}'


def test_a_plugin_that_is_not_ours_is_neither_replaced_nor_deleted(home: Path) -> None:
    (host,) = [host for host in HOSTS if host.key == "opencode"]
    path = home / ".config" / "opencode" / "plugins" / "kalito.js"
    path.parent.mkdir(parents=True)
    path.write_text("// mine\n")
    with pytest.raises(ConfigurationError, match="exists and was not written by kalito"):
        install(host, home)
    assert uninstall(host, home) == 0
    assert path.read_text() == "// mine\n"
    assert state_of(host, places(home)).events == ()


def test_an_entry_that_was_written_by_hand_is_backed_up_and_goes_too(home: Path) -> None:
    home.mkdir()
    path = home / ".claude.json"
    path.write_text('{"numStartups": 3, "mcpServers": {"kalito": {"command": "kalito-mcp"}}}')
    install(HOSTS[0], home)
    uninstall(HOSTS[0], home)
    assert path.read_text() == '{"numStartups": 3, "mcpServers": {}}'
    assert '"kalito": {"command": "kalito-mcp"}' in backup_of(path).read_text()


def test_a_hook_that_was_installed_earlier_and_is_of_no_use_goes(home: Path) -> None:
    [cursor] = hosts_named(["cursor"])
    shutil.copytree(GOLDEN / "cursor" / "before", home)
    before = contents(home)
    install(cursor, home)
    after, hooks = contents(home), home / ".cursor" / "hooks.json"
    of_someone_else = '[{ "command": "./done.sh" }]'
    ours = f'[{{ "command": "./done.sh" }}, {{"command": "{LAUNCHER.hook} cursor stop", "timeout": 5}}]'
    earlier = hooks.read_text().replace(of_someone_else, ours)
    hooks.write_text(earlier)
    assert "stop" in state_of(cursor, places(home)).events
    install(cursor, home)
    assert contents(home) == after
    hooks.write_text(earlier)
    uninstall(cursor, home)
    assert contents(home) == before
