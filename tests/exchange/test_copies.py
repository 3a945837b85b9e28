"""A conversation that begins with a copy of another one: each message is stored once, wherever the files lie, whichever
is imported first, and also if hooks recorded the original.
"""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from kalito_mcp.capture.capturer import Capture
from kalito_mcp.exchange.conversation import moment
from kalito_mcp.exchange.importer import Importer, found_in
from kalito_mcp.exchange.programs import SOURCES
from kalito_mcp.memory import Memory
from kalito_mcp.wiring import open_memory
from tests.exchange.files import SESSION, Transcript, read
from tests.exchange.test_captured import prompt, stop

pytestmark = pytest.mark.anyio
FORK = "1c9f7a52-3c1e-4d44-9a52-000000000001"
BEGINNING = ["What colour is the sloop?", "The sloop is ochre.", "And the boom?", "The boom is spruce."]
REST = ["Thanks", "Gladly."]
OWN = ["Thanks", "You are welcome."]

FORMS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "forkedFrom": lambda one: {**one, "sessionId": FORK, "forkedFrom": {"sessionId": SESSION}},
    "id of the first": lambda one: one,
    "own id": lambda one: {**one, "sessionId": FORK},
    "new uuids": lambda one: {
        **one,
        "uuid": f"new{one['uuid']}",
        "parentUuid": one["parentUuid"] and f"new{one['parentUuid']}",
        "sessionId": FORK,
        "forkedFrom": {"sessionId": SESSION},
    },
}


def talk(told: Transcript, texts: list[str]) -> None:
    for place, text in enumerate(texts):
        if place % 2:
            told.assistant(text, message_id=f"m{told.session[0]}{len(told.records)}")
        else:
            told.user(text)


def files(tmp_path: Path, form: str) -> dict[str, Path]:
    """The transcript of a conversation, and that of its fork in another folder."""
    first, fork = Transcript(), Transcript(FORK, "/home/ann/harbour/.claude/worktrees/w")
    talk(first, BEGINNING)
    fork.records = [FORMS[form](record) for record in first.records]
    fork.last = fork.records[-1]["uuid"]
    talk(first, REST)
    talk(fork, OWN)
    for record in fork.records[len(BEGINNING) :]:
        record["timestamp"] = record["timestamp"].replace("T10", "T11")
    return {"first": first.write(tmp_path / "a"), "fork": fork.write(tmp_path / "b")}


async def imported(memory: Memory, path: Path) -> None:
    await Importer(memory).run(found_in(SOURCES["claude-code"], [path]))


async def stored(memory: Memory) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for session in await memory.conversations.recent(limit=100):
        found[session.id] = [
            turn.text async for turns in memory.conversations.turns(session) for turn in turns if turn.text
        ]
    return found


CASES = [
    (form, order)
    for form in FORMS
    for order in ("first fork", "fork first", "fork", "live first fork", "live fork first")
    # Then nothing names the other conversation, or has an id of it.
    if (form, order) != ("new uuids", "fork first")
]


@pytest.mark.parametrize(("form", "order"), CASES)
async def test_what_a_fork_has_in_common_is_stored_once_and_its_own_rest_is_its_own(
    tmp_path: Path, form: str, order: str
) -> None:
    paths = files(tmp_path, form)
    async with open_memory(tmp_path / "memory.db") as memory:
        for step in order.split():
            if step == "live":
                await report(memory, paths["first"])
            else:
                await imported(memory, paths[step])
        for step in set(order.split()) - {"live"}:
            # Moved, and so read from its beginning.
            await imported(memory, paths[step].rename(tmp_path / paths[step].name))
        found = await stored(memory)
    if order.startswith("fork"):
        assert found == {FORK: BEGINNING + OWN, **({SESSION: REST} if "first" in order else {})}
    else:
        assert found == {SESSION: BEGINNING + REST, FORK: OWN}


async def report(memory: Memory, path: Path) -> None:
    """Let hooks report what is in a transcript, when it is said."""

    async def opened() -> Memory:
        return memory

    taking = Capture(opened)
    for number, line in enumerate(path.read_text().splitlines()):
        record = json.loads(line)
        content = record["message"]["content"]
        event, payload = stop(content[0]["text"]) if record["type"] == "assistant" else prompt(content)
        told = {"host": "claude-code", "event": event, "payload": {"session_id": SESSION, **payload}, "id": str(number)}
        await taking.take({**told, "at_ms": (moment(record["timestamp"]) or 0) + 900}, is_late=True)


async def test_what_two_conversations_say_by_chance_is_stored_for_both(tmp_path: Path) -> None:
    first, second = Transcript(), Transcript(FORK)
    talk(first, [*REST, *BEGINNING])
    talk(second, [*REST, *OWN])
    for told, day in ((first, 1), (second, 2)):
        for record in told.records:
            record["timestamp"] = record["timestamp"].replace("03-01", f"03-0{day}")
    async with open_memory(tmp_path / "memory.db") as memory:
        await report(memory, first.write(tmp_path))
        await imported(memory, second.write(tmp_path))
        assert await stored(memory) == {SESSION: [*REST, *BEGINNING], FORK: [*REST, *OWN]}


async def test_parts_of_an_answer_that_hooks_missed_are_stored_once_of_a_fork_too(tmp_path: Path) -> None:
    first, fork = Transcript(), Transcript(FORK)
    first.user(BEGINNING[0])
    first.assistant("I look.", message_id="m1")
    first.assistant(BEGINNING[1], message_id="m2")
    fork.records = [{**record, "sessionId": FORK} for record in first.records]
    fork.last = first.last
    talk(fork, OWN)
    live = Transcript()
    live.records = [first.records[0], first.records[2]]
    async with open_memory(tmp_path / "memory.db") as memory:
        await report(memory, live.write(tmp_path / "live"))
        await imported(memory, fork.write(tmp_path))
        await imported(memory, first.write(tmp_path))
        assert await stored(memory) == {SESSION: BEGINNING[:2], FORK: ["I look.", *OWN]}


def opencode(path: Path, fork: dict[str, Any], *, is_new: bool) -> Path:
    """A database with a conversation, a sub-agent that it called, and a fork of it."""
    about = {"directory": "/home/ann/harbour", "title": "The sloop", "parent_id": None, "fork_session_id": None}
    sessions = {
        "ses_1": (about, BEGINNING + REST),
        "ses_2": ({**about, "title": "Find sloops (@explore subagent)", "parent_id": "ses_1"}, ["Find all", "Two"]),
        "ses_3": ({**about, **fork}, [*BEGINNING, "And the mast?", "Oak."]),
    }
    with closing(sqlite3.connect(path)) as connection:
        table = "session_v2" if is_new else "session"
        connection.execute(f"CREATE TABLE {table} (id, time_created, directory, title, parent_id, fork_session_id)")
        connection.execute("CREATE TABLE session_message (id, session_id, type, seq, time_created, data)")
        connection.execute("CREATE TABLE message (id, session_id, time_created, data)")
        connection.execute("CREATE TABLE part (id, message_id, data)")
        for number, (session_id, (fields, texts)) in enumerate(sessions.items()):
            connection.execute(f"INSERT INTO {table} VALUES (?, ?, ?, ?, ?, ?)", (session_id, number, *fields.values()))
            for place, text in enumerate(texts):
                key, role = f"msg_{number}{place}", ("user", "assistant")[place % 2]
                part = {"type": "text", "text": text}
                if is_new:
                    data = json.dumps({"text": text} if role == "user" else {"content": [part]})
                    row = (key, session_id, role, place, place, data)
                    connection.execute("INSERT INTO session_message VALUES (?, ?, ?, ?, ?, ?)", row)
                else:
                    row = (key, session_id, place, json.dumps({"role": role}))
                    connection.execute("INSERT INTO message VALUES (?, ?, ?, ?)", row)
                    connection.execute("INSERT INTO part VALUES (?, ?, ?)", (key, key, json.dumps(part)))
        connection.commit()
    return path


@pytest.mark.parametrize("is_new", [True, False])
@pytest.mark.parametrize(
    "fork",
    [
        {"fork_session_id": "ses_1", "title": "Renamed"},
        {"parent_id": "ses_1", "title": "The sloop (fork #1)"},
        {"parent_id": "ses_1", "title": "Renamed"},
        {"title": "The sloop (fork #1)"},
    ],
)
def test_a_fork_of_opencode_is_told_from_a_sub_agent(tmp_path: Path, fork: dict[str, Any], is_new: bool) -> None:
    found, reading = read(SOURCES["opencode"], opencode(tmp_path / "opencode.db", fork, is_new=is_new))
    texts = {session: [turn.text for turn in turns] for session, turns in found.items()}
    assert texts == {"ses_1": BEGINNING + REST, "ses_3": ["And the mast?", "Oak."]}
    assert reading.skipped == {"copy of a message of another session": 4, "sub-agent": 1}


async def test_a_fork_of_codex_that_is_imported_before_its_original_is_there_shares_its_beginning(
    tmp_path: Path,
) -> None:
    texts = {"s2": [*BEGINNING, "And the mast?", "Oak."], "s1": [*BEGINNING, *REST]}
    paths = []
    for place, (session_id, said) in enumerate(texts.items()):
        meta = {"id": session_id, "cwd": "/home/ann/harbour", "forked_from_id": "s1" if session_id == "s2" else None}
        records = [{"timestamp": f"2026-03-0{place + 1}T10:00:00Z", "type": "session_meta", "payload": meta}]
        for number, text in enumerate(said):
            role, kind = (("user", "input_text"), ("assistant", "output_text"))[number % 2]
            payload = {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}
            at = f"2026-03-0{place + 1}T10:00:0{number}Z"
            records.append({"timestamp": at, "type": "response_item", "payload": payload})
        paths.append(tmp_path / f"rollout-{session_id}.jsonl")
        paths[-1].write_text("".join(f"{json.dumps(record)}\n" for record in records))
    original = paths[1].rename(tmp_path / "later")
    async with open_memory(tmp_path / "memory.db") as memory:
        for missing in (original, None):
            if missing is None:
                original.rename(paths[1])
            await Importer(memory).run(found_in(SOURCES["codex"], [path for path in paths if path.exists()]))
        # Moved, and so read from the beginning, the fork with its original beside it.
        moved = [path.rename(path.with_name(f"{path.stem}-{path.stem[-2:]}.jsonl")) for path in paths]
        await Importer(memory).run(found_in(SOURCES["codex"], moved))
        assert await stored(memory) == {"s2": texts["s2"], "s1": REST}


async def test_an_edited_message_of_the_original_does_not_come_with_its_fork(tmp_path: Path) -> None:
    paths = files(tmp_path, "own id")
    async with open_memory(tmp_path / "memory.db") as memory:
        await imported(memory, paths["first"])
        await memory.update_memory("msg_1", {"text": "Which?"}, expected_revision=1)
        await imported(memory, paths["fork"])
        assert await stored(memory) == {SESSION: ["Which?", *BEGINNING[1:], *REST], FORK: OWN}
