"""Which program hosts are told to start."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kalito_mcp.errors import ConfigurationError
from kalito_mcp.hosts.launcher import find_launcher, is_passing, write_scripts

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the programs here are scripts of a shell")


def install_into(folder: Path, *names: str) -> Path:
    """An installation with these programs. Returns its Python."""
    folder.mkdir(parents=True)
    for name in names:
        (folder / name).write_text("#!/bin/sh\necho started $0 $@\n")
        (folder / name).chmod(0o755)
    return folder / "python"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


def test_the_programs_of_an_installation_are_named_by_their_whole_paths(
    tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = install_into(tmp_path / "venv" / "bin", "kalito-mcp", "kalito-hook")
    monkeypatch.setattr(sys, "executable", str(python))
    found = find_launcher(data)
    assert found.launcher.server == str(tmp_path / "venv" / "bin" / "kalito-mcp")
    assert found.launcher.hook == str(tmp_path / "venv" / "bin" / "kalito-hook")
    assert found.files == {}


def test_the_link_on_the_path_is_named_because_it_survives_upgrades(
    tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = install_into(tmp_path / "tools" / "kalito-1" / "bin", "kalito-mcp")
    link = tmp_path / "local" / "kalito-mcp"
    link.parent.mkdir()
    link.symlink_to(python.with_name("kalito-mcp"))
    monkeypatch.setattr(sys, "executable", str(python))
    monkeypatch.setenv("PATH", str(link.parent))
    found = find_launcher(data)
    assert (found.launcher.server, found.launcher.hook) == (str(link), None)


def test_another_installation_on_the_path_is_not_named(
    tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = install_into(tmp_path / "mine", "kalito-mcp")
    other = install_into(tmp_path / "other", "kalito-mcp")
    monkeypatch.setattr(sys, "executable", str(python))
    monkeypatch.setenv("PATH", str(other.parent))
    assert find_launcher(data).launcher.server == str(python.with_name("kalito-mcp"))


def test_what_is_only_imported_is_refused(tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigurationError, match="kalito-mcp is not installed next to"):
        find_launcher(data)


def test_in_a_cache_small_programs_run_the_tool_again(
    tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = install_into(tmp_path / "uv" / "archive-v0" / "x" / "bin", "kalito-mcp", "kalito-hook")
    uv = install_into(tmp_path / "bin", "uv").with_name("uv")
    monkeypatch.setattr(sys, "executable", str(python))
    monkeypatch.setenv("PATH", f"{uv.parent}:{os.defpath}")
    found = find_launcher(data)
    assert not data.exists()

    write_scripts(found)
    assert found.launcher.server == str(data / "bin" / "kalito-mcp")
    started = subprocess.run([found.launcher.server, "serve"], capture_output=True, check=True, text=True)
    assert started.stdout.startswith(f"started {uv} tool run --from ")
    assert started.stdout.endswith(" kalito-mcp serve\n")
    # The hook does not ask uv, as long as its program is still in the cache.
    hook = [str(found.launcher.hook), "codex", "Stop"]
    cached = python.with_name("kalito-hook")
    assert subprocess.check_output(hook, text=True) == f"started {cached} codex Stop\n"
    cached.unlink()
    again = subprocess.check_output(hook, text=True)
    assert again.startswith(f"started {uv} tool run --from ")
    assert again.endswith(" kalito-hook codex Stop\n")
    uv.unlink()
    gone = subprocess.run(hook, capture_output=True, check=False, text=True)
    assert (gone.returncode, gone.stdout, gone.stderr) == (0, "", "")


@pytest.mark.parametrize(
    ("path", "passes"),
    [
        ("/home/ada/.cache/uv/archive-v0/abc/bin/kalito-mcp", True),
        ("/home/ada/.cache/uv/environments-v2/abc/bin/kalito-mcp", True),
        ("/uv/bin/kalito-mcp", True),
        ("/home/ada/.local/share/pipx/.cache/abc/bin/kalito-mcp", True),
        ("/home/ada/.local/share/pipx/venvs/kalito-mcp/bin/kalito-mcp", False),
        ("/home/ada/.local/share/uv/tools/kalito-mcp/bin/kalito-mcp", False),
        ("/home/ada/code/.venv/bin/kalito-mcp", False),
    ],
)
def test_only_caches_pass(path: str, passes: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UV_CACHE_DIR", "/uv")
    assert is_passing(Path(path)) is passes


def test_on_windows_the_small_programs_are_batch_files(
    tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_into(tmp_path / "archive-v0", "kalito-mcp.exe", "kalito-hook.exe")
    uv = install_into(tmp_path / "bin", "uv").with_name("uv")
    monkeypatch.setattr("kalito_mcp.hosts.launcher._IS_WINDOWS", True)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "archive-v0" / "python.exe"))
    monkeypatch.setenv("PATH", str(uv.parent))
    found = find_launcher(data)
    write_scripts(found)
    server = (data / "bin" / "kalito-mcp.cmd").read_bytes()
    assert server.startswith(f'@"{uv}" "tool" "run" "--from" '.encode())
    assert server.endswith(b'"kalito-mcp" %*\r\n')
    hook = (data / "bin" / "kalito-hook.cmd").read_bytes()
    cached = tmp_path / "archive-v0" / "kalito-hook.exe"
    assert hook.startswith(f'@if exist "{cached}" "{cached}" %* 2>nul && exit /b 0\r\n@"{uv}" '.encode())
    assert hook.endswith(b'"kalito-hook" %* 2>nul\r\n@exit /b 0\r\n')
    assert found.launcher.is_windows


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python = install_into(tmp_path / "archive-v0", "kalito-mcp", "kalito-hook")
    monkeypatch.setattr(sys, "executable", str(python))
    data.write_text("a file")
    with pytest.raises(ConfigurationError, match=r"cannot write .*; no host was changed"):
        write_scripts(find_launcher(data))


@pytest.mark.parametrize(
    ("said", "origin"),
    [
        (None, "kalito-mcp"),
        ("broken", "kalito-mcp"),
        ('{"url": "file:///w/kalito.whl", "archive_info": {}}', "file:///w/kalito.whl"),
        ('{"url": "https://x/y", "vcs_info": {"vcs": "git", "commit_id": "1"}}', "git+https://x/y"),
    ],
)
def test_the_tool_is_run_from_where_it_was_installed(
    tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch, said: str | None, origin: str
) -> None:
    package = tmp_path / "site" / "kalito_mcp-1.dist-info"
    package.mkdir(parents=True)
    (package / "METADATA").write_text("Name: kalito-mcp\nVersion: 1\n")
    if said is not None:
        (package / "direct_url.json").write_text(said)
    monkeypatch.syspath_prepend(str(package.parent))
    python = install_into(tmp_path / "archive-v0", "kalito-mcp", "kalito-hook")
    monkeypatch.setattr(sys, "executable", str(python))
    server, _ = find_launcher(data).files.values()
    assert f" {origin} kalito-mcp " in server
