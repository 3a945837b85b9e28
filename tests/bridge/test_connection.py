"""Where the home is, and the token for it."""

import json
from pathlib import Path

import pytest

from kalito_mcp.bridge.connection import (
    TOKEN_VARIABLE,
    Connection,
    checked_token,
    connection_to,
    read_connection,
    read_token,
    remove_connection,
    write_connection,
)
from kalito_mcp.errors import ConfigurationError, InvalidInput
from tests.bridge.machines import TOKEN

ORIGIN = "https://example.org"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "memory.db.home"


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ("https://kalito.example.org", "https://kalito.example.org/mcp"),
        ("https://kalito.example.org/", "https://kalito.example.org/mcp"),
        ("https://example.org:8443/memory/mcp", "https://example.org:8443/memory/mcp"),
        ("http://127.0.0.1:8765", "http://127.0.0.1:8765/mcp"),
        ("http://localhost:8765/mcp", "http://localhost:8765/mcp"),
        ("http://[::1]:8765", "http://[::1]:8765/mcp"),
    ],
)
def test_an_address_is_taken_with_or_without_its_path(given: str, url: str) -> None:
    assert connection_to(given).url == url


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("http://kalito.example.org", "use https"),
        ("http://203.0.113.7:8765", "add --plain-http"),  # for documentation, and so not global
        ("http://8.8.8.8", "text unencrypted; use https"),
        ("http://192.168.1.20:8765", "add --plain-http"),
        ("http://100.64.3.2:8765", "add --plain-http"),
        ("ftp://example.org", "write it as https://"),
        ("example.org", "write it as https://"),
        ("https://", "write it as https://"),
        ("https://ann:secret@example.org", "leave the user and the password out"),
        ("https://example.org/mcp?token=x", "write it as https://"),
        ("https://example.org:99999", "is not an address"),
    ],
)
def test_an_address_that_others_could_read_or_that_is_none_is_refused(given: str, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        connection_to(given)


def test_plain_http_is_for_private_numbers_alone() -> None:
    assert connection_to("http://192.168.1.20:8765", is_plain=True).url == "http://192.168.1.20:8765/mcp"
    assert connection_to("http://100.64.3.2", is_plain=True).is_plain
    for given in ("http://8.8.8.8", "http://nas.local", "http://0.0.0.0"):
        with pytest.raises(InvalidInput):
            connection_to(given, is_plain=True)


def test_the_token_is_in_a_file_of_its_own_for_its_owner_alone(folder: Path) -> None:
    write_connection(folder, connection_to("https://example.org"), TOKEN)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {file.name: file.stat().st_mode & 0o777 for file in folder.iterdir()} == {
        "connection.json": 0o600,
        "token": 0o600,
    }
    assert TOKEN not in (folder / "connection.json").read_text()
    assert read_connection(folder) == Connection("https://example.org/mcp")
    assert read_token(folder, {}, ORIGIN) == TOKEN
    assert read_token(folder, {TOKEN_VARIABLE: f" {TOKEN[::-1]}\n"}, ORIGIN) == TOKEN[::-1]


def test_a_token_that_others_can_read_is_not_used(folder: Path) -> None:
    write_connection(folder, connection_to("https://example.org"), TOKEN)
    (folder / "token").chmod(0o644)
    with pytest.raises(ConfigurationError, match="others on this machine can read") as refused:
        read_token(folder, {}, ORIGIN)
    assert TOKEN not in str(refused.value)


def test_a_token_goes_to_the_origin_that_it_was_given_for_alone(folder: Path) -> None:
    write_connection(folder, connection_to("https://example.org"), TOKEN)
    # A server that was started before still asks for the token of the home of before.
    with pytest.raises(ConfigurationError, match="for another home: restart the assistants") as refused:
        read_token(folder, {}, "https://old.example.org")
    assert TOKEN not in str(refused.value)


def test_a_connection_that_is_written_by_half_sends_no_token_to_the_home_of_before(folder: Path) -> None:
    write_connection(folder, connection_to("https://old.example.org"), TOKEN)
    file = folder / "connection.json"
    before = file.read_text()
    file.unlink()
    file.mkdir()
    with pytest.raises(ConfigurationError, match="cannot write"):
        write_connection(folder, connection_to("https://example.org"), TOKEN[::-1])
    file.rmdir()
    file.write_text(before)
    connection = read_connection(folder)
    assert connection is not None
    with pytest.raises(ConfigurationError, match="for another home"):
        read_token(folder, {}, connection.origin)


@pytest.mark.parametrize("given", ["", "  ", "two words", "kal_ä", "x" * 5_000, "a\x07b"])
def test_what_is_no_token_is_refused_without_repeating_it(given: str) -> None:
    with pytest.raises(ConfigurationError, match="this is not a token"):
        checked_token(given)


def test_without_a_token_it_says_how_to_get_one(folder: Path) -> None:
    write_connection(folder, connection_to("https://example.org"), None)
    with pytest.raises(ConfigurationError, match="run `kalito-mcp connect` again, or set KALITO_HOME_TOKEN"):
        read_token(folder, {}, ORIGIN)


@pytest.mark.parametrize("content", ["", "{", "[]", '{"url": 5}', '{"url": "http://8.8.8.8/mcp"}'])
def test_a_damaged_file_is_no_reason_to_use_another_memory(folder: Path, content: str) -> None:
    folder.mkdir()
    (folder / "connection.json").write_text(content)
    with pytest.raises(ConfigurationError):
        read_connection(folder)


def test_leaving_deletes_all_but_what_waits(folder: Path) -> None:
    write_connection(folder, connection_to("https://example.org"), TOKEN)
    (folder / "answers").mkdir()
    (folder / "answers" / "x").write_text("old")
    (folder / "outbox").mkdir()
    (folder / "outbox" / "000000000001-x.json").write_text(json.dumps({}))
    remove_connection(folder)
    assert [file.relative_to(folder).as_posix() for file in sorted(folder.rglob("*"))] == [
        "outbox",
        "outbox/000000000001-x.json",
    ]
    (folder / "outbox" / "000000000001-x.json").unlink()
    remove_connection(folder)
    assert not folder.exists()
