"""`export`, `backup`, `list` and `forget --session` as a person types them."""

import json
import sys
from pathlib import Path

import anyio
import pytest

from kalito_mcp.domain.records import NewMessage, Role
from kalito_mcp.wiring import open_memory
from tests.cli.conftest import Invoke, Terminal
from tests.empty_database import lay_empty_database
from tests.server import prepared
from tests.server.wire import clean_environment


def test_an_export_says_what_is_in_it_and_is_imported_into_an_empty_database(
    invoke: Invoke, remembered: Path, tmp_path: Path
) -> None:
    archive, other = tmp_path / "memory.jsonl", tmp_path / "other.db"
    exported = invoke("export", str(archive), "--database", str(remembered))
    assert exported.out.startswith("exported 2 sessions, 4 records, 0 edits,")
    assert invoke("import", str(archive), "--dry-run", "--database", str(other)).code == 2
    assert "restored " in invoke("import", str(archive), "--database", str(other)).out
    assert invoke("list", "transcripts", "--database", str(other)).out == (
        invoke("list", "transcripts", "--database", str(remembered)).out
    )
    again = invoke("import", str(archive), "--database", str(other))
    assert (again.code, "empty" in again.err) == (1, True)


def test_an_export_to_standard_output_is_the_file_and_nothing_else(
    invoke: Invoke, remembered: Path, tmp_path: Path
) -> None:
    invoke("export", str(tmp_path / "memory.jsonl"), "--database", str(remembered))
    written = prepared.run(
        [sys.executable, "-m", "kalito_mcp", "export", "-", "--database", str(remembered)],
        cwd=Path(__file__).parents[2],
        env=clean_environment(),
        capture_output=True,
        check=True,
    )
    assert b"exported 2 sessions" in written.stderr
    in_file = (tmp_path / "memory.jsonl").read_bytes().splitlines()
    # The first line has the time, and so every check differs.
    assert [json.loads(line).get("row") for line in written.stdout.splitlines()] == [
        json.loads(line).get("row") for line in in_file
    ]
    assert json.loads(written.stdout.splitlines()[-1])["digest"] == json.loads(in_file[-1])["digest"]


def test_an_export_of_parts_says_that_it_cannot_be_restored(invoke: Invoke, remembered: Path, tmp_path: Path) -> None:
    file = str(tmp_path / "pins.jsonl")
    done = invoke("export", file, "--type", "pin", "--since", "2020-01-01", "--database", str(remembered))
    assert "1 record," in done.out
    assert "cannot be restored" in done.out
    assert invoke("export", file, "--since", "never", "--database", str(remembered)).code == 1


def test_a_markdown_export_tells_what_it_left_alone(invoke: Invoke, remembered: Path, tmp_path: Path) -> None:
    vault = tmp_path / "vault"
    first = invoke("export", str(vault), "--markdown", "--database", str(remembered))
    assert first.out == "4 files written, 0 unchanged, 0 removed\n"
    (vault / "Index.md").write_text("mine")
    again = invoke("export", str(vault), "--markdown", "--database", str(remembered))
    assert "0 files written, 3 unchanged" in again.out
    assert "left alone, because it is not as it was written: Index.md" in again.out
    assert invoke("export", "-", "--markdown", "--database", str(remembered)).code == 2


def test_lists_name_what_there_is(invoke: Invoke, remembered: Path) -> None:
    def listed(*words: str) -> str:
        return invoke("list", *words, "--database", str(remembered)).out

    assert [line.split()[-1] for line in listed("sessions").splitlines()] == ["tax", "trip/oslo"]
    assert listed() == listed("sessions")
    assert "Prefers the window seat." in listed("pins")
    assert listed("notes") == "no notes\n"
    invoke("remember", "A page.", "--type", "document", "--set", "source=page.md", "--database", str(remembered))
    invoke("remember", "I am allergic to nuts.", "--database", str(remembered))
    [note] = listed("notes").splitlines()
    assert note.endswith("I am allergic to nuts.")
    assert listed("pins", "--project", "boats") == "no pins of project boats\n"
    assert "window" in listed("pins", "--project", "personal")
    assert [json.loads(line)["messages"] for line in listed("sessions", "--json").splitlines()] == [2, 1]
    [pin] = [json.loads(line) for line in listed("pins", "--json").splitlines()]
    assert pin["session_id"] == "trip/oslo"


def test_a_conversation_is_listed_by_when_it_was_said_not_by_when_it_was_imported(
    invoke: Invoke, remembered: Path, tmp_path: Path
) -> None:
    said = {"uuid": "m1", "name": "Old", "created_at": "2024-03-04T10:00:00Z", "chat_messages": []}
    said["chat_messages"] = [
        {"uuid": "t1", "sender": "human", "text": "Hello there.", "created_at": "2024-03-04T10:00:00Z"}
    ]
    (tmp_path / "conversations.json").write_text(json.dumps([said]))
    invoke("import", "claude-ai", str(tmp_path / "conversations.json"), "--database", str(remembered))
    last = invoke("list", "--database", str(remembered)).out.splitlines()[-1]
    assert last.startswith("2024-03-04 10:00         1 message  m1")


def test_a_list_of_conversations_has_titles_short_ids_and_the_last_part_of_a_project(
    invoke: Invoke, tmp_path: Path
) -> None:
    database = tmp_path / "memory.db"
    ids = [f"{n}513270e-269e-4d37-b2a7-4de452e6b438" for n in range(3)]

    async def talk() -> None:
        async with open_memory(lay_empty_database(database)) as memory:
            for session_id, project in zip(ids, ("/home/ann/shop", "/home/ann/web/app", "/home/ann/app"), strict=True):
                messages = [NewMessage(Role.USER, "/model opus"), NewMessage(Role.USER, "Fix the \x1b[31mpoller test")]
                await (await memory.in_project(project)).record_messages(session_id, messages)

    anyio.run(talk)
    lines = invoke("list", "sessions", "--database", str(database)).out.splitlines()
    ends = [line.partition("messages  ")[2] for line in lines]
    assert ends == [
        "Fix the \\u{1b}[31mpoller test  2513270e  of /home/ann/app",
        "Fix the \\u{1b}[31mpoller test  1513270e  of /home/ann/web/app",
        "Fix the \\u{1b}[31mpoller test  0513270e  of shop",
    ]
    as_json = invoke("list", "sessions", "--json", "--database", str(database)).out
    listed = [json.loads(line) for line in as_json.splitlines()]
    assert [one["session_id"] for one in listed] == ids[::-1]
    assert {one["title"] for one in listed} == {"Fix the \x1b[31mpoller test"}


def test_a_conversation_is_forgotten_after_it_was_shown(
    invoke: Invoke, remembered: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = ("--database", str(remembered))
    refused = invoke("forget", "--session", "trip/oslo", *database)
    assert refused.code == 1
    assert "there is no terminal" in refused.err
    assert "We fly on May 3." in refused.out
    monkeypatch.setattr(sys, "stdin", Terminal("n\n"))
    assert invoke("forget", "--session", "trip/oslo", *database).code != 0
    assert "We fly" in invoke("search", "fly", *database).out
    monkeypatch.setattr(sys, "stdin", Terminal("y\n"))
    done = invoke("forget", "--session", "trip/oslo", *database)
    assert done.code == 0
    assert "forgot msg_1" in done.out
    assert invoke("list", "pins", *database).out == "no pins\n"
    assert "nothing found" in invoke("search", "fly", *database).out
    assert "Filed." in invoke("search", "filed", *database).out
    again = invoke("forget", "--session", "trip/oslo", "--yes", *database)
    assert again.out == "nothing is left of this conversation; nothing was forgotten\n"
    assert "restored msg_1" in invoke("restore", "msg_1", *database).out


def test_a_summarised_conversation_leaves_nothing_behind_when_it_is_forgotten(invoke: Invoke, remembered: Path) -> None:
    async def summarise() -> None:
        async with open_memory(remembered) as memory:
            said = [NewMessage(Role.USER, f"The heron number {n} lives near Moss.") for n in range(40)]
            await memory.record_messages("birds", said)
            await memory.conversations.summarize("birds")
            await memory.settled()

    anyio.run(summarise)
    done = invoke("forget", "--session", "birds", "--yes", "--database", str(remembered))
    assert done.code == 0
    assert "nothing found" in invoke("search", "heron", "--database", str(remembered)).out
    context = json.loads(invoke("stats", "--session", "birds", "--json", "--database", str(remembered)).out)
    assert (context["total_messages"], context["total_summaries"]) == (0, 0)


def test_an_unknown_conversation_is_no_conversation_to_forget(invoke: Invoke, remembered: Path) -> None:
    wrong = invoke("forget", "--session", "trip/osl", "--yes", "--database", str(remembered))
    assert wrong.code == 1
    assert "did you mean 'trip/oslo'" in wrong.err
    assert invoke("forget", "msg_1", "--session", "tax", "--database", str(remembered)).code == 2


def test_a_backup_is_made_listed_and_put_back(
    invoke: Invoke, remembered: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = ("--database", str(remembered))
    assert "no backups in" in invoke("backup", "--list", *database).out
    made = invoke("backup", *database)
    assert "checked: 2 sessions, 4 records" in made.out
    name = Path(made.out.split("  ")[0]).name
    assert name in invoke("backup", "--list", *database).out
    invoke("remember", "Said later.", *database)
    assert invoke("backup", "--restore", name, *database).code == 1
    assert "Said later." in invoke("list", "notes", *database).out
    monkeypatch.setattr(sys, "stdin", Terminal("y\n"))
    done = invoke("backup", "--restore", name, *database)
    assert "restored 2 sessions and 4 records" in done.out
    assert "the replaced database is now" in done.out
    assert invoke("list", "notes", *database).out == "no notes\n"
    assert invoke("backup", "--list", "--restore", name, *database).code == 2
    assert f"removed {name}" in invoke("backup", "--keep", "1", *database).out
    purged = invoke("purge", "msg_1", "--yes", *database).out
    assert ("could not clean memory.db.backups/" in purged, "no erased text remains" in purged) == (True, False)


def test_what_is_neither_a_source_nor_an_archive_is_refused(invoke: Invoke, remembered: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("Hello", encoding="utf-8")
    assert "is no archive" in invoke("import", str(tmp_path / "notes.txt"), "--database", str(remembered)).err
    assert "did you mean 'chatgpt'?" in invoke("import", "chatgtp", "--database", str(remembered)).err
