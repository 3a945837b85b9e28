"""What hosts put into prompts is taken out, and each word of the user stays."""

import time

from kalito_mcp.text.host_blocks import without_blocks, without_ide_context, words_of_person

OPENED = "<ide_opened_file>The user opened the file /home/ann/ferry.py in the IDE.</ide_opened_file>"
CONTEXT = (
    "# Context from my IDE setup:\n\n## Active file: ferry.py\n\n## Open tabs:\n- ferry.py: /home/ann/ferry.py\n\n"
)


def test_blocks_of_claude_code_are_taken_out_of_a_prompt() -> None:
    for prompt, typed in (
        (f"{OPENED}\nWhere is it?", "\nWhere is it?"),
        (f"Where{OPENED} is <new-diagnostics>line 3</new-diagnostics>it?", "Where is it?"),
        ("<ide_selection>a <system-reminder> b</ide_selection>Why?<system-reminder>c</system-reminder>", "Why?"),
        ("<user-prompt-submit-hook>a</user-prompt-submit-hook>Why?", "Why?"),
        ("What is <ide_selection> good for?", "What is <ide_selection> good for?"),
        ("<ide_selection>Why<ide_diagnostics>[]</ide_diagnostics>?", "<ide_selection>Why?"),
        ("a < b", "a < b"),
    ):
        assert without_blocks(prompt) == typed


def test_of_a_message_that_a_host_wrote_or_carried_out_nothing_is_the_person_s() -> None:
    for message, said in (
        ("<session_context>\nToday is Monday.\n</session_context>", ""),
        ("<session_context>Monday.</session_context>\n<hook_context>a</hook_context>\nWhere is it?", "Where is it?"),
        ("What is in <session_context>a</session_context>?", "What is in <session_context>a</session_context>?"),
        ("<session_context>is not closed", "<session_context>is not closed"),
        ("<harbour_plan>pier 4</harbour_plan>", "<harbour_plan>pier 4</harbour_plan>"),
        ("/model opus", ""),
        ("  /effort high", ""),
        ("/compact", ""),
        ("/compact keep what we said of the pier", ""),
        ("/review pier 4", "/review pier 4"),
        ("/models/ferry.onnx is too large", "/models/ferry.onnx is too large"),
        ("Say /model opus to change it.", "Say /model opus to change it."),
    ):
        assert words_of_person(message) == said


def test_of_a_prompt_of_codex_in_an_ide_the_request_is_kept() -> None:
    asked = "Where is it?\n## My request for Codex:\nis a heading."
    assert without_ide_context(f"{CONTEXT}## My request for Codex:\n{asked}\n") == f"{asked}\n"
    for other in ("Where is it?", f"{CONTEXT}Where is it?", f"Look:\n{CONTEXT}## My request for Codex:\nWhere?"):
        assert without_ide_context(other) == other


def test_many_blocks_that_are_not_closed_take_little_time() -> None:
    text = "<ide_selection><ide_opened_file>" * 50_000
    began_at = time.process_time()
    assert without_blocks(text) == text
    assert time.process_time() - began_at < 1
