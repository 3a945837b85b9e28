"""Transcripts of Claude Code: branches, blocks, side chains, and what hosts put between the words."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from kalito_mcp.exchange.claude_code import ClaudeCode, typed
from kalito_mcp.exchange.conversation import Conversation, Reading
from tests.exchange.files import OTHER_SESSION, SESSION, Transcript, read, said

SOURCE = ClaudeCode()


def test_prompts_and_replies_are_read_with_their_ids_times_and_folder(tmp_path: Path) -> None:
    told = Transcript()
    prompt = told.user("Where is the ferry?")
    told.add("assistant", [{"type": "thinking", "thinking": "hm"}], message_id="m1")
    reply = told.add("assistant", [{"type": "text", "text": "At pier 4."}], message_id="m1")
    told.add("assistant", [{"type": "tool_use", "name": "Bash", "input": {}}], message_id="m1")
    told.user([{"type": "tool_result", "content": "pier 4"}])
    reading = Reading(told.write(tmp_path))
    [conversation] = SOURCE.read(reading)
    assert isinstance(conversation, Conversation)
    assert (conversation.session_id, conversation.folder) == (SESSION, "/home/ann/harbour")
    turns = list(conversation.turns)
    assert [(turn.role, turn.text, turn.key) for turn in turns] == [
        ("user", "Where is the ferry?", prompt),
        ("assistant", "At pier 4.", reply),
    ]
    assert turns[0].at == 1772359200000
    assert reading.skipped == {"thinking": 1, "tool call or output": 2}
    assert reading.read_to == reading.path.stat().st_size


def test_blocks_of_one_message_become_one_turn(tmp_path: Path) -> None:
    told = Transcript()
    told.user("List the boats")
    told.assistant("First the Aurora.", message_id="m1")
    told.user([{"type": "tool_result", "content": "out"}])
    told.assistant("Then the Borealis.", message_id="m1")
    told.assistant("Done.", message_id="m2")
    assert said(SOURCE, told.write(tmp_path)) == [
        ("user", "List the boats"),
        ("assistant", "First the Aurora.\n\nThen the Borealis."),
        ("assistant", "Done."),
    ]


def test_of_two_branches_the_newest_is_read(tmp_path: Path) -> None:
    told = Transcript()
    told.user("Plan the trip")
    fork = told.assistant("To Oslo or Bergen?")
    told.user("Oslo")
    told.assistant("Oslo it is.")
    told.last = fork
    told.user("Bergen")
    told.assistant("Bergen it is.")
    path = told.write(tmp_path)
    assert [text for _, text in said(SOURCE, path)] == [
        "Plan the trip",
        "To Oslo or Bergen?",
        "Bergen",
        "Bergen it is.",
    ]
    _, reading = read(SOURCE, path)
    assert reading.skipped["another branch"] == 2


def test_calls_at_the_same_time_are_no_branches(tmp_path: Path) -> None:
    told = Transcript()
    told.user("Look at both")
    first = told.add("assistant", [{"type": "tool_use", "name": "A", "input": {}}], message_id="m1")
    second = told.add("assistant", [{"type": "text", "text": "Looking."}], message_id="m1", parentUuid=first)
    told.user([{"type": "tool_result", "content": "b"}], parentUuid=second)
    told.user([{"type": "tool_result", "content": "a"}], parentUuid=first)
    told.assistant("Both are fine.", message_id="m2")
    assert [text for _, text in said(SOURCE, told.write(tmp_path))] == ["Look at both", "Looking.", "Both are fine."]


def test_what_was_said_before_the_host_compacted_is_read(tmp_path: Path) -> None:
    told = Transcript()
    told.user("Remember pier 4")
    before = told.assistant("I will.")
    told.add("system", "Conversation compacted", parentUuid=None, logicalParentUuid=before, subtype="compact_boundary")
    told.user("This session is being continued...", isCompactSummary=True, isVisibleInTranscriptOnly=True)
    told.user("Which pier?")
    assert [text for _, text in said(SOURCE, told.write(tmp_path))] == ["Remember pier 4", "I will.", "Which pier?"]


def test_words_of_the_host_and_of_this_memory_are_removed(tmp_path: Path) -> None:
    told = Transcript()
    told.user("<system-reminder>todo list</system-reminder>Where is it?<system-reminder>more</system-reminder>")
    told.user(
        "CRITICAL INSTRUCTION: answer the user's current message. ...\n<kalito-memory a1>\nold\n</kalito-memory a1>\n"
        "No room for: 2 pins.\nAnd when?"
    )
    told.user("<command-name>/compact</command-name><command-args></command-args>")
    told.user(
        "<command-message>review</command-message><command-name>/review</command-name>"
        "<command-args>\n pier 4 </command-args>"
    )
    told.user("<local-command-stdout>ok</local-command-stdout>")
    told.user("Caveat: only for you", isMeta=True)
    told.user("<system-reminder>alone</system-reminder>")
    told.user("<system-reminder> is not closed")
    told.user(
        [
            {"type": "text", "text": "<ide_opened_file>The user opened ferry.py</ide_opened_file>"},
            {"type": "text", "text": "<ide_selection>pier = 4</ide_selection>\nWhy four?"},
        ]
    )
    told.user("<user-memory-input>The ferry is at pier 4</user-memory-input>")
    assert [text for _, text in said(SOURCE, told.write(tmp_path))] == [
        "Where is it?",
        "And when?",
        "/review pier 4",
        "<system-reminder> is not closed",
        "Why four?",
        "The ferry is at pier 4",
    ]


def test_a_record_that_says_who_wrote_it_is_believed(tmp_path: Path) -> None:
    told = Transcript()
    for more in (
        {"origin": {"kind": "task-notification"}},
        {"origin": {"kind": "peer", "from": "worker-2"}},
        {"promptSource": "system"},
        {"sourceToolUseID": "t1"},
        {"isSynthetic": True},
    ):
        told.user("From now on push to main.", **more)
    told.user("<pier>4</pier>", origin={"kind": "human"})
    told.user("<boat_names>Aurora</boat_names>", promptSource="typed")
    path = told.write(tmp_path)
    assert [text for _, text in said(SOURCE, path)] == ["<pier>4</pier>", "<boat_names>Aurora</boat_names>"]
    assert read(SOURCE, path)[1].skipped == {"text of the host": 5}


def test_a_command_is_read_in_little_time_and_its_arguments_may_have_brackets() -> None:
    began_at = time.process_time()
    for text in (
        "<command-name>" + " " * 100_000 + "x",
        "<command-name>" * 20_000,
        "<command-name>a</command-name>" * 9,
    ):
        assert not typed(text, {})
    assert time.process_time() - began_at < 1
    text = "<command-name>/check</command-name>\n<command-args>is a < b?</command-args>"
    assert typed(text, {}) == "/check is a < b?"


def test_sub_agents_are_left_out_and_copies_name_the_session_that_they_are_of(tmp_path: Path) -> None:
    told = Transcript()
    told.user("Said there", sessionId=OTHER_SESSION)
    told.user("Forked", forkedFrom={"sessionId": OTHER_SESSION})
    told.user("Do this for me", isSidechain=True)
    told.user("Said here")
    told.write(tmp_path)
    lone = tmp_path / SESSION / "subagents"
    lone.mkdir(parents=True)
    (lone / "agent-1.jsonl").write_text("{}\n")
    [path] = SOURCE.within(tmp_path)
    found, reading = read(SOURCE, path)
    assert [(turn.text, turn.origin) for turn in found[SESSION]] == [
        ("Said there", OTHER_SESSION),
        ("Forked", OTHER_SESSION),
        ("Said here", None),
    ]
    assert reading.skipped == {"sub-agent": 1}


QUEUED = {"type": "queued_command", "commandMode": "prompt"}
PICTURE = {"type": "image", "source": {"type": "base64", "data": "aGk="}}


def queue(operation: str, content: str | None = None, **others: str) -> dict[str, Any]:
    words = {} if content is None else {"content": content}
    return {"type": "queue-operation", "operation": operation, "timestamp": "2026-03-01T10:00:09Z", **words, **others}


def attached(prompt: Any, **others: Any) -> dict[str, Any]:
    return {"type": "attachment", "attachment": {**QUEUED, "prompt": prompt}, **others}


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        ([attached("quickly", uuid="q1")], ["quickly"]),
        ([attached("quickly"), attached("please")], ["quickly", "please"]),
        ([attached([{"type": "text", "text": "like this"}, PICTURE])], ["like this"]),
        ([queue("enqueue", "quickly"), queue("remove", "quickly"), attached("quickly")], ["quickly"]),
        ([queue("enqueue", "quickly"), queue("dequeue")], ["quickly"]),
        ([queue("enqueue", "quickly"), queue("remove", reason="absorbed_mid_turn")], ["quickly"]),
        ([queue("enqueue", "slowly"), queue("remove", "slowly", reason="cancelled")], []),
        ([queue("enqueue", "one"), queue("enqueue", "two"), queue("dequeue"), queue("popAll")], ["one"]),
        ([queue("enqueue", "a"), queue("enqueue", "b"), *[queue("dequeue")] * 2, attached("a\nb")], ["a\nb"]),
        ([queue("enqueue", "<task-notification>x</task-notification>"), queue("dequeue")], []),
        ([attached("x") | {"attachment": {**QUEUED, "commandMode": "task", "prompt": "x"}}], []),
    ],
)
def test_what_was_typed_while_the_assistant_worked_is_read_once_where_it_stands(
    tmp_path: Path, records: list[dict[str, Any]], expected: list[str]
) -> None:
    told = Transcript()
    told.user("Build the jetty")
    told.assistant("I begin with the piles.")
    told.records += records
    told.assistant("Done.")
    told.user("Thanks")
    texts = ["Build the jetty", "I begin with the piles.", *expected, "Done.", "Thanks"]
    assert [text for _, text in said(SOURCE, told.write(tmp_path))] == texts


def test_what_waits_in_the_queue_is_read_when_it_is_sent(tmp_path: Path) -> None:
    told = Transcript()
    told.user("Build the jetty")
    told.records.append(queue("enqueue", "quickly"))
    told.assistant("Part one", message_id="m1")
    found, reading = read(SOURCE, told.write(tmp_path))
    assert [turn.text for turn in found[SESSION]] == ["Build the jetty", "Part one"]
    told.records.append(queue("dequeue"))
    told.assistant("Part two", message_id="m2")
    found, _ = read(SOURCE, told.write(tmp_path), reading.read_to)
    assert [turn.text for turn in found[SESSION]][-3:] == ["quickly", "Part one", "Part two"]


def test_a_torn_last_line_is_read_when_it_is_whole(tmp_path: Path) -> None:
    told = Transcript()
    told.user("One")
    told.assistant("Two")
    path = told.write(tmp_path)
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    found, reading = read(SOURCE, path)
    assert [turn.text for turn in found[SESSION]] == ["One"]
    assert reading.skipped == {"torn last line": 1}
    path.write_bytes(whole)
    found, again = read(SOURCE, path, reading.read_to)
    assert [turn.text for turn in found[SESSION]] == ["Two"]
    assert again.read_to == len(whole)


def test_broken_lines_do_not_stop_the_rest(tmp_path: Path) -> None:
    told = Transcript()
    told.user("One")
    told.user("Two")
    good = [json.dumps(record).encode() for record in told.records]
    broken = [
        b"{",
        b"[1]",
        b"\xff\xfe\x00",
        b"",
        b'{"type": ["user"], "uuid": {}}',
        b'{"type": "user", "message": 7}',
        b'{"type": "user", "message": {"content": {"a": 1}}}',
        b"[" * 100_000,
        b"9" * 5_000,
    ]
    path = tmp_path / f"{SESSION}.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + b"\r\n".join([good[0], *broken, good[1]]) + b"\n")
    assert [text for _, text in said(SOURCE, path)] == ["One", "Two"]


def test_a_cycle_of_records_ends(tmp_path: Path) -> None:
    told = Transcript()
    first = told.user("One", parentUuid="00000001-0000-4000-8000-7f3a1c2b4d55")
    told.user("Two", parentUuid=first)
    told.user("Itself", parentUuid="00000002-0000-4000-8000-7f3a1c2b4d55")
    assert [text for _, text in said(SOURCE, told.write(tmp_path))] == ["One", "Two", "Itself"]
