"""Whatever is in a file, a reader ends without an error, and gives turns that can be stored."""

import json
import sqlite3
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kalito_mcp.domain.records import Role
from kalito_mcp.exchange.conversation import Note, Reading
from kalito_mcp.exchange.programs import SOURCES

_NAMES = (
    "type role content message uuid parentUuid logicalParentUuid sessionId cwd timestamp isSidechain isMeta payload id "
    "text parts author mapping current_node parent create_time chat_messages sender parent_message_uuid docs "
    "prompt_template messages $set $rewindTo data context attachment prompt forkedFrom metadata source content_type "
    "name uuid time created agent ts bubbleId fullConversationHeadersOnly conversation startTime kind recipient files "
    "attachments title current_leaf_message_uuid create_time update_time created_at observations "
    "segments User Agent Text Mention uri abs_path requests response kind k v i value "
    "inlineReference requestId modelState"
).split()
_WORDS = (
    "user assistant human gemini model message response_item session_meta text input_text thinking tool_use attachment "
    "queued_command user.message assistant.message session.start multimodal_text <system-reminder> </system-reminder> "
    "<task> </task> <kalito-memory \ud800 \0 2026-03-01T10:00:00Z all subagent entity relation"
).split(" ")
_TEXTS = st.sampled_from(_WORDS) | st.text(max_size=8)
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | _TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(_NAMES) | _TEXTS, inner, max_size=6),
    max_leaves=25,
)
_FILES: dict[str, tuple[str, ...]] = {
    "gemini": ("session.jsonl", "session.json"),
    "cline": ("s.messages.json", "api_conversation_history.json"),
    "roo": ("api_conversation_history.json",),
    "chatgpt": ("conversations.json", "export.zip"),
    "claude-ai": ("conversations.json", "export.zip"),
    "goose": ("old.jsonl", "sessions.db"),
    "opencode": ("opencode.db", "ses_1.json"),
    "cursor": ("k.jsonl", "state.vscdb"),
    "vscode": ("s.json", "s.jsonl"),
    "zed": ("threads.db",),
    "claude-mem": ("claude-mem.db",),
    "mem0": ("memories.json", "memories_export.zip", "mem0-export-a.md"),
    "openmemory": ("memories_export.zip",),
    "basic-memory": ("note.md",),
    "instructions": ("CLAUDE.md",),
}
CASES = [(name, file) for name in SOURCES for file in _FILES.get(name, ("session.jsonl",))]


def check(name: str, path: Path) -> None:
    reading = Reading(path)
    with suppress(OSError, sqlite3.Error, zipfile.BadZipFile, EOFError):
        for one in SOURCES[name].read(reading):
            if isinstance(one, Note):
                assert isinstance(one.text, str)
                continue
            assert isinstance(one.session_id, str)
            assert one.folder is None or isinstance(one.folder, str)
            for turn in one.turns:
                assert isinstance(turn.role, Role)
                assert turn.text.strip()
                turn.text.encode()
                assert isinstance(turn.key, str)
                assert turn.at is None or isinstance(turn.at, int)
                assert turn.model is None or isinstance(turn.model, str)
    assert all(count > 0 for count in reading.skipped.values())


def _as_lines(values: list[Any]) -> bytes:
    return b"\n".join(json.dumps(value).encode() for value in values)


def _as_list(values: list[Any]) -> bytes:
    return json.dumps(values).encode()


@pytest.mark.parametrize(("name", "file"), CASES)
@given(values=st.lists(_VALUES, max_size=6), as_bytes=st.sampled_from([_as_lines, _as_list]), cut=st.integers(0, 40))
def test_json_of_any_shape_is_survived(
    tmp_path: Path, name: str, file: str, values: list[Any], as_bytes: Callable[[list[Any]], bytes], cut: int
) -> None:
    raw = as_bytes(values)
    path = tmp_path / file
    path.write_bytes(raw[: len(raw) - cut] if cut < len(raw) else raw)
    check(name, path)


@pytest.mark.parametrize(("name", "file"), CASES)
@given(raw=st.binary(max_size=200))
def test_bytes_of_any_kind_are_survived(tmp_path: Path, name: str, file: str, raw: bytes) -> None:
    path = tmp_path / file
    path.write_bytes(raw)
    check(name, path)


@given(values=st.lists(_VALUES, min_size=1, max_size=6))
def test_rows_of_any_content_are_survived(tmp_path: Path, values: list[Any]) -> None:
    raw = [json.dumps(value) for value in values]
    tables = {
        "zed": ("threads.db", "threads (id, updated_at, data_type, data, folder_paths, folder_paths_order)", ""),
        "opencode": ("opencode.db", "session (id, directory, time_created)", "part (id, message_id, data)"),
        "goose": ("sessions.db", "sessions (id, working_dir, created_at)", ""),
        "cursor": ("state.vscdb", "cursorDiskKV (key, value)", ""),
    }
    for name, (file, *created) in tables.items():
        path = tmp_path / file
        path.unlink(missing_ok=True)
        connection = sqlite3.connect(path)
        for one in filter(None, created):
            connection.execute(f"CREATE TABLE {one}")
        if name == "opencode":
            connection.execute("CREATE TABLE message (id, session_id, time_created, data)")
            connection.execute("INSERT INTO session VALUES ('s', 7, 'x')")
            connection.executemany("INSERT INTO message VALUES (?, 's', ?, ?)", [(one, one, one) for one in raw])
            connection.executemany("INSERT INTO part VALUES (1, ?, ?)", [(one, one) for one in raw])
        elif name == "zed":
            connection.executemany(
                "INSERT INTO threads VALUES (?, ?, 'json', ?, ?, ?)",
                [(one, one, json.dumps({"messages": values}), one, one) for one in raw],
            )
        elif name == "goose":
            connection.execute("CREATE TABLE messages (id, session_id, role, content_json, created_timestamp)")
            connection.execute("INSERT INTO sessions VALUES ('s', 7, 'x')")
            connection.executemany("INSERT INTO messages VALUES (1, 's', 'user', ?, ?)", [(one, one) for one in raw])
        else:
            connection.executemany("INSERT INTO cursorDiskKV VALUES ('composerData:s', ?)", [(one,) for one in raw])
            connection.executemany("INSERT INTO cursorDiskKV VALUES ('bubbleId:s:user', ?)", [(one,) for one in raw])
        connection.commit()
        connection.close()
        check(name, path)
