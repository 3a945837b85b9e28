"""`kalito-mcp user`."""

import json
import sys
from pathlib import Path

import httpx2
import pytest

from tests.cli.conftest import Invoke, Terminal
from tests.empty_database import lay_empty_database
from tests.server.web import web


def test_a_key_is_of_its_person_and_shown_once_with_how_to_use_it(invoke: Invoke, tmp_path: Path) -> None:
    database = str(tmp_path / "memory.db")
    made = invoke("user", "add", "anna@example.org", "--days", "3", "--key", "laptop", "--database", database)
    text = made.out.strip()
    assert made.err.splitlines()[1:] == [
        "an assistant uses it at http://127.0.0.1:8765/mcp with the header  Authorization: Bearer KEY",
        "on their machine, hooks and all:  kalito-mcp connect http://127.0.0.1:8765",
    ]
    note = {"type": "note", "text": "Bees."}
    with web("http", tmp_path / "memory.db", login=True) as serving:
        asked = serving.url.replace("/mcp", "/api/records")
        stored = httpx2.post(asked, json=note, headers={"Authorization": f"Bearer {text}"})
        assert stored.status_code == 201, stored.text
    [keys] = invoke("user", "keys", "anna@example.org", "--database", database).out.splitlines()
    assert f"{text[:10]}...  laptop  write, owner anna@example.org, until 20" in keys
    [anna] = [
        json.loads(line)
        for line in invoke("user", "list", "--json", "--database", database).out.splitlines()
        if "anna" in line
    ]
    used_at = anna.pop("used_at")
    assert used_at.startswith("20")
    assert anna == {"name": "anna@example.org", "sessions": 0, "records": 1, "keys": 1, "spaces": {}}
    shown = invoke("user", "list", "--database", database).out
    assert f"anna@example.org  0 conversations, 1 record, 1 key, used {used_at}" in shown


def test_a_name_that_differs_only_in_case_and_the_name_of_a_space_are_refused(invoke: Invoke, tmp_path: Path) -> None:
    database = str(tmp_path / "memory.db")
    invoke("user", "add", "anna", "--database", database)
    again = invoke("user", "add", "Anna", "--database", database)
    assert (again.code, again.err) == (
        1,
        "kalito-mcp: there is 'anna' already; write the name the same way, or take another one\n",
    )
    for name in ("space:anna", "Space:anna", "\uff33pace\uff1aanna"):
        space = invoke("user", "add", name, "--database", database)
        assert (space.code, "is a space" in space.err) == (1, True), name
    assert "is a space" in invoke("user", "list", "--database", database, KALITO_OWNER="space:anna").err
    unknown = invoke("user", "keys", "ana", "--database", database)
    assert unknown.err == "kalito-mcp: nobody is called 'ana'; `kalito-mcp user list` shows the names\n"


def test_an_owner_of_the_settings_who_looks_like_somebody_is_refused(invoke: Invoke, tmp_path: Path) -> None:
    database = str(tmp_path / "memory.db")
    assert invoke("remember", "Hello.", "--database", database, KALITO_OWNER="anna").code == 0
    for name in ("Anna", "anna "):
        refused = invoke("remember", "Hello.", "--database", database, KALITO_OWNER=name)
        assert (refused.code, "there is 'anna' already" in refused.err) == (1, True), name
    assert invoke("remember", "Again.", "--database", database, KALITO_OWNER="anna").code == 0


def test_a_database_without_people_says_how_to_add_one(invoke: Invoke, tmp_path: Path) -> None:
    database = lay_empty_database(tmp_path / "memory.db")
    assert invoke("user", "list", "--database", str(database)).out == (
        "nobody yet; `kalito-mcp user add NAME` makes a key\n"
    )


def test_erasing_asks_for_the_name_and_says_what_went_and_what_is_left(
    invoke: Invoke, remembered: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = str(remembered)
    invoke("user", "add", "local", "--database", database)
    assert invoke("user", "erase", "local", "--database", database).err.endswith(
        "nothing was erased: there is no terminal to ask on; add --yes to go ahead\n"
    )
    monkeypatch.setattr(sys, "stdin", Terminal("lokal\n"))
    wrong = invoke("user", "erase", "local", "--database", database)
    assert wrong.out.startswith("To be erased for good: local  2 conversations, 4 records, 1 key, used 20")
    assert wrong.err == "kalito-mcp: nothing was erased: that is another name\n"
    backup = invoke("backup", "--database", database)
    assert backup.code == 0, backup.err
    monkeypatch.setattr(sys, "stdin", Terminal("local\n"))
    done = invoke("user", "erase", "local", "--database", database)
    assert done.code == 0, done.err
    lines = done.out.partition("The name again: ")[2].splitlines()
    assert lines[0].startswith("erased of local: 2 conversations, 4 records, 1 key, ")
    [named] = [line for line in lines if line.startswith("could not clean ")]
    assert "memory.db.backups" in named
    assert lines[-4:] == [
        "note: the audit log keeps its entries about local: names, ids and numbers, and no words",
        "note: what they wrote into copies that others shared stays there, with their name",
        "note: running servers may have some of it in memory until they are restarted",
        "note: exports and other copies that somebody made are theirs to delete",
    ]
    assert invoke("user", "list", "--database", database).out.startswith("nobody yet")
    again = json.loads(invoke("user", "erase", "local", "--yes", "--json", "--database", database).out)
    assert (again["rows"], list(again["remaining"])) == ({}, [named.split()[3].rstrip(":")])
    unknown = invoke("user", "erase", "nobody", "--yes", "--database", database)
    assert unknown.err == "kalito-mcp: nobody is called 'nobody'; `kalito-mcp user list` shows the names\n"
