"""One small file of each import format, with a question and an answer, for the campaign that damages them."""

import json
import sqlite3
import zipfile
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from typing import Any, Final

ASKED, ANSWERED = "Where is the ferry?", "At pier 4."
_AT: Final = "2026-03-01T10:00:00Z"
_MS: Final = 1_772_359_200_000
_SESSION: Final = "0b9f7a52-3c1e-4d44-9a52-7f3a1c2b4d55"
_FOLDER: Final = "/home/ann/harbour"
_SAID: Final = (("user", ASKED), ("assistant", ANSWERED), ("user", "And the tram?"), ("assistant", "It is late."))


def _lines(path: Path, records: Iterable[Any]) -> None:
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records), encoding="utf-8")


def _json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value), encoding="utf-8")


def _tables(path: Path, tables: dict[str, list[tuple[Any, ...]]]) -> None:
    """`tables` are named with their columns."""
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as connection:
        for table, rows in tables.items():
            connection.execute(f"CREATE TABLE {table}")
            name = table.split()[0]
            for row in rows:
                connection.execute(f"INSERT INTO {name} VALUES ({', '.join('?' * len(row))})", row)  # noqa: S608 - ours
        connection.commit()


def _claude_code(path: Path) -> None:
    records = []
    for place, (role, text) in enumerate(_SAID):
        content = text if role == "user" else [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": text}]
        parent = f"u{place - 1}" if place else None
        common = {"uuid": f"u{place}", "parentUuid": parent, "sessionId": _SESSION, "cwd": _FOLDER, "timestamp": _AT}
        records.append({"type": role, "isSidechain": False, **common, "message": {"role": role, "content": content}})
    _lines(path, [{"type": "summary", "summary": "x"}, *records])


def _codex(path: Path) -> None:
    head = {"timestamp": _AT, "type": "session_meta", "payload": {"id": "s1", "cwd": _FOLDER}}
    items = [
        {
            "timestamp": f"2026-03-01T10:00:0{place}Z",
            "type": "response_item",
            "payload": {"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]},
        }
        for place, (role, text) in enumerate(_SAID)
    ]
    _lines(path, [head, *items])


def _gemini(path: Path) -> None:
    roles = {"user": "user", "assistant": "gemini"}
    turns = [
        {"id": f"m{place}", "timestamp": _AT, "type": roles[role], "content": text}
        for place, (role, text) in enumerate(_SAID)
    ]
    _lines(path, [{"sessionId": "g1", "startTime": _AT}, *turns])


def _cursor(path: Path) -> None:
    heads = [{"bubbleId": f"b{place}", "type": 1 + place % 2} for place in range(len(_SAID))]
    rows: dict[str, Any] = {
        "composerData:k2": {"composerId": "k2", "createdAt": _MS, "fullConversationHeadersOnly": heads}
    }
    for place, (_, text) in enumerate(_SAID):
        rows[f"bubbleId:k2:b{place}"] = {"type": 1 + place % 2, "text": text, "workspaceProjectDir": _FOLDER}
    _tables(path, {"cursorDiskKV (key, value)": [(key, json.dumps(value)) for key, value in rows.items()]})


def _opencode(path: Path) -> None:
    messages = [(f"m{n}", "o1", _MS + n, json.dumps({"role": role})) for n, (role, _) in enumerate(_SAID)]
    parts = [(f"p{n}", f"m{n}", json.dumps({"type": "text", "text": text})) for n, (_, text) in enumerate(_SAID)]
    tables = {
        "session (id, directory, time_created, parent_id)": [("o1", _FOLDER, 1, None)],
        "message (id, session_id, time_created, data)": messages,
        "part (id, message_id, data)": parts,
    }
    _tables(path, tables)


def _copilot(path: Path) -> None:
    head = {"type": "session.start", "data": {"sessionId": "c1", "context": {"cwd": _FOLDER}}}
    turns = [
        {"type": f"{role}.message", "id": f"m{place}", "timestamp": _AT, "data": {"content": text}}
        for place, (role, text) in enumerate(_SAID)
    ]
    _lines(path, [head, *turns])


def _cline(path: Path) -> None:
    _json(path, [{"role": role, "content": [{"type": "text", "text": text}]} for role, text in _SAID])


def _goose(path: Path) -> None:
    said = [
        (place, "1", role, json.dumps([{"type": "text", "text": text}]), _MS // 1000 + place)
        for place, (role, text) in enumerate(_SAID)
    ]
    tables: dict[str, list[tuple[Any, ...]]] = {
        "sessions (id, working_dir, created_at, session_type)": [("1", _FOLDER, _AT, "user")],
        "messages (id, session_id, role, content_json, created_timestamp)": [*said],
    }
    _tables(path, tables)


def _claude_mem(path: Path) -> None:
    tables: dict[str, list[tuple[Any, ...]]] = {
        "observations (id, project, title, text)": [(1, "harbour", "Pier", ANSWERED)],
        "session_summaries (id, project, request, learned)": [(1, "harbour", ASKED, ANSWERED)],
    }
    _tables(path, tables)


def _server_memory(path: Path) -> None:
    entities = [{"type": "entity", "name": name, "entityType": "person", "observations": [ASKED]} for name in "AB"]
    _lines(path, [*entities, {"type": "relation", "from": "A", "relationType": "knows", "to": "B"}])


def _note(path: Path) -> None:
    path.write_text(f'---\ntitle: "Piers"\n---\n{ASKED}\n{ANSWERED}\n', encoding="utf-8")


def _chatgpt(path: Path) -> None:
    nodes: dict[str, Any] = {"root": {"id": "root", "parent": None, "message": None}}
    before = "root"
    for place, (role, text) in enumerate(_SAID):
        content = {"content_type": "text", "parts": [text]}
        said = {"id": f"m{place}", "author": {"role": role}, "create_time": 1.7e9, "content": content}
        nodes[f"n{place}"] = {"id": f"n{place}", "parent": before, "children": [], "message": said}
        before = f"n{place}"
    _json(path, [{"title": "x", "conversation_id": "c1", "mapping": nodes, "current_node": before}])


def _claude_ai(path: Path) -> None:
    senders = {"user": "human", "assistant": "assistant"}
    turns = [
        {"uuid": f"m{place}", "sender": senders[role], "text": text, "created_at": _AT}
        for place, (role, text) in enumerate(_SAID)
    ]
    raw = json.dumps([{"uuid": "c1", "name": "", "created_at": _AT, "chat_messages": turns}])
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("conversations.json", raw)


def _mem0(path: Path) -> None:
    _json(path, {"results": [{"id": "1", "memory": ASKED}, {"id": "2", "memory": ANSWERED}]})


def _openmemory(path: Path) -> None:
    memories = [{"id": key, "state": "active", "content": text} for key, text in (("a", ASKED), ("b", ANSWERED))]
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("memories.json", json.dumps({"user": {}, "memories": memories}))


def _zed(path: Path) -> None:
    forms = {"user": "User", "assistant": "Agent"}
    messages = [
        {forms[role]: {"id": f"m{place}", "content": [{"Text": text}], "tool_results": {}}}
        for place, (role, text) in enumerate(_SAID)
    ]
    thread = json.dumps({"version": "0.3.0", "title": "x", "messages": messages})
    columns = "id, summary, updated_at, data_type, data, parent_id, folder_paths, folder_paths_order, created_at"
    _tables(path, {f"threads ({columns})": [("z1", "x", _AT, "json", thread.encode(), None, _FOLDER, "0", _AT)]})


def _vscode(path: Path) -> None:
    requests = [
        {
            "requestId": f"r{place}",
            "timestamp": _MS + place,
            "message": {"text": _SAID[place][1]},
            "response": [{"value": _SAID[place + 1][1]}],
        }
        for place in range(0, len(_SAID), 2)
    ]
    _json(path, {"version": 3, "sessionId": "v1", "creationDate": _MS, "requests": requests})


SAMPLES: Final[dict[str, tuple[str, Callable[[Path], None]]]] = {
    "claude-code": (f"{_SESSION}.jsonl", _claude_code),
    "codex": ("rollout-2026-03-01T10-00-00-s1.jsonl", _codex),
    "gemini": ("session-1.jsonl", _gemini),
    "cursor": ("state.vscdb", _cursor),
    "opencode": ("opencode.db", _opencode),
    "copilot": ("events.jsonl", _copilot),
    "cline": ("api_conversation_history.json", _cline),
    "roo": ("api_conversation_history.json", _cline),
    "goose": ("sessions.db", _goose),
    "zed": ("threads.db", _zed),
    "vscode": ("v1.json", _vscode),
    "claude-mem": ("claude-mem.db", _claude_mem),
    "server-memory": ("memory.jsonl", _server_memory),
    "basic-memory": ("pier.md", _note),
    "instructions": ("AGENTS.md", _note),
    "chatgpt": ("conversations.json", _chatgpt),
    "claude-ai": ("export.zip", _claude_ai),
    "mem0": ("memories.json", _mem0),
    "openmemory": ("memories_export.zip", _openmemory),
}
"""The name of a file of each source, and what writes it."""
