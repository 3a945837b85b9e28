"""One small file of each import format, with a question and an answer, for the campaign that damages them."""

import json
import sqlite3
import zipfile
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

ASKED, ANSWERED = "Where is the ferry?", "At pier 4."
_AT: Final = "2026-03-01T10:00:00Z"
_MS: Final = 1_772_359_200_000
_SESSION: Final = "0b9f7a52-3c1e-4d44-9a52-7f3a1c2b4d55"
_FOLDER: Final = "/home/ann/harbour"
_SAID: Final = (("user", ASKED), ("assistant", ANSWERED), ("user", "And the tram?"), ("assistant", "It is late."))


@dataclass(frozen=True, slots=True)
class Talk:
    """What is said in a file, in which folder. Ids of messages and conversations begin with `prefix`; Claude Code's
    `session` is a name of its own."""

    said: tuple[tuple[str, str], ...] = _SAID
    folder: str = _FOLDER
    prefix: str = ""
    session: str = _SESSION


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


def _claude_code(path: Path, talk: Talk) -> None:
    records = []
    for place, (role, text) in enumerate(talk.said):
        content = text if role == "user" else [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": text}]
        parent = f"{talk.prefix}u{place - 1}" if place else None
        common = {
            "uuid": f"{talk.prefix}u{place}",
            "parentUuid": parent,
            "sessionId": talk.session,
            "cwd": talk.folder,
            "timestamp": _AT,
        }
        records.append({"type": role, "isSidechain": False, **common, "message": {"role": role, "content": content}})
    _lines(path, [{"type": "summary", "summary": "x"}, *records])


def _codex(path: Path, talk: Talk) -> None:
    head = {"timestamp": _AT, "type": "session_meta", "payload": {"id": f"{talk.prefix}s1", "cwd": talk.folder}}
    items = [
        {
            "timestamp": f"2026-03-01T10:00:{place:02d}Z",
            "type": "response_item",
            "payload": {"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]},
        }
        for place, (role, text) in enumerate(talk.said)
    ]
    _lines(path, [head, *items])


def _gemini(path: Path, talk: Talk) -> None:
    roles = {"user": "user", "assistant": "gemini"}
    turns = [
        {"id": f"{talk.prefix}m{place}", "timestamp": _AT, "type": roles[role], "content": text}
        for place, (role, text) in enumerate(talk.said)
    ]
    _lines(path, [{"sessionId": f"{talk.prefix}g1", "startTime": _AT}, *turns])


def _cursor(path: Path, talk: Talk) -> None:
    heads = [{"bubbleId": f"{talk.prefix}b{place}", "type": 1 + place % 2} for place in range(len(talk.said))]
    rows: dict[str, Any] = {
        f"composerData:{talk.prefix}k2": {
            "composerId": f"{talk.prefix}k2",
            "createdAt": _MS,
            "fullConversationHeadersOnly": heads,
        }
    }
    for place, (_, text) in enumerate(talk.said):
        rows[f"bubbleId:{talk.prefix}k2:{talk.prefix}b{place}"] = {
            "type": 1 + place % 2,
            "text": text,
            "workspaceProjectDir": talk.folder,
        }
    _tables(path, {"cursorDiskKV (key, value)": [(key, json.dumps(value)) for key, value in rows.items()]})


def _opencode(path: Path, talk: Talk) -> None:
    messages = [
        (f"{talk.prefix}m{n}", f"{talk.prefix}o1", _MS + n, json.dumps({"role": role}))
        for n, (role, _) in enumerate(talk.said)
    ]
    parts = [
        (f"{talk.prefix}p{n}", f"{talk.prefix}m{n}", json.dumps({"type": "text", "text": text}))
        for n, (_, text) in enumerate(talk.said)
    ]
    tables = {
        "session (id, directory, time_created, parent_id)": [(f"{talk.prefix}o1", talk.folder, 1, None)],
        "message (id, session_id, time_created, data)": messages,
        "part (id, message_id, data)": parts,
    }
    _tables(path, tables)


def _copilot(path: Path, talk: Talk) -> None:
    head = {"type": "session.start", "data": {"sessionId": f"{talk.prefix}c1", "context": {"cwd": talk.folder}}}
    turns = [
        {"type": f"{role}.message", "id": f"{talk.prefix}m{place}", "timestamp": _AT, "data": {"content": text}}
        for place, (role, text) in enumerate(talk.said)
    ]
    _lines(path, [head, *turns])


def _cline(path: Path, talk: Talk) -> None:
    _json(path, [{"role": role, "content": [{"type": "text", "text": text}]} for role, text in talk.said])
    _json(path.with_name("ui_messages.json"), [{"ts": _MS, "type": "say", "say": "text", "text": talk.said[0][1]}])


def _goose(path: Path, talk: Talk) -> None:
    said = [
        (place, f"{talk.prefix}1", role, json.dumps([{"type": "text", "text": text}]), _MS // 1000 + place)
        for place, (role, text) in enumerate(talk.said)
    ]
    tables: dict[str, list[tuple[Any, ...]]] = {
        "sessions (id, working_dir, created_at, session_type)": [(f"{talk.prefix}1", talk.folder, _AT, "user")],
        "messages (id, session_id, role, content_json, created_timestamp)": [*said],
    }
    _tables(path, tables)


def _claude_mem(path: Path, _talk: Talk) -> None:
    tables: dict[str, list[tuple[Any, ...]]] = {
        "observations (id, project, title, text)": [(1, "harbour", "Pier", ANSWERED)],
        "session_summaries (id, project, request, learned)": [(1, "harbour", ASKED, ANSWERED)],
    }
    _tables(path, tables)


def _server_memory(path: Path, _talk: Talk) -> None:
    entities = [{"type": "entity", "name": name, "entityType": "person", "observations": [ASKED]} for name in "AB"]
    _lines(path, [*entities, {"type": "relation", "from": "A", "relationType": "knows", "to": "B"}])


def _note(path: Path, _talk: Talk) -> None:
    path.write_text(f'---\ntitle: "Piers"\n---\n{ASKED}\n{ANSWERED}\n', encoding="utf-8")


def _chatgpt(path: Path, talk: Talk) -> None:
    nodes: dict[str, Any] = {"root": {"id": "root", "parent": None, "message": None}}
    before = "root"
    for place, (role, text) in enumerate(talk.said):
        content = {"content_type": "text", "parts": [text]}
        said = {"id": f"{talk.prefix}m{place}", "author": {"role": role}, "create_time": 1.7e9, "content": content}
        nodes[f"{talk.prefix}n{place}"] = {
            "id": f"{talk.prefix}n{place}",
            "parent": before,
            "children": [],
            "message": said,
        }
        before = f"{talk.prefix}n{place}"
    _json(path, [{"title": "x", "conversation_id": f"{talk.prefix}c1", "mapping": nodes, "current_node": before}])


def _claude_ai(path: Path, talk: Talk) -> None:
    senders = {"user": "human", "assistant": "assistant"}
    turns = [
        {"uuid": f"{talk.prefix}m{place}", "sender": senders[role], "text": text, "created_at": _AT}
        for place, (role, text) in enumerate(talk.said)
    ]
    raw = json.dumps([{"uuid": f"{talk.prefix}c1", "name": "", "created_at": _AT, "chat_messages": turns}])
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("conversations.json", raw)


def _mem0(path: Path, _talk: Talk) -> None:
    _json(path, {"results": [{"id": "1", "memory": ASKED}, {"id": "2", "memory": ANSWERED}]})


def _openmemory(path: Path, _talk: Talk) -> None:
    memories = [{"id": key, "state": "active", "content": text} for key, text in (("a", ASKED), ("b", ANSWERED))]
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("memories.json", json.dumps({"user": {}, "memories": memories}))


def _zed(path: Path, talk: Talk) -> None:
    forms = {"user": "User", "assistant": "Agent"}
    messages = [
        {forms[role]: {"id": f"{talk.prefix}m{place}", "content": [{"Text": text}], "tool_results": {}}}
        for place, (role, text) in enumerate(talk.said)
    ]
    thread = json.dumps({"version": "0.3.0", "title": "x", "messages": messages})
    columns = "id, summary, updated_at, data_type, data, parent_id, folder_paths, folder_paths_order, created_at"
    _tables(
        path,
        {
            f"threads ({columns})": [
                (f"{talk.prefix}z1", "x", _AT, "json", thread.encode(), None, talk.folder, "0", _AT)
            ]
        },
    )


def _vscode(path: Path, talk: Talk) -> None:
    requests = [
        {
            "requestId": f"{talk.prefix}r{place}",
            "timestamp": _MS + place,
            "message": {"text": talk.said[place][1]},
            "response": [{"value": talk.said[place + 1][1]}],
        }
        for place in range(0, len(talk.said), 2)
    ]
    _json(path, {"version": 3, "sessionId": f"{talk.prefix}v1", "creationDate": _MS, "requests": requests})


SAMPLES: Final[dict[str, tuple[str, Callable[[Path, Talk], None]]]] = {
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
