"""`kalito-mcp import`: what it finds, says and stores, once."""

import json
import lzma
import os
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from kalito_mcp.capture.spool import Spool
from kalito_mcp.cli.importing import ProgressLine
from kalito_mcp.domain.finalizing import FinalizeOptions
from kalito_mcp.domain.imports import StoredTurn
from kalito_mcp.domain.records import NewMessage, Role
from kalito_mcp.errors import Conflict
from kalito_mcp.exchange.claude_code import ClaudeCode
from kalito_mcp.exchange.conversation import Conversation, Home, Reading
from kalito_mcp.exchange.importer import Importer, found_in
from kalito_mcp.exchange.sources import EXPORTS, SOURCES
from kalito_mcp.runtime.database_address import LocalFiles
from kalito_mcp.switch import FOR_EVER, Switch, write_switch
from kalito_mcp.wiring import open_memory
from tests.cli.conftest import Invoke, Terminal
from tests.exchange.files import OTHER_SESSION, SESSION, Transcript, lines


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home folder with two transcripts of Claude Code."""
    folder = tmp_path / "home"
    for session, topic in ((SESSION, "ferry"), (OTHER_SESSION, "lighthouse")):
        told = Transcript(session, cwd=str(tmp_path / "harbour"))
        told.user(f"Where is the {topic}?")
        told.assistant(f"The {topic} is at pier 4.")
        told.write(folder / ".claude" / "projects" / "-home-ann-harbour")
    return folder


def stored(database: Path, session_id: str = SESSION) -> list[StoredTurn]:
    """The messages of a session."""

    async def look() -> list[StoredTurn]:
        async with open_memory(database) as memory:
            session = await memory.conversations.get(session_id)
            return (
                []
                if session is None
                else [turn async for turns in memory.conversations.turns(session) for turn in turns]
            )

    return anyio.run(look)


def test_all_that_is_found_is_imported_after_it_is_named(invoke: Invoke, home: Path, tmp_path: Path) -> None:
    database = tmp_path / "memory.db"
    done = invoke("import", "--database", str(database), HOME=str(home))
    assert done.code == 0
    assert done.out.splitlines() == [
        "Claude Code: 2 files, 0.0 MB",
        "imported 4 messages in 2 sessions",
        "the memory has 0 pins and 0 summaries now; `kalito-mcp profile` lists what every conversation begins with",
    ]
    assert [(turn.role, turn.text) for turn in stored(database)] == [
        (Role.USER, "Where is the ferry?"),
        (Role.ASSISTANT, "The ferry is at pier 4."),
    ]
    found = invoke("search", "lighthouse", "--project", str(tmp_path / "harbour"), "--database", str(database))
    assert "pier 4" in found.out


def test_what_is_known_after_an_import_is_listed_without_a_server(
    invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = Transcript(SESSION, cwd=str(tmp_path))
    told.user("Remember that I am allergic to nuts.")
    told.assistant("Noted.")
    told.write(tmp_path / "home" / ".claude" / "projects" / "-home-ann")
    arguments = ["--database", str(tmp_path / "memory.db")]
    done = invoke("import", *arguments, HOME=str(tmp_path / "home"))
    assert "the memory has 1 pin and 0 summaries now" in done.out
    assert "allergic to nuts" in invoke("profile", *arguments).out
    # A large import does not wait for all of it, and says that it goes on.
    monkeypatch.setattr("kalito_mcp.cli.importing._SETTLING_S", 0.0)
    later = invoke("import", "--database", str(tmp_path / "other.db"), HOME=str(tmp_path / "home"))
    assert later.out.splitlines()[-1] == (
        "not all is read for pins and summaries yet: that goes on while an assistant is open"
    )
    assert later.code == 0


def test_what_hooks_have_reported_while_no_server_ran_is_taken_in_before_an_import(
    invoke: Invoke, home: Path, tmp_path: Path
) -> None:
    database = tmp_path / "memory.db"
    spool = Spool(LocalFiles(database).spool)
    told = {"UserPromptSubmit": {"prompt": "Where is the ferry?"}, "Stop": {"last_assistant_message": "At pier 4."}}
    for number, (event, said) in enumerate(told.items()):
        payload = {"session_id": SESSION, "cwd": str(tmp_path / "harbour"), **said}
        report = {"host": "claude-code", "event": event, "payload": payload, "at_ms": number, "id": str(number)}
        spool.put(report, at_ms=number, event_id=str(number))
    done = invoke("import", "--database", str(database), HOME=str(home))
    assert "already there: 1 message" in done.out
    assert spool.count() == 0
    assert [turn.text for turn in stored(database)] == [
        "Where is the ferry?",
        "At pier 4.",
        "The ferry is at pier 4.",
    ]


def test_a_command_to_the_host_is_counted_and_is_nobody_s_message(invoke: Invoke, tmp_path: Path) -> None:
    told = Transcript(SESSION, cwd=str(tmp_path))
    told.user("<command-name>/model</command-name><command-args>opus</command-args>")
    told.user("Where is the ferry?")
    path = told.write(tmp_path)
    done = invoke("import", "claude-code", str(path), "--database", str(tmp_path / "memory.db"))
    assert "1  text of the host" in done.out
    assert [turn.text for turn in stored(tmp_path / "memory.db")] == ["Where is the ferry?"]


def test_a_second_import_changes_nothing(invoke: Invoke, home: Path, tmp_path: Path) -> None:
    database = tmp_path / "memory.db"
    invoke("import", "--database", str(database), HOME=str(home))
    before = stored(database)
    again = invoke("import", "--database", str(database), HOME=str(home))
    assert "imported 0 messages in 0 sessions" in again.out
    assert "unchanged since the last import: 2 files" in again.out
    # The same files elsewhere are read again, and recognised.
    moved = shutil.copytree(home, tmp_path / "moved")
    third = invoke("import", "--database", str(database), HOME=str(moved))
    assert "already there: 4 messages" in third.out
    assert stored(database) == before


def test_of_a_file_that_grew_only_what_is_new_is_read(invoke: Invoke, home: Path, tmp_path: Path) -> None:
    database = tmp_path / "memory.db"
    invoke("import", "--database", str(database), HOME=str(home))
    path = next((home / ".claude").rglob(f"{SESSION}.jsonl"))
    told = Transcript(SESSION)
    told.user("Where is the ferry?")
    told.assistant("The ferry is at pier 4.")
    told.user("And the tram?")
    more = (told.write(tmp_path)).read_text(encoding="utf-8").splitlines(keepends=True)[-1]
    with path.open("a", encoding="utf-8") as file:
        file.write(more)
    again = invoke("import", "--database", str(database), HOME=str(home))
    assert "imported 1 message in 1 session" in again.out
    assert "already there" not in again.out
    assert [turn.text for turn in stored(database)][2:] == ["And the tram?"]


def test_a_dry_run_writes_nothing(invoke: Invoke, home: Path, tmp_path: Path) -> None:
    database = tmp_path / "memory.db"
    done = invoke("import", "--dry-run", "--database", str(database), HOME=str(home))
    assert "found 4 messages in 2 sessions" in done.out
    assert not database.exists()


def test_where_nothing_is_found_it_says_of_what(invoke: Invoke, tmp_path: Path) -> None:
    done = invoke("import", "claude-code", "--database", str(tmp_path / "memory.db"), HOME=str(tmp_path))
    assert (done.code, done.out) == (0, "nothing found on this machine of Claude Code\n")
    wrong = invoke("import", "zeppelin")
    assert wrong.code == 2
    assert "'zeppelin' is no source and no file" in wrong.err


def test_messages_before_since_are_left_out_and_may_come_later(invoke: Invoke, home: Path, tmp_path: Path) -> None:
    database = tmp_path / "memory.db"
    first = invoke("import", "--since", "2026-03-02", "--database", str(database), HOME=str(home))
    assert "older than --since" in first.out
    assert stored(database) == []
    later = invoke("import", "--database", str(database), HOME=str(home))
    assert "imported 4 messages in 2 sessions" in later.out


def test_a_closed_session_goes_on_as_another_and_an_erased_one_is_left_alone(
    invoke: Invoke, home: Path, tmp_path: Path
) -> None:
    database = tmp_path / "memory.db"
    invoke("import", "--database", str(database), HOME=str(home))

    async def close_and_erase() -> None:
        async with open_memory(database) as memory:
            await memory.finalize_session(SESSION, FinalizeOptions())
            records = [await memory.records.get(f"msg_{number}") for number in range(1, 5)]
            await memory.purge([record.id for record in records if record.session_id == OTHER_SESSION])

    anyio.run(close_and_erase)
    for path in (home / ".claude").rglob("*.jsonl"):
        os.utime(path, (1, 1))
        told = Transcript(path.stem)
        for text in ("a", "b", "And the tram?"):
            told.user(text)
        with path.open("a", encoding="utf-8") as file:
            file.write(told.write(tmp_path).read_text(encoding="utf-8").splitlines(keepends=True)[-1])
    again = invoke("import", "--database", str(database), HOME=str(home))
    assert "imported 1 message in 1 session" in again.out
    assert "closed here, so what is new continues it as NAME~2: 1 session" in again.out
    assert "left alone: 1 session that you forgot or erased here" in again.out
    assert len(stored(database)) == 2
    assert [turn.text for turn in stored(database, f"{SESSION}~2")] == ["And the tram?"]
    assert stored(database, f"{OTHER_SESSION}~2") == []


def test_what_was_captured_before_is_not_stored_again(invoke: Invoke, home: Path, tmp_path: Path) -> None:
    database = tmp_path / "memory.db"

    async def capture() -> None:
        async with open_memory(database) as memory:
            said = [NewMessage(Role.USER, "Where is the ferry?", client_key="hook:1")]
            await memory.record_messages(SESSION, said)

    anyio.run(capture)
    done = invoke("import", "--database", str(database), HOME=str(home))
    assert "imported 3 messages in 2 sessions" in done.out
    assert "already there: 1 message" in done.out
    assert next(turn.client_key for turn in stored(database)) == "hook:1"


def test_an_edited_message_stays_edited(invoke: Invoke, home: Path, tmp_path: Path) -> None:
    database = tmp_path / "memory.db"
    invoke("import", "--database", str(database), HOME=str(home))
    invoke("edit", "msg_1", "--text", "Where is the new ferry?", "--database", str(database))
    moved = shutil.copytree(home, tmp_path / "moved")
    again = invoke("import", "--database", str(database), HOME=str(moved))
    assert "already there: 4 messages" in again.out
    assert "Where is the new ferry?" in [
        turn.text for name in (SESSION, OTHER_SESSION) for turn in stored(database, name)
    ]


def test_documents_are_kept_once_and_follow_their_file(invoke: Invoke, tmp_path: Path) -> None:
    database, path = tmp_path / "memory.db", tmp_path / "harbour" / "AGENTS.md"
    path.parent.mkdir()
    for text in ("Run make test in the harbour.", "Run make check in the harbour."):
        path.write_text(text)
        done = invoke("import", "instructions", str(path.parent), "--database", str(database))
        assert "imported 1 document" in done.out
    found = invoke("search", "harbour", "--database", str(database))
    assert "make check" in found.out
    assert invoke("list", "notes", "--database", str(database)).out == "no notes\n"
    assert "make test" not in found.out


def test_nothing_is_imported_into_an_ignored_project(invoke: Invoke, home: Path, tmp_path: Path) -> None:
    database, config = tmp_path / "memory.db", tmp_path / "config.toml"
    config.write_text(f"[memory]\nignored = ['{tmp_path / 'harbour'}']\n")
    done = invoke("import", "--database", str(database), "--config", str(config), HOME=str(home))
    assert "imported 0 messages" in done.out
    assert "4  message in a project where nothing is remembered" in done.out
    # The files were not read to their end: once the project is remembered again, they are.
    assert "imported 4 messages" in invoke("import", "--database", str(database), HOME=str(home)).out


def test_while_paused_it_reads_nothing_and_says_what_to_do(invoke: Invoke, home: Path, tmp_path: Path) -> None:
    at = ("--database", str(tmp_path / "memory.db"))
    invoke("pause", "--for", "2h", *at)
    refused = invoke("import", *at, HOME=str(home))
    assert (refused.code, refused.out) == (1, "Claude Code: 2 files, 0.0 MB\n")
    assert "the memory is paused until 2" in refused.err
    assert "`kalito-mcp resume` ends that" in refused.err
    assert "found 4 messages" in invoke("import", "--dry-run", *at, HOME=str(home)).out
    invoke("resume", *at)
    assert "imported 4 messages" in invoke("import", *at, HOME=str(home)).out


def test_an_import_stops_at_the_next_file_when_the_memory_is_paused(home: Path, tmp_path: Path) -> None:
    database = tmp_path / "memory.db"
    found = found_in(SOURCES["claude-code"], sorted(home.rglob("*.jsonl")))

    def pause(_done: int, messages: int) -> None:
        if messages:
            write_switch(LocalFiles(database).switch, Switch(FOR_EVER))

    async def run() -> int:
        async with open_memory(database) as memory:
            importer = Importer(memory, progress=pause)
            with pytest.raises(Conflict, match="paused"):
                await importer.run(found)
            return importer.report.files

    assert anyio.run(run) == 1


def test_a_message_that_cannot_be_stored_does_not_stop_the_rest(invoke: Invoke, tmp_path: Path) -> None:
    told = Transcript(SESSION)
    for text in ("One", "x" * 600_000, "two " * 300, "Three"):
        told.user(text)
    told.write(tmp_path)
    config = tmp_path / "config.toml"
    config.write_text("[memory]\nmax_text_bytes = 1000\n")
    database = tmp_path / "memory.db"
    done = invoke("import", "claude-code", str(tmp_path), "--database", str(database), "--config", str(config))
    assert "message that is empty or too long" in done.out
    assert "message that cannot be stored" in done.out
    assert [turn.text for turn in stored(database)] == ["One", "Three"]


def test_a_named_file_of_which_nothing_can_be_read_is_an_error(invoke: Invoke, home: Path, tmp_path: Path) -> None:
    database = ("--database", str(tmp_path / "memory.db"))
    for name in ("garbage.bin", "garbage.zip", "empty.jsonl"):
        path = tmp_path / name
        path.write_bytes(b"" if name.startswith("empty") else b"PK\0\1")
        source = "claude-code" if name.endswith(".jsonl") else "chatgpt"
        done = invoke("import", source, str(path), *database)
        assert done.code == 1
        assert f"nothing found in {path} of " in done.out
    path = next((home / ".claude").rglob(f"{SESSION}.jsonl"))
    assert invoke("import", "claude-code", str(path), "--since", "2030-01-01", *database).code == 0
    for _ in range(2):
        assert invoke("import", "claude-code", str(path), *database).code == 0
    os.utime(path, (1, 1))
    assert invoke("import", "claude-code", str(path), *database).code == 0


def test_a_source_of_exports_needs_its_file(invoke: Invoke, home: Path) -> None:
    for source, file in EXPORTS.items():
        done = invoke("import", source, HOME=str(home))
        assert done.code == 2
        assert f"name its file: `kalito-mcp import {source} {file}`" in done.err
        assert not list(SOURCES[source].find(Home(home, {})))


def test_a_damaged_file_does_not_stop_the_others(invoke: Invoke, tmp_path: Path) -> None:
    path = tmp_path / "export.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("conversations.json", json.dumps([{"mapping": {}, "title": "ferry"}] * 50))
    whole = path.read_bytes()
    begin = whole.index(b"conversations.json") + len("conversations.json") + 12
    path.write_bytes(whole[:begin] + bytes(byte ^ 0xFF for byte in whole[begin : begin + 40]) + whole[begin + 40 :])
    (tmp_path / "conversations.json").write_text("[]")
    done = invoke("import", "chatgpt", str(tmp_path), "--database", str(tmp_path / "memory.db"))
    assert f"could not be read: {path}" in done.out
    assert "imported 0 messages" in done.out


@pytest.mark.parametrize("error", [RecursionError(), MemoryError(), lzma.LZMAError(), KeyError("a")])
def test_a_file_whose_reader_fails_does_not_stop_the_others(
    invoke: Invoke, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    read = ClaudeCode.read

    def failing(self: ClaudeCode, reading: Reading) -> Iterator[Conversation]:
        if reading.path.stem == SESSION:
            raise error
        return read(self, reading)

    monkeypatch.setattr(ClaudeCode, "read", failing)
    done = invoke("import", "claude-code", "--database", str(tmp_path / "memory.db"), HOME=str(home))
    assert "imported 2 messages in 1 session" in done.out
    assert f"{SESSION}.jsonl" in done.out


def test_what_was_erased_or_forgotten_does_not_come_back(invoke: Invoke, home: Path, tmp_path: Path) -> None:
    database = tmp_path / "memory.db"
    invoke("import", "--database", str(database), HOME=str(home))
    invoke("purge", "msg_1", "--yes", "--database", str(database))
    invoke("forget", "msg_4", "--database", str(database))
    moved = shutil.copytree(home, tmp_path / "moved")
    again = invoke("import", "--database", str(database), HOME=str(moved))
    assert "imported 0 messages" in again.out
    assert "already there: 3 messages" in again.out
    assert "1  message that was erased here" in again.out


def test_a_rewritten_transcript_is_read_from_its_beginning(invoke: Invoke, home: Path, tmp_path: Path) -> None:
    database = tmp_path / "memory.db"
    invoke("import", "--database", str(database), HOME=str(home))
    path = next((home / ".claude").rglob(f"{SESSION}.jsonl"))
    told = Transcript(SESSION, cwd=str(tmp_path / "harbour"))
    told.user("Another beginning, which is quite a lot longer than it was before. " * 30, uuid="u-1")
    told.write(path.parent)
    again = invoke("import", "--database", str(database), HOME=str(home))
    assert "imported 1 message in 1 session" in again.out
    assert len(stored(database)) == 3


@pytest.mark.parametrize("session_id", ["x" * 300, "sk-ant-api03-" + "aB3" * 30, "a\nb"])
def test_a_session_with_an_id_that_cannot_be_used_gets_another(invoke: Invoke, tmp_path: Path, session_id: str) -> None:
    told = Transcript(session_id)
    told.user("Where?")
    database, path = tmp_path / "memory.db", lines(tmp_path / "a.jsonl", told.records)
    done = invoke("import", "claude-code", str(path), "--database", str(database))
    assert "imported 1 message in 1 session" in done.out
    os.utime(path, (1, 1))
    assert "imported 0 messages" in invoke("import", "claude-code", str(path), "--database", str(database)).out


@pytest.mark.campaign
def test_many_and_long_messages_are_recorded_in_batches(invoke: Invoke, tmp_path: Path) -> None:
    told = Transcript()
    for number in range(1_100):
        told.user(f"boat {number}" if number % 100 else f"boat {number} {'long ' * 80_000}")
    database = tmp_path / "memory.db"
    done = invoke("import", "claude-code", str(told.write(tmp_path)), "--database", str(database))
    assert "imported 1100 messages in 1 session" in done.out.replace(",", "")
    assert [turn.seq for turn in stored(database)] == list(range(1, 1_101))


def test_a_note_that_was_erased_stays_erased(invoke: Invoke, tmp_path: Path) -> None:
    database, path = tmp_path / "memory.db", tmp_path / "memories.json"
    path.write_text('[{"id": "1", "memory": "Ann likes oolong tea"}, {"id": "2", "memory": ""}]')
    first = invoke("import", "mem0", str(path), "--database", str(database))
    assert "imported 1 note" in first.out
    assert "oolong" in invoke("list", "notes", "--database", str(database)).out
    found = invoke("search", "oolong", "--json", "--database", str(database))
    invoke("purge", json.loads(found.out.splitlines()[0])["record_id"], "--yes", "--database", str(database))
    os.utime(path, (1, 1))
    again = invoke("import", "mem0", str(path), "--database", str(database))
    assert "1  text that was erased or is ignored here" in again.out
    assert "nothing found" in invoke("search", "oolong", "--database", str(database)).out


def test_progress_is_shown_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = Terminal()
    monkeypatch.setattr("sys.stderr", shown)
    line = ProgressLine(1_000)
    line(500, 20)
    line(501, 21)  # too soon to be drawn again
    line.clear()
    assert " 50%  20 messages  " in shown.getvalue()
    assert " s left" in shown.getvalue()
    assert "21 messages" not in shown.getvalue()
    assert shown.getvalue().endswith("\r")


@pytest.mark.skipif(os.name == "nt", reason="links need a right there")
def test_links_that_lead_out_of_the_folder_are_not_followed(invoke: Invoke, tmp_path: Path) -> None:
    database, repository, secrets = (tmp_path / name for name in ("memory.db", "repository", "secrets"))
    for folder in (repository / "docs", repository / ".cursor", secrets):
        folder.mkdir(parents=True)
    (secrets / "passwd.mdc").write_text("root")
    (repository / "docs" / "agents.md").write_text("Run make test.")
    (repository / "CLAUDE.md").symlink_to(secrets / "passwd.mdc")
    (repository / ".cursor" / "rules").symlink_to(secrets)
    (repository / "AGENTS.md").symlink_to(repository / "docs" / "agents.md")
    done = invoke("import", "instructions", str(repository), "--database", str(database))
    assert "imported 1 document" in done.out
    assert "2  link that leads out of the folder" in done.out


@pytest.mark.skipif(os.name == "nt", reason="links need a right there")
def test_at_home_a_linked_folder_is_followed_and_a_file_that_leads_out_is_not(invoke: Invoke, tmp_path: Path) -> None:
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    for folder in (home / ".codex", elsewhere):
        folder.mkdir(parents=True)
    (elsewhere / "CLAUDE.md").write_text("Be brief.")
    (home / ".claude").symlink_to(elsewhere)
    (home / ".codex" / "AGENTS.md").symlink_to(elsewhere / "CLAUDE.md")
    done = invoke("import", "instructions", "--database", str(tmp_path / "memory.db"), HOME=str(home))
    assert "imported 1 document" in done.out
    assert "1  link that leads out of the folder" in done.out
