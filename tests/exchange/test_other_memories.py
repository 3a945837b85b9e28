"""Notes of other memory programs, and the files of text that assistants are given."""

import json
import sqlite3
import zipfile
from contextlib import closing
from pathlib import Path

import pytest

from kalito_mcp.exchange.conversation import Conversation, Home, Note, Reading
from kalito_mcp.exchange.programs import SOURCES
from tests.exchange.files import lines, notes, read


def test_an_entity_of_server_memory_is_a_note_with_its_relations(tmp_path: Path) -> None:
    path = lines(
        tmp_path / "memory.jsonl",
        [
            {
                "type": "entity",
                "name": "Ann",
                "entityType": "person",
                "observations": ["sails", 7, "is allergic to nuts"],
            },
            {"type": "entity", "name": "Aurora", "entityType": "boat", "observations": []},
            {"type": "relation", "from": "Ann", "relationType": "owns", "to": "Aurora"},
            {"type": "relation", "from": "Ann"},
        ],
        end='\n{"type": "enti',
    )
    found = notes(SOURCES["server-memory"], path)
    assert [note.text for note in found] == [
        "Ann (person)\nsails\nis allergic to nuts\nAnn owns Aurora",
        "Aurora (boat)",
    ]
    assert all(note.name.startswith("note:server-memory:") for note in found)


ENTITIES = [{"name": name, "entityType": "boat", "observations": [f"{name} is teal"]} for name in ("Keel", "Aurora")]
RELATION = {"from": "Keel", "relationType": "is part of", "to": "Aurora"}
RECORDS = [*({"type": "entity", **one} for one in ENTITIES), {"type": "relation", **RELATION}]


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"entities": ENTITIES, "relations": [RELATION]}),
        json.dumps({"entities": ENTITIES, "relations": [RELATION]}, indent=2),
        json.dumps(RECORDS),
        "".join(map(json.dumps, RECORDS)),
        "\n".join((json.dumps(RECORDS[0]) + json.dumps(RECORDS[1]), "torn {", json.dumps(RECORDS[2]))),
    ],
)
def test_a_memory_of_server_memory_is_read_as_one_value_and_with_records_on_one_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "memory.json"
    path.write_text(text)
    found = notes(SOURCES["server-memory"], path)
    assert [note.text for note in found] == [
        "Keel (boat)\nKeel is teal\nKeel is part of Aurora",
        "Aurora (boat)\nAurora is teal",
    ]


def test_memories_of_mem0_and_openmemory_are_notes_unless_switched_off(tmp_path: Path) -> None:
    mem0 = tmp_path / "memories.json"
    mem0.write_text(json.dumps({"results": [{"id": "1", "memory": "Likes tea"}, {"id": "2"}, 3]}))
    reading = Reading(mem0)
    assert [(one.name, one.text) for one in SOURCES["mem0"].read(reading) if isinstance(one, Note)] == [
        ("note:mem0:1", "Likes tea")
    ]
    assert reading.skipped == {"memory of an unknown kind": 2}
    states = [("a", "active", "Likes tea"), ("b", "deleted", "Old"), ("c", "paused", "Off")]
    memories = [{"id": key, "state": state, "content": text} for key, state, text in states]
    with zipfile.ZipFile(tmp_path / "memories_export_ann.zip", "w") as archive:
        archive.writestr("memories.json", json.dumps({"user": {}, "memories": memories}))
        archive.writestr("memories.jsonl.gz", b"")
    [path] = [one for one in SOURCES["openmemory"].within(tmp_path) if one.suffix == ".zip"]
    assert [note.text for note in notes(SOURCES["openmemory"], path)] == ["Likes tea"]


def test_memories_that_the_plugin_of_mem0_exports_are_notes(tmp_path: Path) -> None:
    path = tmp_path / "mem0-export-harbour-2026-03-01.md"
    path.write_bytes(
        b"\xef\xbb\xbf---\r\nid: 1\r\ncreated_at: 2026-03-01T10:00:00Z\r\ntype: decision\r\nfiles: \r\n---\r\n"
        b"Pier 4 is north.\r\n"
        b"\r\n---\r\n\r\nWhat follows is not a block: ---\r\n---\r\nThe end.\r\n\r\n"
        b"---\nid: 2\nbranch: \n---\n\n"
        b"---\nid: \ncategories: tea, boats\n---\nLikes tea\xff\n\n"
        b"---\nid: 4\ntype: torn"
    )
    [found] = SOURCES["mem0"].within(tmp_path)
    reading = Reading(found)
    read = [one for one in SOURCES["mem0"].read(reading) if isinstance(one, Note)]
    assert [note.text for note in read] == [
        "Pier 4 is north.\n\n---\n\nWhat follows is not a block: ---\n---\nThe end.",
        "Likes tea\ufffd",
    ]
    # The same memory in JSON has the same name, so it is kept once.
    assert read[0].name == "note:mem0:1"
    assert reading.skipped == {"memory of an unknown kind": 2}
    path.write_text("# Not an export")
    reading = Reading(path)
    assert list(SOURCES["mem0"].read(reading)) == []
    assert reading.skipped == {"file of an unknown kind": 1}


def test_observations_and_summaries_of_claude_mem_are_notes(tmp_path: Path) -> None:
    path = tmp_path / "claude-mem.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            """
            CREATE TABLE observations (id INTEGER, project TEXT, title TEXT, text TEXT);
            CREATE TABLE session_summaries (id INTEGER, project TEXT, request TEXT, learned TEXT);
            INSERT INTO observations VALUES (1, 'harbour', 'Pier', 'Pier 4 is north'), (2, NULL, NULL, NULL);
            INSERT INTO session_summaries VALUES (1, 'harbour', 'Find the ferry', 'It is at pier 4');
            """
        )
    assert [(note.name, note.project, note.text) for note in notes(SOURCES["claude-mem"], path)] == [
        ("note:claude-mem:observations:1", "harbour", "Pier\nPier 4 is north"),
        ("note:claude-mem:session_summaries:1", "harbour", "Find the ferry\nIt is at pier 4"),
    ]


@pytest.mark.parametrize("column", ["content_session_id", "claude_session_id"])
def test_prompts_of_claude_mem_are_messages_of_their_session(tmp_path: Path, column: str) -> None:
    path = tmp_path / "claude-mem.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            f"""
            CREATE TABLE observations (id INTEGER);
            CREATE TABLE session_summaries (id INTEGER);
            CREATE TABLE sdk_sessions ({column} TEXT, project TEXT);
            CREATE TABLE user_prompts (id INTEGER, {column} TEXT, prompt_text TEXT, created_at_epoch INTEGER);
            INSERT INTO sdk_sessions VALUES ('s1', 'harbour');
            INSERT INTO user_prompts VALUES (1, 's1', 'Where is the ferry?', 1772359200000),
                (2, 's2', 'Hello', NULL), (3, 's1', '<job-done>x</job-done>', 1), (4, 's1', '[media prompt]', 1),
                (5, 's1', 'And the tram?', 1772359300000), (6, NULL, 'x', 1);
            """
        )
    found = [one for one in SOURCES["claude-mem"].read(Reading(path)) if isinstance(one, Conversation)]
    assert [one.session_id for one in found] == ["s1", "s2"]
    assert [one.project for one in found] == ["harbour", None]
    said, _ = read(SOURCES["claude-mem"], path)
    assert [(turn.role, turn.text, turn.key, turn.at) for turn in said["s1"]] == [
        ("user", "Where is the ferry?", "prompt:1", 1772359200000),
        ("user", "And the tram?", "prompt:5", 1772359300000),
    ]


def test_files_of_instructions_are_documents_of_their_project(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("Run make test.")
    (tmp_path / "memory-bank").mkdir()
    (tmp_path / "memory-bank" / "progress.md").write_text("Half done.")
    (tmp_path / "README.md").write_text("Not one of them.")
    source = SOURCES["instructions"]
    paths = list(source.within(tmp_path))
    assert [path.name for path in paths] == ["AGENTS.md", "progress.md"]
    assert notes(source, paths[0]) == [
        Note(str(paths[0].resolve()), "AGENTS.md", "Run make test.", str(tmp_path.absolute()))
    ]


def test_what_claude_code_noted_belongs_to_the_folder_of_its_transcripts(tmp_path: Path) -> None:
    project = tmp_path / ".claude" / "projects" / "-home-ann-harbour"
    (project / "memory").mkdir(parents=True)
    (project / "memory" / "MEMORY.md").write_text('---\nname: x\ntitle: "Piers"\n---\nPier 4 is north.')
    lines(project / "s.jsonl", [{"type": "summary"}, {"type": "user", "cwd": "/home/ann/harbour"}])
    [path] = SOURCES["instructions"].find(Home(tmp_path, {}))
    [note] = notes(SOURCES["instructions"], path)
    assert (note.title, note.folder) == ("Piers", "/home/ann/harbour")


def test_notes_of_basic_memory_are_documents_with_their_titles(tmp_path: Path) -> None:
    (tmp_path / "basic-memory" / ".obsidian").mkdir(parents=True)
    (tmp_path / "basic-memory" / ".obsidian" / "x.md").write_text("hidden")
    (tmp_path / "basic-memory" / "pier.md").write_text("---\ntitle: Piers\n---\n- [fact] Pier 4 is north #harbour")
    [path] = SOURCES["basic-memory"].find(Home(tmp_path, {}))
    assert [note.title for note in notes(SOURCES["basic-memory"], path)] == ["Piers"]
