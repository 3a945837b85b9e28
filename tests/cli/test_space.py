"""`kalito-mcp space`."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Invoke
from tests.empty_database import lay_empty_database


@pytest.fixture
def database(tmp_path: Path) -> str:
    return str(lay_empty_database(tmp_path / "memory.db"))


def test_without_a_role_somebody_new_is_a_writer_and_a_member_keeps_theirs(invoke: Invoke, database: str) -> None:
    invoke("space", "create", "backend", "--database", database)
    invoke("user", "add", "anna", "--database", database)
    added = [
        invoke("space", "add", "backend", "anna", *role, "--database", database).out
        for role in ((), ("--role", "curator"), (), ("--role", "reader"), ())
    ]
    assert added == [
        "anna is a writer of backend\n",
        "anna is a curator of backend\n",
        "anna is a curator of backend already; --role gives them another role\n",
        "anna is a reader of backend\n",
        "anna is a reader of backend already; --role gives them another role\n",
    ]
    listed = json.loads(invoke("user", "list", "--json", "--database", database).out.splitlines()[-1])
    assert listed["spaces"] == {"backend": "reader"}


def test_a_hint_quotes_a_name_with_a_blank(invoke: Invoke, database: str) -> None:
    made = invoke("space", "create", "Team Rockets", "--database", database)
    assert "`kalito-mcp space add 'Team Rockets' USER`" in made.out
    added = invoke("space", "add", "Team Rockets", "Anna Berg", "--database", database)
    assert "`kalito-mcp user add 'Anna Berg'`" in added.out
