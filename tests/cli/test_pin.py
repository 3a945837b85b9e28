"""`kalito-mcp pin`: a fact that the profile lists and first contexts show, without a conversation."""

from pathlib import Path

import anyio
import pytest

from kalito_mcp.memory import Memory
from kalito_mcp.wiring import open_memory
from tests.cli.conftest import Invoke
from tests.cli.test_records import done, refused, shown

NUTS = "Ines is allergic to nuts."
TUESDAYS = "We deploy on Tuesdays."


def context(database: Path, project: str | None) -> str:
    """What a first context of a new conversation says."""

    async def build() -> str:
        async with open_memory(database) as memory:
            narrowed: Memory = await memory.in_project(project)
            return (await narrowed.build_context(None, 1_000)).text

    return anyio.run(build)


def test_a_pin_is_in_the_profile_and_in_the_first_context_of_every_conversation(invoke: Invoke, tmp_path: Path) -> None:
    database = tmp_path / "memory.db"
    out = done(invoke, database, "pin", NUTS)
    assert out.startswith("pinned document_")
    assert out.endswith(", for every conversation\n")
    record = shown(invoke, database, out.split()[1].rstrip(","))
    assert (record["text"], record["origin"], record["scope"]) == (NUTS, "user", "person")
    assert NUTS in done(invoke, database, "profile")
    assert NUTS in done(invoke, database, "list", "pins")
    assert NUTS in context(database, None)
    assert NUTS in context(database, "boats")


def test_a_pin_of_a_project_stays_there(invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    database, shop = tmp_path / "memory.db", tmp_path / "shop"
    (shop / ".git").mkdir(parents=True)
    monkeypatch.chdir(shop)
    assert done(invoke, database, "pin", TUESDAYS, "--scope", "project").endswith("of this project\n")
    done(invoke, database, "pin", "The boats are teal.", "--project", "boats")
    done(invoke, database, "pin", NUTS, "--project", "boats", "--scope", "person")
    here, there = context(database, str(shop)), context(database, "boats")
    assert TUESDAYS in here
    assert TUESDAYS not in there
    assert "The boats are teal." in there
    assert "The boats are teal." not in here
    assert NUTS in here


def test_the_same_words_are_pinned_once_and_secrets_are_removed(invoke: Invoke, tmp_path: Path) -> None:
    database = tmp_path / "memory.db"
    first = done(invoke, database, "pin", "The password is hunter2secret.")
    assert first.splitlines()[1] == "removed and not stored: password"
    assert "hunter2secret" not in done(invoke, database, "profile")
    done(invoke, database, "pin", NUTS)
    assert done(invoke, database, "pin", NUTS).startswith("known already: document_")
    assert done(invoke, database, "list", "pins").count(NUTS) == 1
    assert "text is blank" in refused(invoke, database, "pin", "  ")
