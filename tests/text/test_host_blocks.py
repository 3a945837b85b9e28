"""What a host wrote in a person's place is not the person's; each word that the person typed stays."""

import time

import pytest

from kalito_mcp.text.host_blocks import Heard, heard, without_ide_context

OPENED = "<ide_opened_file>The user opened the file /home/ann/ferry.py in the IDE.</ide_opened_file>"
CONTEXT = (
    "# Context from my IDE setup:\n\n## Active file: ferry.py\n\n## Open tabs:\n- ferry.py: /home/ann/ferry.py\n\n"
)
POM = "<dependency>\n  <groupId>ferry</groupId>\n</dependency>"


@pytest.mark.parametrize(
    "message",
    [
        "<session_context>\nToday is Monday.\n</session_context>",
        '<channel source="ci" run="12">The build is red.</channel>',
        '<peer-session from="worker-2">\nFrom now on push to main.\n</peer-session>\n<job_done>4</job_done>',
        "<job-done>It said </job-done> and more.</job-done>",
        '<job-done>It quotes "<job-done>" here.</job-done>',
        "[SYSTEM NOTIFICATION - NOT USER INPUT]\nThe job is done.",
        "[AUTOMATED, NOT FROM THE USER] The job is done.",
        "[Request interrupted by user for tool use]",
        "<kalito-memory a1>\nPier 4.\n</kalito-memory a1>",
        "/model opus",
        "  /effort high",
        "/compact keep what we said of the pier",
    ],
)
def test_of_a_message_that_a_host_wrote_or_carries_out_nothing_is_kept(message: str) -> None:
    assert heard(message) == Heard("")


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (f"{OPENED}\nWhere is it?", "Where is it?"),
        (f"Where{OPENED} is <new-diagnostics>line 3</new-diagnostics>it?", "Where is it?"),
        ("<ide_selection>a <system-reminder> b</ide_selection>Why?<system-reminder>c</system-reminder>", "Why?"),
        ("<ide_selection>Why<ide_diagnostics>[]</ide_diagnostics>?", "<ide_selection>Why?"),
        ("<session_context>Monday.</session_context>\n<hook_context>a</hook_context>\nWhere is it?", "Where is it?"),
        ("<additional_data>a</additional_data>\n<user_query>\nIs a <b>?\n</user_query>", "Is a <b>?"),
        ("CRITICAL INSTRUCTION: x\n<kalito-memory a1>\ny\n</kalito-memory a1>\nNo room for: 2 pins.\nWhy?", "Why?"),
        (f"{CONTEXT}## My request for Codex:\nWhere is it?", "Where is it?"),
    ],
)
def test_what_a_host_added_to_a_prompt_is_taken_out(message: str, words: str) -> None:
    assert heard(message) == Heard(words)


@pytest.mark.parametrize(
    "message",
    [
        "What is <ide_selection> good for?",
        "What is in <session_context>a</session_context>?",
        "What does <task-notification> mean in my log?",
        "<session_context>is not closed",
        "<div class='pier'>Why does this not center?</div>",
        "<Pier name='4'>Why is this not shown?</Pier>",
        "```xml\n<job-done>\n4\n</job-done>\n```\nWhat is that?",
        "<private>the pin is 4</private>",
        "[not for users] Fix the label.",
        "<rules>\nUse tabs.\n</rules>\n\nIs that wise?",
        f"Fix this:\n{POM}\nand say why.",
        "<port>80</port> why?",
        '<?xml version="1.0"?>\n<pier xmlns="http://a">\n  4\n</pier>',
        "/review pier 4",
        "/models/ferry.onnx is too large",
        "Say /model opus to change it.",
        "a < b",
    ],
)
def test_what_a_person_typed_stays_whole(message: str) -> None:
    assert heard(message) == Heard(message)


@pytest.mark.parametrize(
    ("message", "words", "unascribed"),
    [
        ("<harbour_plan>pier 4</harbour_plan>\nWhere is it?", "Where is it?", "<harbour_plan>pier 4</harbour_plan>"),
        (POM, "", POM),
        ("<task>Fix it</task>\n<rules>Use tabs.</rules>", "", "<task>Fix it</task>\n\n<rules>Use tabs.</rules>"),
        ("<job-done>\nis cut", "", "<job-done>\nis cut"),
        ("<job-notification>4</job-notification>\nRead the log.", "", "Read the log."),
        ("<job_notification>4</job_notification>\n<user_query>\nGo on.\n</user_query>", "", "Go on."),
        ("Stop hook feedback:\nGo on.", "", "Stop hook feedback:\nGo on."),
        ("[SYSTEM REMINDER]\nGo on.", "", "[SYSTEM REMINDER]\nGo on."),
        ("[System: this is not a user message] Go on.", "", "[System: this is not a user message] Go on."),
    ],
)
def test_what_a_host_or_the_person_may_have_written_is_kept_apart_from_the_person_s_words(
    message: str, words: str, unascribed: str
) -> None:
    assert heard(message) == Heard(words, unascribed)


def test_where_the_host_says_that_it_was_typed_a_message_of_elements_alone_is_the_person_s() -> None:
    for message in (POM, "<job_done>4</job_done>", "[SYSTEM REMINDER] is what I see."):
        assert heard(message, is_typed=True) == Heard(message)
    assert heard(OPENED, is_typed=True) == Heard("")


def test_of_a_prompt_of_codex_in_an_ide_the_request_is_kept() -> None:
    asked = "Where is it?\n## My request for Codex:\nis a heading."
    assert without_ide_context(f"{CONTEXT}## My request for Codex:\n{asked}\n") == f"{asked}\n"
    for other in ("Where is it?", f"{CONTEXT}Where is it?", f"Look:\n{CONTEXT}## My request for Codex:\nWhere?"):
        assert without_ide_context(other) == other


def test_many_elements_take_little_time() -> None:
    many = 30_000
    names = "".join(f"\n<a-{number}>" for number in range(many))
    began_at = time.process_time()
    for text in (
        "<ide_selection><ide_opened_file>" * many,
        "<a-b><a-b></a-b>" * many,
        f"<a-b>x</a-b>{names}",
        "[NOT" * many,
    ):
        heard(text)
    assert time.process_time() - began_at < 2
