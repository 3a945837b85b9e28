"""After a change of a message, the command line names the records that still repeat its old text."""

from pathlib import Path
from typing import NamedTuple

import anyio
import pytest

from kalito_mcp.domain.records import CreatePinRequest, NewMessage, Role, short_record_id
from kalito_mcp.wiring import open_memory
from tests.cli.conftest import Invoke
from tests.cli.test_records import COLOUR, done


class Changed(NamedTuple):
    """A database with a message `msg_1`, the lines of what speaks of it, and the id of the pin among that."""

    database: Path
    says: str
    rewritten: str
    pin: str


@pytest.fixture
def changed(tmp_path: Path) -> Changed:
    """A pin and a summary speak of `msg_1`."""
    database = tmp_path / "memory.db"

    async def fill() -> tuple[str, str]:
        async with open_memory(database) as memory:
            await memory.record_messages("trip", [NewMessage(Role.USER, "We fly to Oslo on May 3.")])
            request = CreatePinRequest("trip", f"Flight:\nOslo {COLOUR}.", source_message_id="msg_1")
            pin = await memory.create_pin(request)
            await memory.settled()
            [summary] = await memory.conversations.summarize("trip")
            return short_record_id(pin.id), short_record_id(summary.id)

    pin, summary = anyio.run(fill)
    words = "Flight: Oslo \\u{1b}[31mred\\u{9b}2J\\u{202e}."
    return Changed(
        database,
        says=f"{pin} came from msg_1 and still says: {words}",
        rewritten=f"rewritten: {summary} (`kalito-mcp history ID` shows the earlier text)",
        pin=pin,
    )


def test_a_corrected_message_tells_of_pins_that_stay_and_summaries_that_do_not(
    invoke: Invoke, changed: Changed
) -> None:
    edited = done(invoke, changed.database, "edit", "msg_1", "--text", "We fly to Bergen on May 4.").splitlines()
    assert edited[-3:] == ["msg_1 is now at revision 2", changed.says, changed.rewritten]
    assert done(invoke, changed.database, "revert", "msg_1", "1").splitlines()[-2:] == [changed.says, changed.rewritten]


def test_a_forgotten_message_tells_the_same_and_a_restored_one_nothing(invoke: Invoke, changed: Changed) -> None:
    assert done(invoke, changed.database, "forget", "1").splitlines() == [
        "forgot msg_1",
        changed.says,
        changed.rewritten,
    ]
    assert done(invoke, changed.database, "forget", "1").splitlines() == ["msg_1 is forgotten already"]
    assert done(invoke, changed.database, "restore", "1").splitlines() == ["restored msg_1"]


def test_an_automatic_pin_follows_and_is_not_reported(invoke: Invoke, changed: Changed) -> None:
    text = "Ella is allergic to hazelnuts."
    asked = f"Remember: {text}"
    out = done(invoke, changed.database, "edit", "msg_1", "--text", asked, "--set", "name=Bob")
    assert f"Bob: {text}" in done(invoke, changed.database, "search", "hazelnuts", "--type", "pin")
    assert out.splitlines()[-2:] == [changed.says, changed.rewritten]


def test_a_forgotten_pin_is_not_reported(invoke: Invoke, changed: Changed) -> None:
    assert done(invoke, changed.database, "forget", changed.pin) == f"forgot {changed.pin}\n"
    out = done(invoke, changed.database, "edit", "msg_1", "--text", "We sail.")
    assert out.splitlines()[-2:] == ["msg_1 is now at revision 2", changed.rewritten]
