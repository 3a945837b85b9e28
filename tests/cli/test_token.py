"""`kalito-mcp token`."""

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
    assert again.err == f"kalito-mcp: no valid token or consent '{token_id}'; `kalito-mcp token list` shows them\n"


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
