"""`kalito-mcp token`."""

import sqlite3
from contextlib import closing
from pathlib import Path

import httpx2

from tests.cli.conftest import Invoke
from tests.server.web import web


def status(url: str, token: str) -> int:
    return httpx2.get(url.replace("/mcp", "/nowhere"), headers={"Authorization": f"Bearer {token}"}).status_code


def test_a_token_is_shown_once_listed_by_its_beginning_and_revoked_at_once(invoke: Invoke, tmp_path: Path) -> None:
    database = tmp_path / "memory.db"
    made = invoke("token", "create", "laptop", "--permission", "read", "--days", "30", "--database", str(database))
    text = made.out.strip()
    [token_id] = [word.rstrip(":") for word in made.err.split() if word.startswith("tok_")]
    with web("http", database, login=True) as serving:
        assert status(serving.url, text) == 404  # no such path, for somebody who may ask
        listed = invoke("token", "list", "--database", str(database)).out
        assert f"{token_id}  {text[:10]}...  laptop  read, owner local, until 20" in listed
        assert "used 20" in listed
        assert text not in listed
        assert invoke("token", "revoke", token_id, "--database", str(database)).out == f"revoked {token_id}\n"
        assert status(serving.url, text) == 401
    again = invoke("token", "revoke", token_id, "--database", str(database))
    assert (again.code, again.out) == (1, "")
    assert (
        again.err
        == f"kalito-mcp: no valid token or consent '{token_id}'; send its id, which `kalito-mcp token list` shows\n"
    )


def test_the_first_start_makes_a_token_and_shows_it_and_later_ones_do_not(invoke: Invoke, tmp_path: Path) -> None:
    database = tmp_path / "memory.db"
    with web("http", database, login=True) as serving:
        assert status(serving.url, "kal_guessed") == 401
    [shown] = [line for line in serving.log if b"kal_" in line]
    text = shown.decode().split()[-1]
    with web("http", database, login=True) as serving:
        assert status(serving.url, text) == 404
    assert not [line for line in serving.log if b"kal_" in line]
    assert "first  admin, owner local, valid" in invoke("token", "list", "--database", str(database)).out


def test_a_memory_without_tokens_says_how_to_make_one(invoke: Invoke, remembered: Path) -> None:
    assert invoke("token", "list", "--database", str(remembered)).out == (
        "no tokens; `kalito-mcp token create NAME` makes one\n"
    )


def test_whoever_has_a_token_that_ended_is_told_so(invoke: Invoke, tmp_path: Path) -> None:
    database = tmp_path / "memory.db"
    made = [
        invoke("token", "create", name, "--days", "1", "--database", str(database)).out.strip()
        for name in ("old", "given back")
    ]
    listed = invoke("token", "list", "--database", str(database)).out
    [given_back] = [line.split()[0] for line in listed.splitlines() if "given back" in line]
    invoke("token", "revoke", given_back, "--database", str(database))
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("UPDATE access_tokens SET expires_at = 1 WHERE name = 'old'")
    assert "old  write, owner local, expired 1970-01-01" in invoke("token", "list", "--database", str(database)).out
    with web("http", database, login=True) as serving:
        said = [
            httpx2.get(serving.url, headers={"Authorization": f"Bearer {token}"}).json()["error_description"]
            for token in (*made, "kal_guessed")
        ]
    assert said[0].startswith("this token expired on 1970-01-01T00:00:00.001Z; send a valid token")
    assert said[1].startswith("this token was revoked on 20")
    assert said[2].startswith("send a valid token")
