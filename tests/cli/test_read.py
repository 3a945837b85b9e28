"""`kalito-mcp read`: a conversation page by page, and the turns around a record."""

import json
from pathlib import Path

import anyio
import pytest

from kalito_mcp.domain.records import CreatePinRequest, NewMessage, Role, short_record_id
from kalito_mcp.domain.time import from_iso
from kalito_mcp.wiring import open_memory
from tests.cli.conftest import Invoke
from tests.cli.test_records import done, refused
from tests.empty_database import lay_empty_database

LONG, OTHER = (f"{first}13270e-269e-4d37-b2a7-4de452e6b438" for first in ("65", "66"))
TWIN = "6513270e-1111-4d37-b2a7-4de452e6b438"
START = from_iso("2026-11-16T23:50:00Z")


@pytest.fixture
def talked(tmp_path: Path) -> Path:
    """A database with a conversation of sixty messages, one minute apart, and a short one."""
    database = tmp_path / "memory.db"

    async def talk() -> None:
        async with open_memory(lay_empty_database(database)) as memory:
            said = [
                NewMessage((Role.USER, Role.ASSISTANT)[n % 2], f"This is message {n}.", created_at=START + n * 60_000)
                for n in range(1, 61)
            ]
            await (await memory.in_project("/home/ann/shop")).record_messages(LONG, said)
            await memory.record_messages(OTHER, [NewMessage(Role.USER, "One line.\n\x1b[31mAnother.")])
            await memory.create_pin(CreatePinRequest(LONG, "Message thirty counts.", source_message_id="msg_30"))
            await memory.remember("note", {"text": "In no conversation."})
            await memory.forget("msg_29")
            await memory.settled()

    anyio.run(talk)
    return database


def test_a_conversation_is_read_with_its_newest_messages_last(invoke: Invoke, talked: Path) -> None:
    lines = done(invoke, talked, "read", LONG, "--limit", "3").splitlines()
    assert lines[:5] == [
        "This is message 2.",
        f"{LONG}  of shop  59 messages, begun 2026-11-16 23:51",
        f"before these: kalito-mcp read {LONG} --before 58",
        "",
        "58  user, 2026-11-17 00:48  msg_58",
    ]
    assert lines[5:] == [
        "  This is message 58.", "",
        "59  assistant, 00:49  msg_59", "  This is message 59.", "",
        "60  user, 00:50  msg_60", "  This is message 60.",
    ]  # fmt: skip


def test_a_command_that_is_named_can_be_copied(invoke: Invoke, tmp_path: Path) -> None:
    database = lay_empty_database(tmp_path / "memory.db")

    async def talk() -> None:
        async with open_memory(database) as memory:
            await memory.record_messages("Monday plans", [NewMessage(Role.USER, f"Message {n}.") for n in range(3)])

    anyio.run(talk)
    lines = done(invoke, database, "read", "Monday plans", "--before", "3", "--limit", "1").splitlines()
    assert (lines[2], lines[-1]) == (
        "before these: kalito-mcp read 'Monday plans' --before 2",
        "after these: kalito-mcp read 'Monday plans' --before 4",
    )
    shown = invoke("show", "Monday plans", "--database", str(database))
    assert shown.err.endswith("read it with: kalito-mcp read 'Monday plans'\n")


def test_the_pages_before_it_lead_to_its_beginning(invoke: Invoke, talked: Path) -> None:
    found: list[int] = []
    before = ["--before", "61"]
    while before:
        page = done(invoke, talked, "read", LONG, "--limit", "25", *before, "--json").splitlines()
        seqs = [json.loads(line)["seq"] for line in page]
        found = seqs + found
        before = ["--before", str(seqs[0])] if seqs[0] > 1 else []
    assert found == [n for n in range(1, 61) if n != 29]  # forgotten


@pytest.mark.parametrize("named", ["6513270e", "6513"])
def test_the_beginning_of_its_id_is_enough(invoke: Invoke, talked: Path, named: str) -> None:
    assert "This is message 60." in done(invoke, talked, "read", named)


def test_around_a_record_is_what_was_said_before_and_after_it(invoke: Invoke, talked: Path) -> None:
    [pin] = [json.loads(line) for line in done(invoke, talked, "list", "pins", "--json").splitlines()]
    for named in ("msg_30", "30", pin["id"]):
        lines = done(invoke, talked, "read", named, "--limit", "5").splitlines()
        assert "> 30  user, 00:20  msg_30" in lines
        shown = [line for line in lines if line.startswith("  This")]
        assert shown == [f"  This is message {n}." for n in (28, 30, 31, 32)]
        assert lines[-1] == f"after these: kalito-mcp read {LONG} --before 61"


def test_control_characters_and_further_lines_stay_in_their_message(invoke: Invoke, talked: Path) -> None:
    out = done(invoke, talked, "read", OTHER)
    assert out.splitlines()[-2:] == ["  One line.", "  \\u{1b}[31mAnother."]


@pytest.mark.parametrize("named", ["nobody", "99", "65a", "msg_99"])
def test_an_unknown_id_is_an_error_that_says_what_to_do(invoke: Invoke, talked: Path, named: str) -> None:
    assert f"no session '{named}'; check the id" in refused(invoke, talked, "read", named)


def test_a_beginning_of_several_ids_names_them(invoke: Invoke, talked: Path, tmp_path: Path) -> None:
    async def talk() -> None:
        async with open_memory(talked) as memory:
            await memory.record_messages(TWIN, [NewMessage(Role.USER, "The same eight digits.")])

    anyio.run(talk)
    for named in ("6513", "6513270e"):
        told = refused(invoke, talked, "read", named)
        assert LONG in told
        assert TWIN in told
    assert "The same eight digits." in done(invoke, talked, "read", TWIN)


def test_what_is_in_no_conversation_and_what_is_one_lead_to_the_other_command(invoke: Invoke, talked: Path) -> None:
    [note] = [json.loads(line) for line in done(invoke, talked, "list", "notes", "--json").splitlines()]
    assert f"read it with: kalito-mcp show {short_record_id(note['id'])}" in refused(invoke, talked, "read", note["id"])
    assert "read it with: kalito-mcp read 6513270e" in refused(invoke, talked, "show", "6513270e")
