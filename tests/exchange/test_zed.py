"""Threads of Zed of every release are read, also compressed ones where something is installed that unpacks them."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import pytest

from kalito_mcp.exchange import zed, zstandard
from kalito_mcp.exchange.conversation import Conversation, Home, Reading
from kalito_mcp.exchange.importer import Importer, found_in
from kalito_mcp.exchange.programs import SOURCES
from kalito_mcp.wiring import open_memory
from tests.exchange.files import needs_zstandard, packed, read

ASKED, ANSWERED = "Where is the ferry?", "At pier 4."
SOURCE = SOURCES["zed"]
FIRST = "CREATE TABLE threads (id TEXT PRIMARY KEY, summary TEXT, updated_at TEXT, data_type TEXT, data BLOB)"
LATER = ("parent_id TEXT", "folder_paths TEXT", "folder_paths_order TEXT", "created_at TEXT")


def threads(path: Path, *rows: dict[str, Any], is_old: bool = False) -> Path:
    """A database with these rows."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(FIRST)
        for column in () if is_old else LATER:
            connection.execute(f"ALTER TABLE threads ADD COLUMN {column}")
        for row in rows:
            whole = {"summary": "s", "updated_at": "2026-03-02T10:00:00+00:00", "data_type": "json", **row}
            names, marks = ", ".join(whole), ", ".join("?" * len(whole))
            connection.execute(f"INSERT INTO threads ({names}) VALUES ({marks})", list(whole.values()))
        connection.commit()
    return path


def thread(*messages: Any, **others: Any) -> str:
    return json.dumps({"version": "0.3.0", "title": "t", "messages": messages, **others})


def user(*content: Any, key: str = "u1") -> dict[str, Any]:
    return {"User": {"id": key, "content": content}}


def agent(*content: Any) -> dict[str, Any]:
    return {"Agent": {"content": content, "tool_results": {}}}


def test_what_was_said_in_a_thread_is_read_and_nothing_else(tmp_path: Path) -> None:
    mention = {"Mention": {"uri": {"File": {"abs_path": "/home/ann/harbour/pier.rs"}}, "content": "fn pier() {}"}}
    page = {"Mention": {"uri": {"Fetch": {"url": "https://a.example/"}}, "content": "long"}}
    messages = (
        user({"Text": "Look at "}, mention, {"Text": " and "}, page, {"Text": "."}, {"Image": {"source": "x"}}),
        agent({"Thinking": {"text": "hm", "signature": None}}, {"Text": "Looking."}, {"ToolUse": {"id": "t"}}),
        agent({"Text": ANSWERED}, {"RedactedThinking": "x"}),
        "Resume",
        user(key="u2"),
        {"Other": {}},
    )
    path = threads(
        tmp_path / "zed" / "threads" / "threads.db",
        {
            "id": "z1",
            "data": thread(*messages, model={"provider": "a", "model": "sonnet"}).encode(),
            "created_at": "2026-03-01T10:00:00+00:00",
            "folder_paths": "/home/ann/boats\n/home/ann/harbour",
            "folder_paths_order": "1,0",
        },
        {"id": "z2", "data": thread(user({"Text": "inner"})), "parent_id": "z1"},
        {"id": "z3", "data": thread(user({"Text": "inner"}), subagent_context={"depth": 1})},
        {"id": "z4", "data": "{"},
        {"id": "z5", "data": b"", "data_type": "lz4"},
    )
    assert list(SOURCE.find(Home(tmp_path, {"XDG_DATA_HOME": str(tmp_path)}))) == [path]
    found, reading = read(SOURCE, path)
    assert [(turn.role, turn.text) for turn in found["z1"]] == [
        ("user", "Look at @pier.rs and @https://a.example/."),
        ("assistant", "Looking."),
        ("assistant", ANSWERED),
    ]
    assert [turn.model for turn in found["z1"]] == [None, "sonnet", "sonnet"]
    assert list(found) == ["z1"]
    assert reading.skipped == {
        "image or file": 3,
        "thinking": 2,
        "tool call or output": 1,
        "message of an unknown kind": 1,
        "sub-agent": 2,
        "conversation of an unknown kind": 2,
    }
    [conversation] = SOURCE.read(Reading(path))
    assert isinstance(conversation, Conversation)
    assert (conversation.folder, conversation.started_at) == ("/home/ann/harbour", 1_772_359_200_000)


def test_an_answer_keeps_its_key_while_the_thread_grows(tmp_path: Path) -> None:
    said = [user({"Text": ASKED}), agent({"Text": "ok"}), agent({"Text": "ok"})]
    [short] = read(SOURCE, threads(tmp_path / "a.db", {"id": "z1", "data": thread(*said)}))[0].values()
    more = [*said, user({"Text": "And the tram?"}, key="u2"), agent({"Text": "ok"})]
    [grown] = read(SOURCE, threads(tmp_path / "b.db", {"id": "z1", "data": thread(*more)}))[0].values()
    assert [turn.key for turn in grown[:3]] == [turn.key for turn in short]
    assert len({turn.key for turn in grown}) == 5
    # Whoever asks the same message again gets another answer, which is another message.
    again = [said[0], agent({"Text": ANSWERED})]
    [other] = read(SOURCE, threads(tmp_path / "c.db", {"id": "z1", "data": thread(*again)}))[0].values()
    assert other[0].key == short[0].key
    assert other[1].key not in {turn.key for turn in grown}


@pytest.mark.parametrize("version", ["0.1.0", "0.2.0", None])
def test_threads_of_the_first_releases_are_read(tmp_path: Path, version: str | None) -> None:
    def said(role: str, text: str, **others: Any) -> dict[str, Any]:
        words = {"text": text} if version is None else {"segments": [{"type": "text", "text": text}]}
        return {"id": 1, "role": role, **words, **others}

    messages = [
        said("system", "rules"),
        said("user", ASKED, context="<context>a file</context>", creases=[]),
        said("assistant", "Looking.", tool_uses=[{"id": "t", "name": "read", "input": {}}]),
        said("user", "Here is the result", tool_results=[{"tool_use_id": "t", "content": "pier 4"}]),
        said("user", "hidden", is_hidden=True),
        {"id": 3, "role": "assistant", "segments": [{"type": "thinking", "text": "hm"}, {"type": "RedactedThinking"}]},
        said("assistant", ANSWERED),
    ]
    snapshot = {"worktree_snapshots": [{"worktree_path": "/home/ann/harbour"}]}
    whole = {"summary": "t", "messages": messages, "initial_project_snapshot": snapshot}
    row = {"id": "z1", "data": json.dumps(whole if version is None else {"version": version, **whole})}
    path = threads(tmp_path / "threads.db", row, is_old=True)
    found, _ = read(SOURCE, path)
    assert [turn.text for turn in found["z1"]] == [ASKED, "Looking.", ANSWERED]
    [conversation] = SOURCE.read(Reading(path))
    assert isinstance(conversation, Conversation)
    assert conversation.folder == "/home/ann/harbour"


@needs_zstandard
def test_compressed_threads_are_unpacked_and_torn_ones_counted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    whole = packed(thread(user({"Text": ASKED})).encode())
    rows = [whole, whole[:-9], b"", b"no frame", packed(b"x" * 5_000)]
    path = threads(
        tmp_path / "threads.db",
        *({"id": f"z{place}", "data": raw, "data_type": "zstd"} for place, raw in enumerate(rows)),
    )
    monkeypatch.setattr(zed, "LONGEST", 4_000)
    found, reading = read(SOURCE, path)
    assert [(key, turn.text) for key, turns in found.items() for turn in turns] == [("z0", ASKED)]
    assert reading.skipped == {"conversation that is torn or too long": 4}
    assert reading.is_whole


def test_without_the_extra_it_says_what_to_install_and_reads_the_file_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(zstandard, "_MODULES", ())
    compressed = {"id": "z1", "data": packed(thread(user({"Text": ASKED})).encode()), "data_type": "zstd"}
    path = threads(tmp_path / "threads.db", compressed, {"id": "z2", "data": thread(user({"Text": "And the tram?"}))})

    async def imported() -> tuple[int, int]:
        async with open_memory(tmp_path / "memory.db") as memory:
            report = await Importer(memory).run(found_in(SOURCE, [path]))
            assert report.skipped == {"compressed thread of Zed; pip install 'kalito-mcp[zed]' and import again": 1}
            return report.messages, report.present

    assert [anyio.run(imported), anyio.run(imported)] == [(1, 0), (0, 1)]
