"""Writing the files of hosts: whole, in place of links, with their permissions, and never over another's change."""

import os
from pathlib import Path

import pytest

from kalito_mcp.errors import ConfigurationError
from kalito_mcp.hosts.files import Content, backup_of, delete, read, write


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "settings.json"
    path.write_bytes(b"{}")
    return path


def test_a_link_stays_a_link_and_its_target_is_written(tmp_path: Path, file: Path) -> None:
    link = tmp_path / "home" / "settings.json"
    link.parent.mkdir()
    link.symlink_to(file)
    write(link, b"new", before=read(link), is_backed_up=True)
    assert link.is_symlink()
    assert file.read_bytes() == b"new"
    assert backup_of(link).read_bytes() == b"{}"


def test_permissions_stay_and_the_backup_has_them(file: Path) -> None:
    mode = 0o640
    file.chmod(mode)
    write(file, b"new", before=read(file), is_backed_up=True)
    assert [path.stat().st_mode & 0o777 for path in (file, backup_of(file))] == [mode, mode]


def test_a_new_file_is_for_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "new" / "settings.json"
    write(path, b"new", before=read(path), is_backed_up=True)
    assert path.stat().st_mode & 0o777 == 0o600
    assert not backup_of(path).exists()


def test_what_another_program_wrote_meanwhile_is_not_overwritten(file: Path) -> None:
    before = read(file)
    file.write_bytes(b'{"theirs": 1}')
    with pytest.raises(ConfigurationError, match="changed by another program"):
        write(file, b"ours", before=before, is_backed_up=True)
    with pytest.raises(ConfigurationError, match="changed by another program"):
        delete(file, before=before)
    assert file.read_bytes() == b'{"theirs": 1}'


def test_a_write_that_fails_leaves_the_file_and_nothing_else(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(ConfigurationError, match="No space left on device; it was left as it is"):
        write(file, b"new", before=read(file), is_backed_up=False)
    assert [path.read_bytes() for path in file.parent.iterdir()] == [b"{}"]


def test_what_cannot_be_read_as_text_is_refused(tmp_path: Path, file: Path) -> None:
    file.write_bytes("{}".encode("utf-16"))
    with pytest.raises(ConfigurationError, match=r"is not UTF-8 \(byte 1\)"):
        read(file)
    with pytest.raises(ConfigurationError, match="is no regular file"):
        read(tmp_path)
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "nowhere")
    with pytest.raises(ConfigurationError, match="a link to a file that does not exist"):
        read(link)


def test_a_device_or_a_pipe_behind_a_link_is_left_as_it_is(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for number, target in enumerate((pipe, Path("/dev/null"))):
        link = tmp_path / f"{number}.json"
        link.symlink_to(target)
        with pytest.raises(ConfigurationError, match="is no regular file; it was left as it is"):
            read(link)
        with pytest.raises(ConfigurationError, match="is no regular file"):
            write(link, b"{}", before=Content(None, ""), is_backed_up=True)
        assert not target.is_file()
