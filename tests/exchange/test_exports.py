"""Exports of ChatGPT and Claude.ai, with every trap that people met."""

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from kalito_mcp.exchange.conversation import Note, Reading
from kalito_mcp.exchange.programs import SOURCES
from tests.exchange.files import notes, read

CHATGPT, CLAUDE = SOURCES["chatgpt"], SOURCES["claude-ai"]


def node(
    key: str, parent: str | None, role: str, *parts: Any, at: float | None = 1.0e9, **message: Any
) -> dict[str, Any]:
    content = {"content_type": "text", "parts": list(parts)}
    said = {"id": f"id-{key}", "author": {"role": role}, "create_time": at, "content": content, **message}
    return {"id": key, "parent": parent, "children": [], "message": said}


def mapping(*nodes: dict[str, Any]) -> dict[str, Any]:
    return {"root": {"id": "root", "parent": None, "message": None}, **{one["id"]: one for one in nodes}}


def conversation(*nodes: dict[str, Any], current: Any, **others: Any) -> dict[str, Any]:
    return {"title": None, "conversation_id": "c1", "mapping": mapping(*nodes), "current_node": current, **others}


def export(folder: Path, *conversations: Any, name: str = "conversations.json") -> Path:
    path = folder / name
    path.write_text(json.dumps(conversations), encoding="utf-8")
    return path


def test_the_way_from_the_current_message_to_the_root_is_read(tmp_path: Path) -> None:
    path = export(
        tmp_path,
        conversation(
            node("a", "root", "user", "Plan"),
            node("b", "a", "assistant", "Oslo?"),
            node("c", "b", "user", "No"),
            node("d", "a", "assistant", "Bergen?"),
            node("e", "d", "user", "Yes"),
            current="e",
        ),
    )
    found, reading = read(CHATGPT, path)
    assert [(turn.key, turn.text) for turn in found["c1"]] == [("id-a", "Plan"), ("id-d", "Bergen?"), ("id-e", "Yes")]
    assert found["c1"][0].at == 10**12
    assert reading.skipped["another branch"] == 2


def test_without_a_current_message_the_newest_end_counts(tmp_path: Path) -> None:
    nodes = (node("a", "root", "user", "Plan", at=None), node("b", "a", "assistant", "old", at=5.0))
    newest = node("c", "a", "assistant", "new", at=9.0)
    for current in (None, "gone", 7, {}):
        path = export(tmp_path, conversation(*nodes, newest, current=current))
        assert [turn.text for turn in read(CHATGPT, path)[0]["c1"]] == ["Plan", "new"]


def test_only_what_was_said_aloud_is_read(tmp_path: Path) -> None:
    audio = {"content_type": "audio_transcription", "text": "spoken"}
    thoughts = {"content_type": "thoughts", "thoughts": []}
    path = export(
        tmp_path,
        conversation(
            node("a", "root", "system", "rules"),
            node("b", "a", "user", "hidden", metadata={"is_visually_hidden_from_conversation": True}),
            node("c", "b", "user", {"content_type": "image_asset_pointer"}, audio, "typed"),
            node("d", "c", "assistant", "search()", recipient="browser"),
            node("e", "d", "tool", "result"),
            node("f", "e", "assistant", content=thoughts),
            node("g", "f", "assistant", "", "At pier 4 \ue200cite\ue202turn0\ue201.", metadata={"model_slug": "gpt-5"}),
            node("h", "g", "assistant", content=None),
            node("i", "h", "assistant", author=None),
            current="i",
        ),
    )
    found, _ = read(CHATGPT, path)
    assert [turn.text for turn in found["c1"]] == ["spoken\n\ntyped", "At pier 4 ."]
    assert found["c1"][1].model == "gpt-5"


def test_cycles_missing_times_and_broken_conversations_do_not_stop_the_rest(tmp_path: Path) -> None:
    cycle = conversation(node("a", "b", "user", "One", at=None), node("b", "a", "user", "Two", at=None), current="a")
    broken = [None, 7, {"mapping": []}, {"mapping": {"x": None, "y": 3}, "conversation_id": "e"}]
    path = export(tmp_path, *broken, cycle)
    found, reading = read(CHATGPT, path)
    assert [turn.text for turn in found["c1"]] == ["Two", "One"]
    assert reading.skipped["conversation of an unknown kind"] == 3


def test_a_conversation_without_an_id_gets_the_same_one_each_time(tmp_path: Path) -> None:
    path = export(tmp_path, conversation(node("a", "root", "user", "One"), current="a", conversation_id=None))
    assert read(CHATGPT, path)[0].keys() == read(CHATGPT, path)[0].keys() != {None}


def test_zips_folders_and_exports_of_several_files_are_read(tmp_path: Path) -> None:
    parts = [
        conversation(node("a", "root", "user", f"part {number}"), current="a", conversation_id=f"c{number}")
        for number in range(3)
    ]
    folder = tmp_path / "export"
    folder.mkdir()
    for number, one in enumerate(parts):
        export(folder, one, name=f"conversations-00{number}.json")
    assert len(list(CHATGPT.within(folder))) == 3
    with zipfile.ZipFile(tmp_path / "export.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for path in folder.iterdir():
            archive.write(path, f"inner/{path.name}")
        archive.writestr("user.json", "{}")
    assert list(CHATGPT.within(tmp_path))
    assert set(read(CHATGPT, tmp_path / "export.zip")[0]) == {"c0", "c1", "c2"}


def test_a_zip_that_is_packed_too_well_is_not_unpacked(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("conversations.json", b"[" + b" " * 10_000_000)
    found, reading = read(CHATGPT, tmp_path / "bomb.zip")
    assert (found, reading.skipped) == ({}, {"file that is packed too well": 1})


def test_a_file_that_breaks_off_gives_what_is_whole(tmp_path: Path) -> None:
    parts = [
        conversation(node("a", "root", "user", "words " * 60_000), current="a", conversation_id=f"c{n}")
        for n in range(3)
    ]
    path = export(tmp_path, *parts)
    path.write_bytes(path.read_bytes()[:-100])
    found, reading = read(CHATGPT, path)
    assert set(found) == {"c0", "c1"}
    assert sum(reading.skipped.values()) == 1


def test_utf_16_and_a_byte_order_mark_are_understood(tmp_path: Path) -> None:
    text = json.dumps([conversation(node("a", "root", "user", "Grüße"), current="a")], ensure_ascii=False)
    for encoding in ("utf-16", "utf-8-sig"):
        path = tmp_path / f"{encoding}.json"
        path.write_bytes(text.encode(encoding))
        assert [turn.text for turn in read(CHATGPT, path)[0]["c1"]] == ["Grüße"]


def message(uuid: str, sender: str, text: str, parent: str | None = None, **others: Any) -> dict[str, Any]:
    before = {} if parent is None else {"parent_message_uuid": parent}
    return {"uuid": uuid, "sender": sender, "text": text, "created_at": "2026-03-01T10:00:00.5Z", **before, **others}


def chat(*messages: Any, **others: Any) -> dict[str, Any]:
    return {"uuid": "c1", "name": "", "created_at": "2026-03-01T09:00:00Z", "chat_messages": list(messages), **others}


ROOT = "00000000-0000-4000-8000-000000000000"


def test_blocks_outrank_the_text_and_thinking_is_left_out(tmp_path: Path) -> None:
    blocks = [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "At pier 4."}, {"type": "tool_use"}]
    path = export(
        tmp_path,
        chat(
            message("m1", "human", "Where?", content=[], attachments=[{"file_name": "map.png"}]),
            message("m2", "assistant", "```unsupported```", content=blocks),
            message("m3", "system", "x"),
            None,
        ),
    )
    found, reading = read(CLAUDE, path)
    assert [(turn.role, turn.text, turn.key) for turn in found["c1"]] == [
        ("user", "Where?", "m1"),
        ("assistant", "At pier 4.", "m2"),
    ]
    assert found["c1"][0].at == 1772359200500
    assert reading.skipped["image or file"] == 1


def test_an_edited_message_of_claude_leaves_its_branch(tmp_path: Path) -> None:
    path = export(
        tmp_path,
        chat(
            message("m1", "human", "Plan", ROOT),
            message("m2", "assistant", "Oslo?", "m1"),
            message("m3", "assistant", "Bergen?", "m1"),
            message("m4", "human", "Yes", "m3"),
        ),
    )
    found, reading = read(CLAUDE, path)
    assert [turn.text for turn in found["c1"]] == ["Plan", "Bergen?", "Yes"]
    assert reading.skipped["another branch"] == 1


def test_messages_whose_parents_are_missing_are_all_read(tmp_path: Path) -> None:
    path = export(tmp_path, chat(message("m1", "human", "One", ROOT), message("m2", "human", "Two", "gone")))
    assert [turn.text for turn in read(CLAUDE, path)[0]["c1"]] == ["One", "Two"]


def test_documents_of_projects_become_notes(tmp_path: Path) -> None:
    project = {
        "uuid": "p1",
        "name": "Harbour",
        "prompt_template": "Be brief.",
        "docs": [{"uuid": "d1", "filename": "piers.md", "content": "Pier 4 is north."}, None],
    }
    path = export(tmp_path, project, name="projects.json")
    assert [(note.name, note.title, note.text) for note in notes(CLAUDE, path)] == [
        ("claude-ai:p1", "Harbour: instructions", "Be brief."),
        ("claude-ai:d1", "piers.md", "Pier 4 is north."),
    ]
    assert list(CLAUDE.read(Reading(export(tmp_path, {"email_address": "x"}, name="users.json")))) == []


def test_an_encrypted_zip_is_skipped(tmp_path: Path) -> None:
    path = tmp_path / "export.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("conversations.json", "[]")
    raw = bytearray(path.read_bytes())
    raw[6] |= 1  # the flag of encryption, in the file's header and in the directory
    raw[raw.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(raw)
    found, reading = read(CHATGPT, path)
    assert (found, reading.skipped) == ({}, {"file that is encrypted, or packed in an unknown way": 1})


def test_a_zip_of_a_version_that_nobody_reads_is_unreadable(tmp_path: Path) -> None:
    path = tmp_path / "export.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("conversations.json", "[]")
    raw = bytearray(path.read_bytes())
    raw[raw.index(b"PK\x01\x02") + 6] = 148
    path.write_bytes(raw)
    with pytest.raises(zipfile.BadZipFile, match="version"):
        list(CLAUDE.read(Reading(path)))


def test_texts_of_attachments_follow_what_was_said(tmp_path: Path) -> None:
    attached = [
        {"file_name": "piers.txt", "extracted_content": "I live at pier 4.\n```\ncode\n```\nI work at Globex."},
        {"file_name": "", "extracted_content": "pasted"},
        {"file_name": "long.txt", "extracted_content": "x" * 600_000},
        {"file_name": "map.png", "extracted_content": ""},
        None,
    ]
    path = export(
        tmp_path, chat(message("m1", "human", "Where?", attachments=attached), message("m2", "human", "", files=[{}]))
    )
    found, reading = read(CLAUDE, path)
    assert [turn.text for turn in found["c1"]] == [
        "Where?\n\n"
        "piers.txt:\n````\nI live at pier 4.\n```\ncode\n```\nI work at Globex.\n````\n\n"
        "pasted text:\n```\npasted\n```"
    ]
    assert reading.skipped == {"attachment that is too long": 1, "image or file": 3}


def test_projects_and_memories_of_claude_are_found_by_their_places_in_a_zip(tmp_path: Path) -> None:
    noted = {"conversations_memory": "Ann sails.", "project_memories": {"p1": "Piers.", "p2": 7}, "account_uuid": "a"}
    members = {
        "data/projects/p1.json": {"uuid": "p1", "docs": [{"uuid": "d1", "filename": "piers.md", "content": "North."}]},
        "data/memories.json": [noted],
        "data/users.json": [{"email_address": "x"}],
    }
    with zipfile.ZipFile(tmp_path / "data-2026.zip", "w") as archive:
        for name, value in members.items():
            archive.writestr(name, json.dumps(value))
        archive.extractall(tmp_path / "export")
    reading = Reading(tmp_path / "data-2026.zip")
    found = [one for one in CLAUDE.read(reading) if isinstance(one, Note)]
    assert [(note.name, note.text, str(note.origin)) for note in found] == [
        ("claude-ai:memory:a", "Ann sails.", "import"),
        ("claude-ai:memory:p1", "Piers.", "import"),
        ("claude-ai:d1", "North.", "document"),
    ]
    assert reading.skipped == {"file of the export: users.json": 1}
    assert {path.name for path in CLAUDE.within(tmp_path / "export")} == {"p1.json", "memories.json"}


def test_a_zip_is_found_beside_other_files_of_json(tmp_path: Path) -> None:
    (tmp_path / "data-2026.zip").write_bytes(b"")
    for name in ("package.json", "conversations.json"):
        (tmp_path / name).write_text("[]")
    for source in (CLAUDE, CHATGPT):
        assert [path.name for path in source.within(tmp_path)] == ["conversations.json", "data-2026.zip"]
