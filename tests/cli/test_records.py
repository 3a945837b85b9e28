"""What a person does with single records at the command line: see, correct, undo, forget, erase."""

import json
import shlex
import sys
from io import BytesIO, StringIO, TextIOWrapper
from pathlib import Path
from typing import Any

import anyio
import pytest

from kalito_mcp.domain.memory_records import Editor, EditorType
from kalito_mcp.domain.records import CreatePinRequest, NewMessage, Role, short_record_id
from kalito_mcp.wiring import open_memory
from tests.cli.conftest import Invoke, Outcome, Terminal
from tests.cli.test_main import imported_by

COLOUR = "\x1b[31mred\x9b2J\u202e"


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """A message `msg_1`, and nothing else."""
    database = tmp_path / "memory.db"

    async def fill() -> None:
        async with open_memory(database) as memory:
            message = NewMessage(Role.USER, "We fly to Oslo on May 3.", name="Ann")
            await memory.record_messages("trip", [message], client="desk")
            await memory.settled()

    anyio.run(fill)
    return database


def pin(database: Path) -> str:
    """The id, as commands print it, of a pin that was made from `msg_1`."""

    async def make() -> str:
        async with open_memory(database) as memory:
            request = CreatePinRequest("trip", "Flight to Oslo: May 3.", source_message_id="msg_1")
            return short_record_id((await memory.create_pin(request)).id)

    return anyio.run(make)


def remember(database: Path, record_type: str, **fields: Any) -> list[str]:
    """The ids of what was remembered, as commands print them."""

    async def keep() -> list[str]:
        async with open_memory(database) as memory:
            return [short_record_id(one.id) for one in await memory.remember(record_type, fields)]

    return anyio.run(keep)


def done(invoke: Invoke, database: Path, *arguments: str, **environment: str) -> str:
    """What a command that succeeds prints."""
    outcome = invoke(*arguments, KALITO_DATABASE=str(database), **environment)
    assert (outcome.code, outcome.err) == (0, "")
    return outcome.out


def refused(invoke: Invoke, database: Path, *arguments: str, code: int = 1, **environment: str) -> str:
    """What a command that is refused says; it is one sentence, unless the command line itself was wrong."""
    outcome = invoke(*arguments, KALITO_DATABASE=str(database), **environment)
    assert outcome.code == code
    assert code != 1 or (outcome.err.startswith("kalito-mcp: ") and outcome.err.count("\n") == 1)
    return outcome.err


def shown(invoke: Invoke, database: Path, *arguments: str) -> dict[str, Any]:
    """The record as a program reads it."""
    record: dict[str, Any] = json.loads(done(invoke, database, "show", "--json", *arguments))
    return record


def editor(tmp_path: Path, *lines: str) -> str:
    """An $EDITOR that runs these lines of Python, with the file that it opens as `path`."""
    script = tmp_path / "editor.py"
    script.write_text("\n".join(["import os, pathlib, sys, time", "path = pathlib.Path(sys.argv[1])", *lines]))
    return shlex.join([sys.executable, str(script)])


def test_showing_a_message_tells_all_about_it(invoke: Invoke, database: Path) -> None:
    remember(database, "thought", text="Pack.", caused_by="msg_1")
    done(invoke, database, "edit", "msg_1", "--set", 'tags=["travel", "north"]', "--set", "critical=true")
    head, *fields, blank, text = done(invoke, database, "show", "1").splitlines()
    told = dict(line.strip().split("  ", 1) for line in fields)
    assert head.startswith("msg_1  message  2")
    assert head.endswith(" UTC  revision 2")
    assert (told["session"], told["said by"], told["origin"]) == ("trip", "Ann", "user, through desk")
    assert told["tags"] == "travel, north"
    assert told["importance"].endswith(", critical")
    assert told["led to"].startswith("thought_")
    assert (blank, text) == ("", "  We fly to Oslo on May 3.")


def test_showing_a_task_tells_the_fields_of_its_type(invoke: Invoke, database: Path) -> None:
    [task] = remember(database, "task", text="Pack.\nSoon.", due_date="2030-05-02", caused_by="msg_1", priority="high")
    out = done(invoke, database, "show", task)
    for line in ("caused by  msg_1", "due date  2030-05-02", "priority  high", "importance  high (0.80)"):
        assert f" {line}\n" in out
    assert out.endswith("\n\n  Pack.\n  Soon.\n")


def test_showing_a_document_shows_all_its_parts_in_order(invoke: Invoke, database: Path) -> None:
    text = "\n\n".join(f"# Chapter {number}\n\n" + "word " * 700 for number in range(4))
    parts = remember(database, "document", text=text, source="/book.md")
    name = parts[0].partition(".")[0]
    assert len(parts) > 1
    out = done(invoke, database, "show", name)
    assert [line.split()[0] for line in out.splitlines() if line.startswith("document_")] == parts
    told = [json.loads(line) for line in done(invoke, database, "show", name, "--json").splitlines()]
    assert [one["chunk_index"] for one in told] == list(range(len(parts)))
    assert f"is a document of {len(parts)} parts; name one of them: document_" in refused(
        invoke, database, "edit", name, "--text", "x"
    )


def test_an_earlier_version_is_shown_by_number_or_by_moment(invoke: Invoke, database: Path) -> None:
    done(invoke, database, "edit", "msg_1", "--text", "We fly on May 4.")
    made = json.loads(done(invoke, database, "history", "msg_1", "--json").splitlines()[0])["timestamp"]
    for how in (["--version", "1"], ["--as-of", made]):
        assert shown(invoke, database, "msg_1", *how)["text"] == "We fly to Oslo on May 3."
    assert shown(invoke, database, "msg_1")["text"] == "We fly on May 4."


def test_as_of_what_the_history_prints_in_whole_seconds_is_the_version_made_then(
    invoke: Invoke, database: Path
) -> None:
    done(invoke, database, "edit", "msg_1", "--text", "We fly on May 4.")
    when = done(invoke, database, "history", "msg_1").splitlines()[-1].split("  ")[2].removesuffix(" UTC")
    for moment in (when, when[:16], when[:10]):
        assert shown(invoke, database, "msg_1", "--as-of", moment)["text"] == "We fly on May 4."


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["show", "msg_9"], 1, "no record 'msg_9'"),
        (["show", "msg_1", "--version", "7"], 1, "msg_1 has no version 7; its newest is 1"),
        (["show", "msg_1", "--as-of", "yesterday"], 1, "--as-of='yesterday' is not an ISO 8601 time"),
        (["show", "msg_1", "--as-of", "2026-01-01", "--version", "1"], 2, "not both"),
        (["revert", "msg_1", "2"], 1, "msg_1 has no version 2; its newest is 1"),
        (["edit", "msg_1", "--set", "tgas=[]"], 1, "unknown field 'tgas'; did you mean 'tags'?"),
        (["edit", "msg_1", "--set", "importance_score=NaN"], 1, "importance_score must be a number, not 'NaN'"),
        (["edit", "msg_1", "--set", "tags"], 2, "--set takes FIELD=VALUE"),
        (["edit", "msg_1", "--set", "tags=[]", "--unset", "tags"], 2, "a field is given twice"),
        (["edit", "msg_1", "--text", "x", "--revision", "7"], 1, "and there is no revision 7 yet; nothing was"),
        (["forget"], 2, "give an ID, --session, --about or --identifier"),
        (["restore", "msg_1", "msg_9"], 1, "no record 'msg_9'"),
        (["purge", "msg_1", "msg_9", "--yes"], 1, "no record 'msg_9'"),
        (["tasks", "--all", "--done"], 2, "not both"),
    ],
)
def test_what_cannot_be_is_refused_in_words_and_changes_nothing(
    invoke: Invoke, database: Path, arguments: list[str], code: int, words: str
) -> None:
    before = shown(invoke, database, "msg_1")
    assert words in refused(invoke, database, *arguments, code=code)
    assert shown(invoke, database, "msg_1") == before


def test_a_database_that_is_not_there_is_not_made(invoke: Invoke, tmp_path: Path) -> None:
    for arguments in (["edit", "1", "--text", "x"], ["forget", "1"], ["purge"]):
        assert "nothing has been recorded yet" in refused(invoke, tmp_path / "no.db", *arguments)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "words", "show 1; history 1; tasks; search x; list; read s; profile; stats; export -; token list".split("; ")
)
def test_before_the_first_message_a_command_that_reads_says_what_to_do_and_does_not_fail(
    invoke: Invoke, tmp_path: Path, words: str
) -> None:
    outcome = invoke(*words.split(), KALITO_DATABASE=str(tmp_path / "memory.db"))
    assert (outcome.code, outcome.out) == (0, "")
    assert "nothing is remembered yet. `kalito-mcp install`" in outcome.err
    assert list(tmp_path.iterdir()) == []


def test_a_star_is_every_project_for_what_is_read_and_none_for_what_is_kept(invoke: Invoke, database: Path) -> None:
    where = ("--project", "*", "--database", str(database))
    assert invoke("list", *where).out == invoke("list", *where[2:]).out != ""
    assert '"records"' in invoke("export", "-", *where).out
    assert "name one project" in refused(invoke, database, "remember", "Mo is a cat.", "--project", "*", code=2)


def test_an_edit_tells_what_changed_and_the_new_revision(invoke: Invoke, database: Path) -> None:
    out = done(invoke, database, "edit", "msg_1", "--text", "We fly on May 4.", "--set", "name=Bob", "--revision", "1")
    assert out.splitlines() == [
        "@@ text @@",
        "-We fly to Oslo on May 3.",
        "+We fly on May 4.",
        "-name: Ann",
        "+name: Bob",
        "msg_1 is now at revision 2",
    ]
    again = done(invoke, database, "edit", "msg_1", "--text", "We fly on May 4.")
    assert again == "nothing changed; msg_1 is still at revision 2\n"


def test_a_text_comes_from_standard_input_without_its_last_line_end(
    invoke: Invoke, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", StringIO("One.\nTwo.\n"))
    done(invoke, database, "edit", "msg_1", "--text", "-")
    assert shown(invoke, database, "msg_1")["text"] == "One.\nTwo."
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(b"\xff"), encoding="utf-8"))
    assert "standard input is not UTF-8" in refused(invoke, database, "edit", "msg_1", "--text", "-")


def test_who_has_no_login_name_can_edit_as_well(
    invoke: Invoke, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nobody() -> str:
        raise KeyError("uid")

    monkeypatch.setattr("getpass.getuser", nobody)
    done(invoke, database, "forget", "msg_1")
    last = json.loads(done(invoke, database, "history", "msg_1", "--json").splitlines()[-1])
    assert (last["editor_type"], last.get("editor_id")) == ("human", None)


def test_a_field_is_taken_away(invoke: Invoke, database: Path) -> None:
    [task] = remember(database, "task", text="Pack.", due_date="2030-05-02")
    assert "-due_date: 2030-05-02\n" in done(invoke, database, "edit", task, "--unset", "due_date")
    assert "due_date" not in shown(invoke, database, task)


def test_the_text_is_edited_in_the_persons_editor(invoke: Invoke, database: Path, tmp_path: Path) -> None:
    command = editor(tmp_path, "path.write_text(path.read_text().replace('May 3', 'May 4'))")
    out = done(invoke, database, "edit", "msg_1", EDITOR=command, VISUAL="")
    assert out.endswith("msg_1 is now at revision 2\n")
    assert shown(invoke, database, "msg_1")["text"] == "We fly to Oslo on May 4."


def test_an_editor_that_changes_nothing_makes_no_edit(invoke: Invoke, database: Path, tmp_path: Path) -> None:
    for line in ("pass", "path.write_text(path.read_text())"):
        out = done(invoke, database, "edit", "msg_1", VISUAL=editor(tmp_path, line))
        assert out == "nothing changed; msg_1 is still at revision 1\n"


def test_without_an_editor_that_works_nothing_is_written(invoke: Invoke, database: Path) -> None:
    for command in ("/no/such/editor", "false", "'", ""):
        error = refused(invoke, database, "edit", "msg_1", EDITOR=command, VISUAL="")
        assert "name an editor in $EDITOR, or give the new text with --text" in error
    assert shown(invoke, database, "msg_1")["revision"] == 1


def test_an_edit_meanwhile_is_not_overwritten_and_what_was_typed_is_not_lost(
    invoke: Invoke, database: Path, tmp_path: Path
) -> None:
    meanwhile = [sys.executable, "-m", "kalito_mcp", "edit", "1", "--text", "Theirs.", "--database", str(database)]
    command = editor(
        tmp_path, f"import subprocess; subprocess.run({meanwhile}, check=True, stdout=2)", "path.write_text('Mine.')"
    )
    outcome = invoke("edit", "msg_1", KALITO_DATABASE=str(database), VISUAL=command)
    assert (outcome.code, outcome.out) == (1, "Not stored. You wrote:\n  Mine.\n")
    assert "msg_1 was edited by somebody else and is at revision 2 now; nothing was written." in outcome.err
    assert "edited by somebody else" in refused(invoke, database, "edit", "1", "--text", "Mine.", "--revision", "1")
    assert shown(invoke, database, "msg_1")["text"] == "Theirs."


def test_the_history_names_every_edit_and_its_editor(invoke: Invoke, database: Path) -> None:
    async def by_an_assistant() -> None:
        async with open_memory(database) as memory:
            bot = Editor(EditorType.AGENT, "bot")
            await memory.update_memory("msg_1", {"text": "We fly on May 4."}, expected_revision=1, editor=bot)

    anyio.run(by_an_assistant)
    done(invoke, database, "forget", "msg_1")
    created, updated, deleted = done(invoke, database, "history", "msg_1").splitlines()
    assert created.startswith("    1  ")
    assert created.endswith("created")
    assert " update   agent bot " in updated
    assert deleted.startswith("*   3  ")
    assert " delete   human" in deleted
    edits = [json.loads(line) for line in done(invoke, database, "history", "msg_1", "--json").splitlines()]
    assert [edit["edit_type"] for edit in edits] == ["create", "update", "delete"]


def test_the_history_shows_what_each_edit_changed(invoke: Invoke, database: Path) -> None:
    done(invoke, database, "edit", "msg_1", "--text", "We fly on May 4.")
    lines = done(invoke, database, "history", "msg_1", "--diff").splitlines()
    assert lines[2:] == ["  @@ text @@", "  -We fly to Oslo on May 3.", "  +We fly on May 4."]
    *_, last = done(invoke, database, "history", "msg_1", "--diff", "--json").splitlines()
    assert json.loads(last)["diff"] == ["@@ text @@", "-We fly to Oslo on May 3.", "+We fly on May 4."]


def test_reverting_brings_a_version_back_as_a_new_one(invoke: Invoke, database: Path) -> None:
    done(invoke, database, "edit", "msg_1", "--text", "Wrong.")
    out = done(invoke, database, "revert", "msg_1", "1")
    assert out.splitlines()[1:] == ["-Wrong.", "+We fly to Oslo on May 3.", "msg_1 is now at revision 3"]
    assert done(invoke, database, "revert", "msg_1", "3") == "nothing changed; msg_1 is still at revision 3\n"


def test_what_is_forgotten_says_so_and_is_restored(invoke: Invoke, database: Path) -> None:
    [task] = remember(database, "task", text="Pack.")
    assert done(invoke, database, "forget", "1", task).splitlines() == ["forgot msg_1", f"forgot {task}"]
    assert done(invoke, database, "forget", task) == f"{task} is forgotten already\n"
    assert "  forgotten since 2" in done(invoke, database, "show", task).splitlines()[0]
    assert done(invoke, database, "tasks") == "agent 'default' has no open tasks\n"
    assert "restore it first" in refused(invoke, database, "edit", task, "--text", "x")
    assert done(invoke, database, "restore", "1", task).splitlines() == ["restored msg_1", f"restored {task}"]
    assert done(invoke, database, "restore", task) == f"{task} is not forgotten\n"
    assert shown(invoke, database, task)["is_deleted"] is False


def purge_at_a_terminal(
    invoke: Invoke, database: Path, monkeypatch: pytest.MonkeyPatch, answer: str, *record_ids: str
) -> Outcome:
    monkeypatch.setattr(sys, "stdin", Terminal(answer))
    return invoke("purge", *record_ids, KALITO_DATABASE=str(database))


def test_purging_shows_what_goes_and_asks(invoke: Invoke, database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = pin(database)
    parts = remember(database, "document", text="# A\n\n" + "word " * 3000, source="/book.md")
    name = parts[0].partition(".")[0]
    outcome = purge_at_a_terminal(invoke, database, monkeypatch, "y\n", "msg_1", name, name)
    asked, _, told = outcome.out.partition("Erase this? It cannot be undone. [y/N]: ")
    _, message, with_it, document = asked.splitlines()
    assert with_it.startswith(f"  with it {made}  ")
    assert outcome.code == 0
    assert message.startswith("  msg_1  2") and message.endswith("  We fly to Oslo on May 3.")
    assert f"  {len(parts)} parts  # A word word" in document
    assert document.endswith("…")
    erased = [line.removeprefix("erased ") for line in told.splitlines() if line.startswith("erased ")]
    assert {"msg_1", made, *parts} == set(erased)
    assert "\nno erased text remains in the memory's files\n" in told
    assert b"We fly to Oslo" not in database.read_bytes()


def test_a_purge_that_is_not_confirmed_erases_nothing(
    invoke: Invoke, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for answer in ("n\n", "\n", ""):
        assert purge_at_a_terminal(invoke, database, monkeypatch, answer, "msg_1").code == 130
    assert shown(invoke, database, "msg_1")["text"] == "We fly to Oslo on May 3."


def test_a_purge_without_a_terminal_needs_a_yes(invoke: Invoke, database: Path) -> None:
    assert "nothing was erased: there is no terminal to ask on; add --yes" in refused(
        invoke, database, "purge", "msg_1"
    )
    assert "erased msg_1\n" in done(invoke, database, "purge", "msg_1", "--yes")
    for arguments in (["show"], ["history"], ["restore"], ["forget"], ["edit", "--text", "x"]):
        assert "msg_1 was erased for good on 2" in refused(invoke, database, *arguments, "msg_1")
    assert done(invoke, database, "purge", "msg_1", "--yes").startswith("erased msg_1\nno erased text remains")


def test_a_purge_of_nothing_only_cleans_the_files_and_names_what_it_cannot(invoke: Invoke, database: Path) -> None:
    assert done(invoke, database, "purge") == "no erased text remains in the memory's files\n"
    backup = database.with_name(f"{database.name}.before-1.backup")
    backup.write_bytes(b"")
    stray = database.with_name(f"{database.name}.snapshots") / "notes.txt"
    stray.parent.mkdir()
    stray.write_bytes(b"")
    assert done(invoke, database, "purge") == (
        f"could not clean {stray.relative_to(database.parent)}: "
        "not a snapshot; delete it if it may contain what was erased\n"
        f"could not clean {backup.name}: a backup: delete it if it may contain the erased text\n"
    )


def test_tasks_are_a_table_of_what_is_due_first(invoke: Invoke, database: Path) -> None:
    [some_day] = remember(database, "task", text="Read.")
    [late] = remember(database, "task", text="Pack\nand go.", due_date="2001-05-02", assigned_to="Ann", priority="high")
    [over] = remember(database, "task", text="Book.", status="completed")
    head, *rows = done(invoke, database, "tasks").splitlines()
    assert head.split() == ["id", "status", "priority", "due", "assigned", "to", "text"]
    assert [row.split()[0] for row in rows] == [late, some_day]
    assert rows[0].split(maxsplit=1)[1] == "pending  high      2001-05-02 overdue  Ann          Pack and go."
    assert rows[1].split(maxsplit=1)[1] == "pending  medium    -                   -            Read."
    assert short_record_id(json.loads(done(invoke, database, "tasks", "--done", "--json"))["id"]) == over
    assert len(done(invoke, database, "tasks", "--all", "--json").splitlines()) == 3
    assert done(invoke, database, "tasks", "--agent", "nobody") == "agent 'nobody' has no open tasks\n"


def test_what_a_terminal_would_obey_never_reaches_it(
    invoke: Invoke, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [task] = remember(database, "task", text=f"A {COLOUR}", tags=["a\x9bb"], assigned_to="x\u202ey")
    out = done(invoke, database, "edit", task, "--text", f"B {COLOUR}")
    for arguments in (["show", task], ["history", task, "--diff"], ["tasks"]):
        out += done(invoke, database, *arguments)
        out += done(invoke, database, *arguments, "--json")
    out += purge_at_a_terminal(invoke, database, monkeypatch, "n\n", task).out
    assert not {"\x1b", "\x9b", "\u202e"} & {*out}
    assert "\\u{1b}[31mred\\u{9b}2J\\u{202e}" in out


@pytest.mark.parametrize("arguments", [["show", "msg_1"], ["search", "x"], ["edit", "--help"]])
def test_looking_at_records_never_imports_the_protocol(database: Path, arguments: list[str]) -> None:
    heavy = {"mcp", "mcp_types", "starlette", "uvicorn"} | (set() if "search" in arguments else {"numpy"})
    assert not imported_by(*arguments, database=database) & heavy


def test_everything_about_a_subject_is_shown_before_it_is_forgotten(
    invoke: Invoke, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal("n\n"))
    outcome = invoke("forget", "--about", "Oslo", "--database", str(database))
    assert outcome.code == 130
    assert outcome.out.startswith("To be forgotten (1):\n  msg_1  We fly to Oslo on May 3.\nForget these? [y/N]: ")
    assert not shown(invoke, database, "msg_1")["is_deleted"]
    assert done(invoke, database, "forget", "--about", "Oslo", "--yes") == "forgot msg_1\n"
    assert shown(invoke, database, "msg_1")["is_deleted"]
    assert done(invoke, database, "forget", "--about", "Oslo", "--yes") == "nothing matches; nothing was forgotten\n"
    erased = done(invoke, database, "purge", "--about", "Oslo", "--yes")
    assert erased.startswith("erased msg_1\nno erased text remains")
    assert b"fly to Oslo" not in database.read_bytes()


def test_an_identifier_is_erased_however_it_is_written_also_from_earlier_versions(
    invoke: Invoke, database: Path
) -> None:
    [task] = remember(database, "task", text="Call 555-010-4567.")
    [note] = remember(database, "note", text="Ring (555) 010 4567!")
    [other] = remember(database, "note", text="Ring 555-010-45678!")
    done(invoke, database, "edit", task, "--text", "Call them.")
    assert done(invoke, database, "forget", "--identifier", "5550104567", "--yes") == f"forgot {note}\n"
    told = done(invoke, database, "purge", "--identifier", "5550104567", "--yes")
    assert {f"erased {task}", f"erased {note}"} < set(told.splitlines())
    assert shown(invoke, database, other)["text"] == "Ring 555-010-45678!"
    assert b"010-4567." not in database.read_bytes()


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["forget", "msg_1", "--about", "Oslo"], 2, "give IDs, or --about and --identifier, not both"),
        (["forget", "--about", "people", "--yes"], 1, "names no subject; nothing was changed"),
        (["forget", "--identifier", "!", "--yes"], 1, "is not one; nothing was changed"),
        (["forget", "--about", "Oslo"], 1, "nothing was forgotten: there is no terminal to ask on; add --yes"),
    ],
)
def test_a_subject_that_cannot_be_is_refused_in_words(
    invoke: Invoke, database: Path, arguments: list[str], code: int, words: str
) -> None:
    assert words in refused(invoke, database, *arguments, code=code)
    assert not shown(invoke, database, "msg_1")["is_deleted"]
