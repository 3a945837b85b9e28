"""`kalito-mcp audit`."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

from tests.cli.conftest import Invoke
from tests.empty_database import lay_empty_database


def filled(folder: Path, invoke: Invoke) -> str:
    database = str(lay_empty_database(folder / "memory.db"))
    for name in ("laptop", "phone"):
        assert invoke("token", "create", name, "--database", database).code == 0
    return database


def test_the_log_lists_who_did_what_the_newest_first(tmp_path: Path, invoke: Invoke) -> None:
    database = filled(tmp_path, invoke)
    lines = invoke("audit", "--database", database).out.splitlines()
    assert [line.split("  ")[0] for line in lines] == ["2", "1"]
    assert "  host (local)  create_token  added tok_" in lines[0]
    assert "laptop" not in lines[1]
    [newest] = invoke("audit", "--limit", "1", "--json", "--database", database).out.splitlines()
    found = json.loads(newest)
    assert (found["number"], found["action"], found["principal"]) == (2, "create_token", "host")
    assert found["changes"][0]["what"] == "added"
    assert invoke("audit", "--since", "2099-01-01", "--database", database).out.startswith("nothing was done")


def test_a_key_names_whose_it_is_and_no_more_of_it(tmp_path: Path, invoke: Invoke) -> None:
    database = str(lay_empty_database(tmp_path / "memory.db"))
    key = invoke("user", "add", "anna", "--database", database).out.strip()
    invoke("token", "create", "robot", "--owner", "ben", "--database", database)
    lines = invoke("audit", "--database", database).out.splitlines()
    assert [line.split("  ")[2] for line in lines] == ["host (ben)", "host (anna)"]
    assert key[:10] not in lines[1]


def test_the_log_says_how_many_older_entries_there_are_and_how_to_see_them(tmp_path: Path, invoke: Invoke) -> None:
    database = filled(tmp_path, invoke)
    assert invoke("audit", "--limit", "2", "--database", database).err == ""
    invoke("token", "create", "desk", "--database", database)
    for more in ((), ("--json",)):
        cut = invoke("audit", "--limit", "1", *more, "--since", "2020-01-01", "--database", database)
        assert len(cut.out.splitlines()) == 1
        assert cut.err == "2 older entries not shown; see more with --limit 3\n"
    assert (
        invoke("audit", "--limit", "2", "--database", database).err
        == "1 older entry not shown; see more with --limit 3\n"
    )
    assert len(invoke("audit", "--limit", "3", "--database", database).out.splitlines()) == 3


def test_the_log_is_verified_from_a_head_that_was_noted(tmp_path: Path, invoke: Invoke) -> None:
    database = filled(tmp_path, invoke)
    said = invoke("audit", "--verify", "--database", database).out.strip()
    assert said.startswith("2 entries, each as it was written; head 2:")
    head = said.rpartition(" ")[2]
    assert invoke("audit", "--verify", "--noted", head, "--database", database).code == 0
    other = invoke("audit", "--verify", "--noted", f"1:{head[2:]}", "--database", database)
    assert (other.code, "entry 1 is not the one that was noted" in other.err) == (1, True)
    assert "takes a head" in invoke("audit", "--verify", "--noted", "x", "--database", database).err


def test_a_changed_log_fails_the_check_and_doctor(tmp_path: Path, invoke: Invoke) -> None:
    database = filled(tmp_path, invoke)
    assert "audit log: 2 entries, each as it was written" in invoke("doctor", "--database", database).out
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("UPDATE audit_log SET principal = 'nobody' WHERE number = 1")
    checked = invoke("audit", "--verify", "--database", database)
    assert (checked.code, "entry 1 is not as it was written" in checked.err) == (1, True)
    examined = invoke("doctor", "--database", database)
    assert (examined.code, "FAILED  audit log: entry 1" in examined.out) == (1, True)
