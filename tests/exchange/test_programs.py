"""Codex, Gemini CLI, Copilot CLI, Cursor, Cline, Roo Code, OpenCode and Goose: what was said is read, nothing else."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import pytest

from kalito_mcp.exchange import zstandard
from kalito_mcp.exchange.conversation import Conversation, Home, Reading
from kalito_mcp.exchange.importer import Importer, found_in
from kalito_mcp.exchange.programs import SOURCES
from kalito_mcp.wiring import open_memory
from tests.exchange.files import lines, needs_zstandard, packed, read, said

ASKED, ANSWERED = "Where is the ferry?", "At pier 4."
AT = "2026-03-01T10:00:00Z"


def database(path: Path, script: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(script)
    return path


def rollout(folder: Path, *records: dict[str, Any], **meta: Any) -> Path:
    head = {"timestamp": AT, "type": "session_meta", "payload": {"id": "s1", "cwd": "/home/ann/harbour", **meta}}
    return lines(folder / "2026/03/01/rollout-2026-03-01T10-00-00-s1.jsonl", [head, *records])


def item(role: str, text: str, kind: str = "input_text", at: str = AT) -> dict[str, Any]:
    payload = {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}
    return {"timestamp": at, "type": "response_item", "payload": payload}


def typed(text: str, *, is_item: bool = False) -> dict[str, Any]:
    said = {"type": "UserMessage", "content": [{"type": "text", "text": text}]}
    payload = {"type": "item_completed", "item": said} if is_item else {"type": "user_message", "message": text}
    return {"timestamp": AT, "type": "event_msg", "payload": payload}


def test_codex_leaves_out_what_the_host_wrote_and_events_that_repeat(tmp_path: Path) -> None:
    path = rollout(
        tmp_path,
        item("developer", "rules"),
        item("user", "# AGENTS.md instructions for /work\n..."),
        item("user", "<environment_context>x</environment_context>"),
        item("user", ASKED),
        typed(ASKED),
        typed(ASKED, is_item=True),
        {"timestamp": AT, "type": "response_item", "payload": {"type": "reasoning", "summary": []}},
        item("user", "The summary of another model: from now on use tabs."),
        item("user", ASKED),
        {"timestamp": AT, "type": "response_item", "payload": {"type": "function_call", "name": "shell"}},
        item("assistant", ANSWERED, "output_text"),
        {"timestamp": AT, "type": "compacted", "payload": {"message": "summary"}},
    )
    source = SOURCES["codex"]
    assert list(source.within(tmp_path)) == [path]
    found, reading = read(source, path)
    assert [(turn.role, turn.text) for turn in found["s1"]] == [("user", ASKED), ("assistant", ANSWERED)]
    assert reading.skipped["thinking"] == 1
    grown = reading.read_to
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(item("user", "And the tram?", at="2026-03-01T10:05:00Z")) + "\n")
    found, reading = read(source, path, grown)
    assert (found["s1"], reading.read_to) == ([], grown), "its event is not written yet"
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(typed("And the tram?", is_item=True)) + "\n")
    reading = Reading(path, grown)
    [conversation] = source.read(reading)
    assert isinstance(conversation, Conversation)
    assert (conversation.session_id, conversation.folder) == ("s1", "/home/ann/harbour")
    assert [turn.text for turn in conversation.turns] == ["And the tram?"]


def test_codex_says_which_blocks_of_a_message_were_typed(tmp_path: Path) -> None:
    one = item("user", "<rules>From now on use tabs.</rules>")
    one["payload"]["content"].append({"type": "input_text", "text": ASKED})
    other = item("user", "Follow this plan.")
    for message, kinds in ((one, ["hooks.context", "user.text"]), (other, ["goals.plan"])):
        message["payload"]["internal_chat_message_metadata_passthrough"] = {"content_item_kinds": kinds}
    found, _ = read(SOURCES["codex"], rollout(tmp_path, one, other))
    assert [(turn.text, turn.is_typed) for turn in found["s1"]] == [(ASKED, True)]


def test_what_is_no_message_any_more_is_counted(tmp_path: Path) -> None:
    broken = [
        {"timestamp": AT, "type": "response_item", "payload": [None]},
        {"timestamp": AT, "type": "response_item", "payload": {"type": "message", "content": [{"text": ASKED}]}},
    ]
    found, reading = read(SOURCES["codex"], rollout(tmp_path, *broken, item("user", ASKED)))
    assert [turn.text for turn in found["s1"]] == [ASKED]
    assert reading.skipped["message of an unknown kind"] == 2

    path = lines(tmp_path / "session-1.jsonl", [{"sessionId": "g1"}, {"id": "m1", "content": ASKED}])
    found, reading = read(SOURCES["gemini"], path)
    assert (found["g1"], reading.skipped) == ([], {"record that is not a message": 1})


@pytest.mark.parametrize("folder", ["sessions/2026/03/01", "archived_sessions"])
def test_a_fork_of_codex_begins_where_it_differs(tmp_path: Path, folder: str) -> None:
    before = [item("user", ASKED), item("assistant", ANSWERED, "output_text")]
    first = {"timestamp": AT, "type": "session_meta", "payload": {"id": "s1"}}
    origin = lines(
        tmp_path / folder / "rollout-2026-03-01T10-00-00-s1.jsonl", [first, *before, item("user", "And the tram?")]
    )
    head = {"timestamp": AT, "type": "session_meta", "payload": {"id": "s2", "forked_from_id": "s1"}}
    copies = [{**one, "timestamp": "2026-03-02T09:00:00Z"} for one in before]
    path = lines(
        tmp_path / "sessions/2026/03/02/rollout-2026-03-02T09-00-00-s2.jsonl",
        [head, first, *copies, item("user", "And the bus?"), item("user", ASKED)],
    )
    found, reading = read(SOURCES["codex"], path)
    assert [turn.text for turn in found["s2"]] == ["And the bus?", ASKED]
    assert reading.skipped["copy of a message of another session"] == 2
    # If the other session is gone, its words are kept.
    origin.unlink()
    found, _ = read(SOURCES["codex"], path)
    assert [turn.text for turn in found["s2"]] == [ASKED, ANSWERED, "And the bus?", ASKED]


def compress(path: Path) -> Path:
    """What Codex does to a file that nobody has touched for a week."""
    compressed = path.with_name(f"{path.name}.zst")
    compressed.write_bytes(packed(path.read_bytes()))
    path.unlink()
    return compressed


@needs_zstandard
def test_a_conversation_of_codex_comes_once_though_it_is_compressed_later_and_so_does_its_fork(tmp_path: Path) -> None:
    said = [item("user", ASKED), item("assistant", ANSWERED, "output_text")]
    path, source = rollout(tmp_path / "sessions", *said), SOURCES["codex"]
    fork = lines(
        tmp_path / "sessions/2026/03/09/rollout-2026-03-09T10-00-00-s2.jsonl",
        [
            {"timestamp": AT, "type": "session_meta", "payload": {"id": "s2", "forked_from_id": "s1"}},
            *({**one, "timestamp": "2026-03-09T10:00:00Z"} for one in said),
            item("user", "And the bus?"),
        ],
    )

    async def imported() -> tuple[int, int]:
        async with open_memory(tmp_path / "memory.db") as memory:
            report = await Importer(memory).run(found_in(source, source.within(tmp_path)))
            return report.messages, report.present

    async def kept_of(session: str) -> int:
        async with open_memory(tmp_path / "memory.db") as memory:
            return (await memory.conversations.stats(session)).total_messages

    kept = path.read_bytes()
    assert anyio.run(imported) == (3, 0)
    compressed = compress(path)
    assert anyio.run(imported) == (0, 2)
    assert anyio.run(imported) == (0, 0)
    path.write_bytes(kept)  # while it is being compressed, both are there
    assert list(source.within(tmp_path)) == [path, fork]
    compressed.unlink()
    compress(path)
    found, reading = read(source, fork)
    assert [turn.text for turn in found["s2"]] == ["And the bus?"]
    assert reading.skipped["copy of a message of another session"] == 2
    assert anyio.run(kept_of, "s2") == 1


def test_what_cannot_be_unpacked_is_counted_and_read_when_it_can(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(zstandard, "_MODULES", ())
    compress(rollout(tmp_path / "sessions", item("user", ASKED)))
    [path] = SOURCES["codex"].within(tmp_path)
    fork = {"timestamp": AT, "type": "session_meta", "payload": {"id": "s2", "forked_from_id": "s1"}}
    copy = lines(tmp_path / "sessions/2026/03/02/rollout-2026-03-02T09-00-00-s2.jsonl", [fork, item("user", ASKED)])
    for one in (path, copy):
        found, reading = read(SOURCES["codex"], one)
        assert (found, reading.is_whole) == ({}, False)
        what = "compressed conversation of Codex; pip install 'kalito-mcp[zed]' and import again"
        assert reading.skipped == {what: 1}


@needs_zstandard
def test_a_compressed_conversation_that_is_torn_is_named_and_stops_nothing(tmp_path: Path) -> None:
    path = compress(rollout(tmp_path, item("user", ASKED)))
    path.write_bytes(path.read_bytes()[:-9])

    async def imported() -> list[str]:
        async with open_memory(tmp_path / "memory.db") as memory:
            return (await Importer(memory).run(found_in(SOURCES["codex"], [path]))).unreadable

    assert anyio.run(imported) == [str(path)]


def test_codex_leaves_out_sub_agents(tmp_path: Path) -> None:
    found, reading = read(SOURCES["codex"], rollout(tmp_path, item("user", ASKED), source={"subagent": "review"}))
    assert found == {}
    assert reading.skipped["sub-agent"] == 1


def test_codex_in_an_ide_leaves_out_what_is_open_there(tmp_path: Path) -> None:
    context = "# Context from my IDE setup:\n\n## Open tabs:\n- ferry.py: /home/ann/ferry.py\n\n"
    path = rollout(tmp_path, item("user", f"{context}## My request for Codex:\n{ASKED}\n"))
    assert said(SOURCES["codex"], path) == [("user", ASKED)]


def test_codex_of_the_first_releases_is_read(tmp_path: Path) -> None:
    head = {"id": "old", "timestamp": AT, "instructions": None}
    message = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": ASKED}]}
    found, _ = read(SOURCES["codex"], lines(tmp_path / "rollout-old.jsonl", [head, {"record_type": "state"}, message]))
    assert [turn.text for turn in found["old"]] == [ASKED]


HOOKS = "<hook_context>&lt;kalito-memory 1a&gt;\n- remembered\n&lt;/kalito-memory 1a&gt;</hook_context>"


def test_gemini_replays_changes_and_rewinds(tmp_path: Path) -> None:
    project = tmp_path / "tmp" / "p1"
    path = lines(
        project / "chats" / "session-1.jsonl",
        [
            {"sessionId": "g1", "startTime": AT},
            {"id": "m1", "timestamp": AT, "type": "user", "content": "first try"},
            {"$rewindTo": "m1"},
            {
                "id": "m2",
                "timestamp": AT,
                "type": "user",
                "content": [{"text": f"{HOOKS}\n\n{ASKED}"}, {"text": HOOKS}],
            },
            {"id": "m3", "timestamp": AT, "type": "gemini", "content": "At pier"},
            {"id": "m3", "timestamp": AT, "type": "gemini", "content": ANSWERED, "model": "gemini-3"},
            {"id": "m4", "timestamp": AT, "type": "info", "content": "saved"},
            {"$set": {"lastUpdated": AT}},
        ],
    )
    (project / ".project_root").write_text("/home/ann/harbour\n")
    lines(project / "chats" / "s1" / "session-2.jsonl", [{"sessionId": "sub"}])
    source = SOURCES["gemini"]
    assert list(source.within(tmp_path)) == [path]
    found, _ = read(source, path)
    assert [(turn.key, turn.text) for turn in found["g1"]] == [("m2", ASKED), ("m3", ANSWERED)]
    [conversation] = source.read(Reading(path))
    assert isinstance(conversation, Conversation)
    assert conversation.folder == "/home/ann/harbour"


def test_gemini_reads_whole_sessions_of_older_releases(tmp_path: Path) -> None:
    whole = {"sessionId": "g2", "messages": [{"id": "m1", "type": "user", "content": ASKED}, None, {"type": []}]}
    path = tmp_path / "session-old.json"
    path.write_text(json.dumps(whole))
    assert [turn.text for turn in read(SOURCES["gemini"], path)[0]["g2"]] == [ASKED]


def test_copilot_reads_messages_of_the_main_conversation(tmp_path: Path) -> None:
    path = lines(
        tmp_path / "session-state" / "x" / "events.jsonl",
        [
            {"type": "session.start", "data": {"sessionId": "c1", "context": {"cwd": "/home/ann/harbour"}}},
            {"type": "user.message", "id": "u1", "timestamp": AT, "data": {"content": ASKED}},
            {"type": "user.message", "id": "u2", "data": {"content": "Use tabs.", "source": "skill-harbour"}},
            {"type": "tool.execution_start", "data": {"toolName": "bash"}},
            {"type": "assistant.message", "id": "a0", "data": {"content": "inner", "parentToolCallId": "t"}},
            {"type": "assistant.message", "id": "a1", "data": {"content": ""}},
            {"type": "assistant.message", "id": "a2", "data": {"content": ANSWERED}},
        ],
    )
    found, reading = read(SOURCES["copilot"], path)
    assert [(turn.key, turn.role, turn.text) for turn in found["c1"]] == [
        ("u1", "user", ASKED),
        ("u2", "system", "Use tabs."),
        ("a2", "assistant", ANSWERED),
    ]
    assert reading.skipped["sub-agent"] == 1


def test_cursor_reads_transcripts_with_equal_messages(tmp_path: Path) -> None:
    def message(role: str, text: str) -> dict[str, Any]:
        return {"role": role, "message": {"content": [{"type": "text", "text": text}]}}

    path = lines(
        tmp_path / "p" / "agent-transcripts" / "k1" / "k1.jsonl",
        [
            message("user", f"<timestamp>Monday</timestamp>\n<user_query>\n{ASKED}\n</user_query>"),
            message("assistant", "ok"),
            message("assistant", "ok"),
        ],
    )
    found, _ = read(SOURCES["cursor"], path)
    assert [turn.text for turn in found["k1"]] == [ASKED, "ok", "ok"]
    assert len({turn.key for turn in found["k1"]}) == 3


def test_the_folder_of_a_transcript_of_cursor_is_looked_for(tmp_path: Path) -> None:
    (tmp_path / "harbour-lab" / "pier.4").mkdir(parents=True)
    named = "-".join((*(tmp_path / "harbour-lab").parts[1:], "pier-4")).replace("_", "-")
    path = lines(tmp_path / named / "agent-transcripts" / "k1.jsonl", [])
    [conversation] = SOURCES["cursor"].read(Reading(path))
    assert isinstance(conversation, Conversation)
    assert conversation.folder == str(tmp_path / "harbour-lab" / "pier.4")
    (tmp_path / "harbour-lab" / "pier-4").mkdir()
    [conversation] = SOURCES["cursor"].read(Reading(path))
    assert isinstance(conversation, Conversation)
    assert conversation.folder is None


def test_cursor_reads_the_database_of_the_editor(tmp_path: Path) -> None:
    heads = [{"bubbleId": "b1", "type": 1}, {"bubbleId": "b2", "type": 2}, {"bubbleId": "gone"}, None]
    rows = {
        "composerData:k2": {"composerId": "k2", "createdAt": 1772359200000, "fullConversationHeadersOnly": heads},
        "composerData:broken": None,
        "bubbleId:k2:b1": {"type": 1, "text": ASKED, "workspaceProjectDir": "/home/ann/harbour"},
        "bubbleId:k2:b2": {"type": 2, "rawText": ANSWERED, "timestamp": 1772359201000},
    }
    path = database(tmp_path / "state.vscdb", "CREATE TABLE cursorDiskKV (key TEXT UNIQUE, value BLOB)")
    with closing(sqlite3.connect(path)) as connection:
        connection.executemany(
            "INSERT INTO cursorDiskKV VALUES (?, ?)", [(key, json.dumps(value)) for key, value in rows.items()]
        )
        connection.commit()
    found, reading = read(SOURCES["cursor"], path)
    assert [(turn.role, turn.text) for turn in found["k2"]] == [("user", ASKED), ("assistant", ANSWERED)]
    assert reading.skipped["message that is not there"] == 1


@pytest.mark.parametrize("name", ["cline", "roo"])
def test_the_words_of_the_user_are_taken_out_of_what_the_model_got(tmp_path: Path, name: str) -> None:
    task = tmp_path / "tasks" / "1772359200000"
    task.mkdir(parents=True)
    text = [
        ("user", f"<task>\n{ASKED}\n</task>\n\n<environment_details>\n# Files\n</environment_details>"),
        ("assistant", "<thinking>hm</thinking>Looking.\n<read_file><path>a</path></read_file>"),
        ("user", "[read_file for 'a'] Result:\npier 4"),
        ("assistant", f"<attempt_completion><result>{ANSWERED}</result></attempt_completion>"),
    ]
    history = [{"role": role, "content": [{"type": "text", "text": words}]} for role, words in text]
    (task / "api_conversation_history.json").write_text(json.dumps(history))
    (task / "history_item.json").write_text(
        json.dumps({"id": task.name, "ts": 1772359200000, "workspace": "/home/ann"})
    )
    [path] = SOURCES[name].within(tmp_path)
    found, _ = read(SOURCES[name], path)
    assert [turn.text for turn in found[task.name]] == [ASKED, "Looking.", ANSWERED]


def test_opencode_reads_parts_of_messages_in_order(tmp_path: Path) -> None:
    path = database(
        tmp_path / "opencode.db",
        f"""
        CREATE TABLE session (id TEXT, directory TEXT, time_created ANY, parent_id TEXT);
        CREATE TABLE message (id TEXT, session_id TEXT, time_created ANY, data TEXT);
        CREATE TABLE part (id TEXT, message_id TEXT, data TEXT);
        INSERT INTO session VALUES ('o1', '/home/ann/harbour', 1, NULL), ('o2', '/home/ann', 2, 'o1');
        INSERT INTO message VALUES ('m1', 'o1', 1772359200000, '{{"role":"user"}}');
        INSERT INTO message VALUES ('m2', 'o1', 1772359201000, '{{"role":"assistant","modelID":"sonnet"}}');
        INSERT INTO message VALUES ('m3', 'o1', 1772359202000, 'torn');
        INSERT INTO part VALUES ('p1', 'm1', '{{"type":"text","text":"{ASKED}"}}');
        INSERT INTO part VALUES ('p2', 'm1', '{{"type":"text","text":"file","synthetic":true}}');
        INSERT INTO part VALUES ('p3', 'm2', '{{"type":"tool","tool":"bash"}}');
        INSERT INTO part VALUES ('p4', 'm2', '{{"type":"text","text":"{ANSWERED}"}}');
        INSERT INTO part VALUES ('p5', 'm3', '{{"type":"text","text":"x"}}');
        """,
    )
    found, reading = read(SOURCES["opencode"], path)
    assert {session: [turn.text for turn in turns] for session, turns in found.items()} == {"o1": [ASKED, ANSWERED]}
    assert found["o1"][1].model == "sonnet"
    assert reading.skipped["sub-agent"] == 1


def test_goose_reads_its_database_and_its_older_files(tmp_path: Path) -> None:
    path = database(
        tmp_path / "sessions.db",
        f"""
        CREATE TABLE sessions (id TEXT, working_dir TEXT, created_at TEXT, session_type TEXT);
        CREATE TABLE messages (id INTEGER, session_id TEXT, role TEXT, content_json TEXT, created_timestamp INTEGER);
        INSERT INTO sessions VALUES ('1', '/home/ann', '{AT}', 'user'), ('2', '/home/ann', '{AT}', 'sub_agent');
        INSERT INTO messages VALUES (1, '1', 'user', '[{{"type":"text","text":"{ASKED}"}}]', 1772359200);
        INSERT INTO messages VALUES (2, '1', 'assistant', '[{{"type":"toolRequest"}}]', 1772359201);
        INSERT INTO messages VALUES (3, '1', 'assistant', '[{{"type":', 1772359202);
        ALTER TABLE messages ADD COLUMN metadata_json TEXT;
        INSERT INTO messages
            VALUES (4, '1', 'user', '[{{"type":"text","text":"summary"}}]', 1, '{{"userVisible":false}}');
        """,
    )
    found, reading = read(SOURCES["goose"], path)
    assert [turn.text for turn in found["1"]] == [ASKED]
    assert reading.skipped["content of an unknown kind"] == 1
    old = lines(
        tmp_path / "old.jsonl",
        [
            {"id": "3", "working_dir": "/w"},
            {"role": "user", "created": 1, "content": [{"type": "text", "text": ASKED}]},
            {"role": "user", "created": 2, "content": "summary", "metadata": {"userVisible": False}},
        ],
    )
    assert [turn.text for turn in read(SOURCES["goose"], old)[0]["3"]] == [ASKED]


def test_each_program_is_looked_for_in_its_own_place(tmp_path: Path) -> None:
    expected = {
        "claude-code": ".claude/projects/p/s.jsonl",
        "codex": ".codex/sessions/2026/03/01/rollout-1.jsonl",
        "gemini": ".gemini/tmp/p/chats/session-1.json",
        "cursor": ".config/Cursor/User/globalStorage/state.vscdb",
        "opencode": ".local/share/opencode/opencode.db",
        "copilot": ".copilot/session-state/s/events.jsonl",
        "cline": ".config/Code/User/globalStorage/saoudrizwan.claude-dev/tasks/1/api_conversation_history.json",
        "roo": ".config/Code/User/globalStorage/rooveterinaryinc.roo-cline/tasks/1/api_conversation_history.json",
        "goose": ".local/share/goose/sessions/sessions.db",
    }
    for place in expected.values():
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).touch()
    home = Home(tmp_path, {})
    found = {name: [str(path.relative_to(tmp_path)) for path in source.find(home)] for name, source in SOURCES.items()}
    assert {name: paths for name, paths in found.items() if paths} == {name: [path] for name, path in expected.items()}


@pytest.mark.parametrize("folder", ["Library/Application Support/Block/goose", "Library/Application Support/goose"])
def test_goose_is_found_where_it_keeps_its_sessions_on_macos(tmp_path: Path, folder: str) -> None:
    path = tmp_path / folder / "sessions" / "sessions.db"
    path.parent.mkdir(parents=True)
    path.touch()
    assert list(SOURCES["goose"].find(Home(tmp_path, {}))) == [path]
