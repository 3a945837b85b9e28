"""Remember and find records at the command line."""

import json
import shlex
import sys
from io import BytesIO, StringIO, TextIOWrapper
from pathlib import Path

import anyio
import pytest

from kalito_mcp.cli.running import this_person
from kalito_mcp.domain.records import NewMessage, Origin, Role, short_record_id
from kalito_mcp.domain.time import from_iso
from kalito_mcp.wiring import open_memory
from tests.cli.conftest import Invoke
from tests.cli.test_records import COLOUR, done, refused, shown

TOKEN = "ghp_" + "a1B2c3D4e5F6" * 3


def kept(out: str) -> str:
    """The id that `remember` prints."""
    return out.split()[2]


def test_a_note_is_kept_in_the_words_of_who_runs_it(invoke: Invoke, remembered: Path) -> None:
    out = done(invoke, remembered, "remember", "The spare key hangs in the shed.", "--set", 'tags=["house"]')
    assert out.startswith("remembered note document_")
    assert out.count("\n") == 1
    note = shown(invoke, remembered, kept(out))
    assert (note["text"], note["tags"], note["origin"]) == ("The spare key hangs in the shed.", ["house"], "user")
    [created] = done(invoke, remembered, "history", kept(out), "--json").splitlines()
    assert json.loads(created)["editor_type"] == "human"


def test_tags_may_be_written_with_commas(invoke: Invoke, remembered: Path) -> None:
    note = kept(done(invoke, remembered, "remember", "The spare key.", "--set", "tags=house,garden"))
    assert shown(invoke, remembered, note)["tags"] == ["house", "garden"]
    for given, tags in ((" a , b,", ["a", "b"]), ("house", ["house"]), ('["x,y"]', ["x,y"]), ("7", ["7"])):
        done(invoke, remembered, "edit", note, "--set", f"tags={given}")
        assert shown(invoke, remembered, note)["tags"] == tags


@pytest.mark.parametrize(("record_type", "noun"), [("note", "note or document"), ("task", "task")])
def test_exactly_the_words_of_an_erased_record_are_refused_and_other_words_are_not(
    invoke: Invoke, remembered: Path, record_type: str, noun: str
) -> None:
    again = ["remember", "--type", record_type, "The spare key hangs in the shed."]
    erased = kept(done(invoke, remembered, *again))
    done(invoke, remembered, "purge", erased, "--yes")
    said = refused(invoke, remembered, *again)
    assert f"a {noun} with this text (32 characters) was erased for good on 20" in said
    assert "Put it in other words" in said
    done(invoke, remembered, "remember", "--type", record_type, "The spare key hangs in the shed, says Ann.")
    other = kept(done(invoke, remembered, "remember", "Where is the key?"))
    done(invoke, remembered, "edit", other, "--text", "The spare key hangs in the shed.")


def test_what_was_forgotten_is_remembered_again(invoke: Invoke, remembered: Path) -> None:
    again = ["remember", "The spare key hangs in the shed."]
    forgotten = kept(done(invoke, remembered, *again))
    done(invoke, remembered, "forget", forgotten)
    assert kept(done(invoke, remembered, *again)) != forgotten


def test_a_thought_is_kept_where_it_belongs(invoke: Invoke, remembered: Path) -> None:
    record_type = "thought"
    place = ["--session", "tax", "--agent", "default"]
    out = done(invoke, remembered, "remember", "Pay.", "--type", record_type, "--set", "critical=true", *place)
    assert out == f"remembered {record_type} {kept(out)}\n"
    record = shown(invoke, remembered, kept(out))
    assert (record["type"], record["session_id"], record["critical"]) == (record_type, "tax", True)


def test_a_note_comes_from_standard_input(invoke: Invoke, remembered: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", StringIO("One.\nTwo.\n"))
    assert shown(invoke, remembered, kept(done(invoke, remembered, "remember", "-")))["text"] == "One.\nTwo."
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(b"\xff"), encoding="utf-8"))
    assert "standard input is not UTF-8" in refused(invoke, remembered, "remember", "-")


def test_a_file_is_kept_in_parts_and_replaced_when_it_comes_again(
    invoke: Invoke, remembered: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    book = tmp_path / "book.md"
    book.write_bytes(b"\xef\xbb\xbf" + b"\n\n".join(b"# Part %d\n\n" % one + b"word " * 700 for one in range(4)))
    out = done(invoke, remembered, "remember", "--file", str(book))
    parts = done(invoke, remembered, "show", kept(out), "--json").splitlines()
    assert out == f"remembered document {kept(out)} in {len(parts)} parts\n"
    assert json.loads(parts[0])["text"].startswith("# Part 0")
    assert {(json.loads(one)["source"], json.loads(one)["origin"]) for one in parts} == {(str(book), "document")}
    book.write_text("-")
    monkeypatch.chdir(tmp_path)
    assert done(invoke, remembered, "remember", "--file", "book.md") == f"remembered document {kept(out)}\n"


def test_removed_secrets_are_reported(invoke: Invoke, remembered: Path) -> None:
    secret = f"Use {TOKEN} or {TOKEN[::-1][:-4]}{TOKEN}, <private>mine</private>."
    first, told = done(invoke, remembered, "remember", secret).splitlines()
    assert told == "removed and not stored: github_token, private"
    assert TOKEN not in shown(invoke, remembered, kept(first))["text"]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["remember"], 2, "give a text (- reads it from standard input) or --file"),
        (["remember", "--file", "{file}", "--type", "note"], 2, "leave out --type"),
        (["remember", "--file", "{file}", "--set", "text=x"], 2, "leave out --set text"),
        (["remember", "--file", "{file}.no"], 2, "does not exist"),
        (["remember", "--file", "{file}"], 1, "book.txt is not UTF-8"),
        (["remember", "x", "--type", "pin"], 2, "'pin' is not one of 'note', 'task', 'document', 'thought'"),
        (["remember", "x", "--set", "text=y"], 2, "a field is given twice"),
        (["search", "x", "--min-importance", "2"], 2, "'2': use a number from 0 to 1, or low, medium"),
        (["search", "x", "--since", "soon"], 1, "since='soon' is not a time that can be read"),
        (["search", "x", "--type", "note"], 2, "'note' is not one of 'message'"),
    ],
)
def test_what_cannot_be_kept_or_looked_for_is_refused_in_words(
    invoke: Invoke, remembered: Path, tmp_path: Path, arguments: list[str], code: int, words: str
) -> None:
    file = tmp_path / "book.txt"
    file.write_bytes(b"caf\xe9")
    assert words in refused(invoke, remembered, *(one.format(file=file) for one in arguments), code=code)


def test_a_search_shows_a_line_with_the_id_of_each_hit(invoke: Invoke, remembered: Path) -> None:
    line, *_ = done(invoke, remembered, "search", "when", "do", "we", "fly").splitlines()
    assert line.startswith("msg_1  message  2")
    assert line.endswith("  user: We fly on May 3.")
    assert done(invoke, remembered, "search", "fly", "--session", "tax").startswith("nothing found\n")
    assert shown(invoke, remembered, "msg_1")["usage_count"] == 1


def test_a_search_is_of_the_types_asked_for_and_no_longer_than_asked_for(invoke: Invoke, remembered: Path) -> None:
    long = "Window " + "very " * 40 + "seat."
    task = kept(done(invoke, remembered, "remember", long, "--type", "task"))
    thought = kept(done(invoke, remembered, "remember", "Window?", "--type", "thought"))
    found = done(invoke, remembered, "search", "window").splitlines()
    assert {line.split()[0].partition("_")[0] for line in found} == {"pin", "task"}
    assert len(done(invoke, remembered, "search", "window", "--limit", "1").splitlines()) == 1
    both = done(invoke, remembered, "search", "window", "--type", "task", "--type", "thought", "--json").splitlines()
    assert {short_record_id(json.loads(line)["record_id"]) for line in both} == {task, thought}
    [line] = done(invoke, remembered, "search", "window", "--type", "task").splitlines()
    assert line.startswith(f"{task}  task pending  2")
    words = line.partition("  user: ")[2]
    assert 90 < len(words) <= 100
    assert words.endswith("very…")


@pytest.fixture
def apples(tmp_path: Path) -> Path:
    """A database with two messages of March and May 2026, and two notes of now."""
    database = tmp_path / "apples.db"

    async def remember() -> None:
        async with open_memory(database) as memory:
            march, may = (from_iso(moment) for moment in ("2026-03-15", "2026-05-18"))
            said = [
                NewMessage(Role.USER, "Apples in March", "Ann", march, details={"tags": ["garden"]}),
                NewMessage(Role.ASSISTANT, "Apples in May", created_at=may, origin=Origin.TOOL),
            ]
            await memory.record_messages("talk", said)
            for text, score in (("Apples in the cellar", 0.7), ("Apples on the list", 0.2)):
                await memory.remember("note", {"text": text, "importance_score": score}, editor=this_person())

    anyio.run(remember)
    return database


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ("--type message", {"Apples in March", "Apples in May"}),
        ("--role assistant", {"Apples in May"}),
        ("--name ann", {"Apples in March"}),
        ("--tag garden --tag kitchen", {"Apples in March"}),
        ("--origin tool --origin import", {"Apples in May"}),
        ("--min-importance high --type document", {"Apples in the cellar"}),
        ("--since 7d --type message --now 2026-05-20", {"Apples in May"}),
        ("--until 'last March' --now 2026-05-20", {"Apples in March"}),
        ("--since yesterday", {"Apples in the cellar", "Apples on the list"}),
    ],
)
def test_a_search_is_narrowed_by_each_of_its_options(
    invoke: Invoke, apples: Path, options: str, found: set[str]
) -> None:
    lines = done(invoke, apples, "search", "apples", *shlex.split(options), "--json").splitlines()
    assert {json.loads(line)["text"] for line in lines} == found


def test_a_search_may_hold_a_phrase_and_leave_words_out(invoke: Invoke, apples: Path) -> None:
    assert "the cellar" in done(invoke, apples, "search", 'apples "the cellar"', "-k", "1")
    for left_out in (["apples -cellar -list -may"], ["apples", "--", "-cellar", "-list", "-may"]):
        [line] = done(invoke, apples, "search", *left_out).splitlines()
        assert line.endswith("Ann: Apples in March")


def test_an_explained_search_says_below_each_hit_why_it_is_there(invoke: Invoke, apples: Path) -> None:
    hit, *why = done(invoke, apples, "search", "apples", "-k", "1", "--explain").splitlines()
    assert "message" in hit
    assert {line[:2] for line in why} == {"  "}
    parts = dict(line.split() for line in why if line.startswith("    "))
    assert float(parts["words"]) > 0
    line = done(invoke, apples, "search", "apples", "-k", "1", "--explain", "--json")
    assert json.loads(line)["parts"].keys() == parts.keys()
    assert "parts" not in done(invoke, apples, "search", "apples", "--json")


def test_a_search_that_finds_nothing_says_what_to_try(invoke: Invoke, apples: Path) -> None:
    *_, tip = done(invoke, apples, "search", "zeppelin").splitlines()
    assert tip == "  try other words for it (--also), a name or a date"
    *_, tip = done(invoke, apples, "search", "apples", "--name", "Eve", "--since", "7d").splitlines()
    assert tip == "  try without --name or --since"
    outcome = invoke("search", "zeppelin", "--json", KALITO_DATABASE=str(apples))
    assert (outcome.code, outcome.out, outcome.err) == (0, "", 'nothing matches this query; not found: "zeppelin"\n')


def test_a_hit_never_has_what_a_terminal_would_obey(invoke: Invoke, remembered: Path) -> None:
    done(invoke, remembered, "remember", f"Paint the\nshed {COLOUR}")
    out = done(invoke, remembered, "search", "shed") + done(invoke, remembered, "search", "shed", "--json")
    assert not {"\x1b", "\x9b", "\u202e"} & {*out}
    assert out.count("\n") == 2


def test_what_is_remembered_first_makes_a_memory_and_says_where(invoke: Invoke, tmp_path: Path) -> None:
    database = tmp_path / "new.db"
    outcome = invoke("remember", "The spare key hangs in the shed.", "--database", str(database))
    assert outcome.code == 0
    assert f"created a new memory: {database}" in outcome.out
    assert "spare key" in invoke("search", "key", "--database", str(database)).out
