"""What hosts send to their hooks, in the words of all hosts."""

import json
from typing import Any

import pytest

from kalito_mcp.capture.answers import answer_for
from kalito_mcp.capture.events import EventKind, ToolUse, read_event

BASE: dict[str, Any] = {"session_id": "s1", "cwd": "/home/ann/shop", "transcript_path": "/t.jsonl"}


@pytest.mark.parametrize(
    ("host", "name", "payload", "kind", "text"),
    [
        ("claude-code", "UserPromptSubmit", BASE | {"prompt": "Hi", "prompt_id": "p1"}, EventKind.PROMPT, "Hi"),
        ("claude-code", "Stop", BASE | {"last_assistant_message": "Hello"}, EventKind.REPLY, "Hello"),
        ("claude-code", "PostCompact", BASE | {"compact_summary": "We met."}, EventKind.COMPACTED, "We met."),
        ("claude-code", "SessionStart", BASE | {"source": "startup"}, EventKind.STARTED, ""),
        ("codex", "UserPromptSubmit", BASE | {"prompt": "Hi"}, EventKind.PROMPT, "Hi"),
        (
            "codex",
            "UserPromptSubmit",
            BASE | {"prompt": "# Context from my IDE setup:\n\n## Open tabs:\n- a\n\n## My request for Codex:\nHi"},
            EventKind.PROMPT,
            "Hi",
        ),
        (
            "claude-code",
            "UserPromptSubmit",
            BASE | {"prompt": "<ide_opened_file>The user opened a.py</ide_opened_file>Hi"},
            EventKind.PROMPT,
            "Hi",
        ),
        (
            "cursor",
            "beforeSubmitPrompt",
            {"conversation_id": "s1", "workspace_roots": ["/home/ann/shop"], "prompt": "Hi", "generation_id": "g"},
            EventKind.PROMPT,
            "Hi",
        ),
        ("cursor", "afterAgentResponse", {"conversation_id": "s1", "text": "Hello"}, EventKind.REPLY, "Hello"),
        ("gemini", "AfterAgent", BASE | {"prompt": "Hi", "prompt_response": "Hello"}, EventKind.REPLY, "Hello"),
        (
            "gemini",
            "BeforeAgent",
            BASE | {"prompt": "<hook_context>&lt;kalito-memory 1&gt;\n- x</hook_context>\n\nHi <hook_context>"},
            EventKind.PROMPT,
            "Hi <hook_context>",
        ),
        ("opencode", "chat.message", {"session_id": "s1", "prompt": "Hi", "message_id": "m"}, EventKind.PROMPT, "Hi"),
        (
            "opencode",
            "chat.message",
            {"session_id": "s1", "prompt": '"Say \\"Hi\\" now"'},
            EventKind.PROMPT,
            'Say "Hi" now',
        ),
        ("opencode", "chat.message", {"session_id": "s1", "prompt": '"a" or "b"'}, EventKind.PROMPT, '"a" or "b"'),
        ("opencode", "session.idle", {"session_id": "s1", "text": "Hello"}, EventKind.REPLY, "Hello"),
        ("copilot", "userPromptSubmitted", {"sessionId": "s1", "prompt": "Hi"}, EventKind.PROMPT, "Hi"),
        (
            "windsurf",
            "pre_user_prompt",
            {"trajectory_id": "s1", "execution_id": "e1", "tool_info": {"user_prompt": "Hi"}},
            EventKind.PROMPT,
            "Hi",
        ),
        (
            "windsurf",
            "post_cascade_response",
            {"trajectory_id": "s1", "cwd": "/home/ann/shop", "tool_info": {"response": "Hello"}},
            EventKind.REPLY,
            "Hello",
        ),
        ("vscode", "UserPromptSubmit", {"sessionId": "s1", "prompt": "Hi"}, EventKind.PROMPT, "Hi"),
    ],
)
def test_each_host_is_understood(host: str, name: str, payload: dict[str, Any], kind: EventKind, text: str) -> None:
    event = read_event(host, name, payload)
    assert event is not None
    assert (event.kind, event.session_id, event.text) == (kind, "s1", text)
    if "cwd" in payload or "workspace_roots" in payload:
        assert event.folder == "/home/ann/shop"


@pytest.mark.parametrize(
    ("name", "payload"),
    [
        ("UserPromptSubmit", BASE | {"prompt": "Hi", "source": "loop_wakeup"}),
        ("UserPromptSubmit", BASE | {"prompt": "  "}),
        ("UserPromptSubmit", {"prompt": "Hi"}),
        ("UserPromptSubmit", {"session_id": 5, "prompt": "Hi"}),
        ("Stop", BASE | {"last_assistant_message": "Done", "agent_id": "a1"}),
        ("Stop", BASE),
        ("Unheard", BASE | {"prompt": "Hi"}),
        ("PostToolUse", BASE | {"tool_name": "Read", "tool_input": {"file_path": "a.py"}}),
        ("PostToolUse", BASE | {"tool_name": "Bash", "tool_input": "ls"}),
        ("PostToolUse", BASE | {"tool_name": "Bash", "tool_input": {"command": 5}}),
    ],
)
def test_what_no_person_and_no_assistant_said_is_left_out(name: str, payload: dict[str, Any]) -> None:
    assert read_event("claude-code", name, payload) is None


def test_an_unknown_host_is_not_guessed_at() -> None:
    assert read_event("emacs", "UserPromptSubmit", BASE | {"prompt": "Hi"}) is None


@pytest.mark.parametrize(
    ("payload", "tool"),
    [
        ({"tool_name": "Edit", "tool_input": {"file_path": "/a.py"}}, ToolUse("Edit", files=("/a.py",))),
        ({"tool_name": "Bash", "tool_input": {"command": "make"}}, ToolUse("Bash", command="make")),
        ({"tool_name": "shell", "tool_input": {"command": ["make", "-j"]}}, ToolUse("shell", command="make -j")),
        (
            {"tool_name": "Bash", "tool_input": {"command": "make"}, "error": "Exit code 2"},
            ToolUse("Bash", command="make", error="Exit code 2"),
        ),
        (
            {
                "tool_name": "Bash",
                "tool_input": {"command": "make"},
                "tool_response": {"exit_code": 2, "stderr": "no rule", "stdout": ""},
            },
            ToolUse("Bash", command="make", error="no rule"),
        ),
        (
            {
                "tool_name": "Bash",
                "tool_input": {"command": "make"},
                "tool_response": {"exit_code": 0, "stderr": "warn"},
            },
            ToolUse("Bash", command="make"),
        ),
    ],
)
def test_files_commands_and_errors_of_tools(payload: dict[str, Any], tool: ToolUse) -> None:
    event = read_event("claude-code", "PostToolUse", BASE | payload)
    assert event is not None
    assert event.tool == tool


@pytest.mark.parametrize(
    ("host", "name", "payload", "tool"),
    [
        (
            "claude-code",
            "PostToolUseFailure",
            {"tool_name": "Bash", "tool_input": '{"command": "make"}', "tool_response": "Exit code 2: no rule"},
            ToolUse("Bash", command="make", error="Exit code 2: no rule"),
        ),
        (
            "copilot",
            "postToolUse",
            {
                "toolName": "bash",
                "toolArgs": '{"command": "make"}',
                "toolResult": {"resultType": "failure", "textResultForLlm": "no rule"},
            },
            ToolUse("bash", command="make", error="no rule"),
        ),
        (
            "windsurf",
            "post_write_code",
            {"tool_info": {"file_path": "/a.py", "edits": [{"old_string": "a", "new_string": "b"}]}},
            ToolUse("post_write_code", files=("/a.py",)),
        ),
        (
            "windsurf",
            "post_run_command",
            {"tool_info": {"command_line": "make -j", "cwd": "/home/ann/shop/web"}},
            ToolUse("post_run_command", command="make -j"),
        ),
        (
            "vscode",
            "PostToolUse",
            {
                "tool_name": "replace_string_in_file",
                "tool_input": {"filePath": "/a.py", "oldString": "a"},
                "tool_response": "File edited successfully",
            },
            ToolUse("replace_string_in_file", files=("/a.py",)),
        ),
        (
            "vscode",
            "PostToolUse",
            {"tool_name": "run_in_terminal", "tool_input": {"command": "make"}, "tool_response": "done"},
            ToolUse("run_in_terminal", command="make"),
        ),
        (
            "codex",
            "PostToolUse",
            {
                "tool_name": "apply_patch",
                "tool_input": {
                    "command": "*** Begin Patch\n*** Update File: a.py\n@@\n-x\n+y\n*** Move to: b.py\n"
                    "*** Add File: c.py\n+z\n*** End Patch"
                },
                "tool_response": "Exit code: 0\nOutput:\nSuccess.",
            },
            ToolUse("apply_patch", files=("a.py", "b.py", "c.py")),
        ),
        (
            "codex",
            "PostToolUse",
            {"tool_name": "Bash", "tool_input": {"command": "make"}, "tool_response": "Exit code: 2\nno rule"},
            ToolUse("Bash", command="make", error="Exit code: 2\nno rule"),
        ),
        (
            "codex",
            "PostToolUse",
            {"tool_name": "Bash", "tool_input": {"command": "cat deep.json"}, "tool_response": "[" * 100_000},
            ToolUse("Bash", command="cat deep.json"),
        ),
        (
            "gemini",
            "AfterTool",
            {
                "tool_name": "run_shell_command",
                "tool_input": {"command": "make"},
                "tool_response": {"llmContent": "Output: no rule\nExit Code: 2\nSignal: (none)"},
            },
            ToolUse("run_shell_command", command="make", error="Output: no rule\nExit Code: 2\nSignal: (none)"),
        ),
        (
            "gemini",
            "AfterTool",
            {"tool_name": "write_file", "tool_input": {"file_path": "/a.py"}, "tool_response": {}},
            ToolUse("write_file", files=("/a.py",)),
        ),
    ],
)
def test_tools_of_other_hosts_and_forms(host: str, name: str, payload: dict[str, Any], tool: ToolUse) -> None:
    event = read_event(host, name, BASE | payload)
    assert event is not None
    assert event.tool == tool


def test_a_session_that_is_resumed_or_cleared_is_not_over() -> None:
    over = [read_event("claude-code", "SessionEnd", BASE | {"reason": one}) for one in ("other", "resume", "clear")]
    assert [event is not None and event.is_over for event in over] == [True, False, False]


def test_a_hook_that_two_hosts_run_says_which_of_them_it_was() -> None:
    prompt = BASE | {"prompt": "Hi"}
    of_copilot = read_event("copilot", "userPromptSubmitted", prompt)
    of_vscode = read_event("copilot", "userPromptSubmitted", prompt | {"hookEventName": "UserPromptSubmit"})
    assert of_copilot is not None and of_vscode is not None
    assert (of_copilot.host, of_copilot.name) == ("copilot", "userPromptSubmitted")
    assert (of_vscode.host, of_vscode.name, of_vscode.kind) == ("vscode", "UserPromptSubmit", EventKind.PROMPT)
    assert json.loads(answer_for(of_copilot, "Known.")) == {"additionalContext": "Known."}
    assert json.loads(answer_for(of_vscode, "Known.")) == {
        "hookSpecificOutput": {"hookEventName": "UserPromptSubmit", "additionalContext": "Known."}
    }


def test_where_windsurf_works_is_not_where_its_command_ran() -> None:
    ran = {
        "trajectory_id": "s1",
        "cwd": "/home/ann/shop",
        "tool_info": {"command_line": "ls", "cwd": "/home/ann/shop/web"},
    }
    event = read_event("windsurf", "post_run_command", ran)
    assert event is not None
    assert event.folder == "/home/ann/shop"


@pytest.mark.parametrize("given", [None, 5, [], "x", {"user_prompt": 5}, {"command_line": 5}])
def test_what_windsurf_says_in_another_shape_is_left_out(given: object) -> None:
    for name in ("pre_user_prompt", "post_run_command", "post_write_code", "post_cascade_response"):
        assert read_event("windsurf", name, {"trajectory_id": "s1", "tool_info": given}) is None


@pytest.mark.parametrize("more", [{"source": "loop_wakeup"}, {"prompt": "<job-done>3</job-done>"}])
def test_what_no_person_wrote_is_no_prompt(more: dict[str, Any]) -> None:
    assert read_event("claude-code", "UserPromptSubmit", BASE | {"prompt": "Hi"} | more) is None


@pytest.mark.parametrize("field", ["source", "reason", "prompt_id", "cwd", "agent_id"])
@pytest.mark.parametrize("value", [[], {}, 5, [[]]])
def test_a_field_of_another_type_is_no_error(field: str, value: object) -> None:
    for name in ("UserPromptSubmit", "SessionEnd", "PostToolUse"):
        read_event("claude-code", name, BASE | {"prompt": "Hi", field: value})


def test_a_context_that_is_too_long_loses_lines_but_not_its_end() -> None:
    event = read_event("claude-code", "UserPromptSubmit", BASE | {"prompt": "Hi"})
    assert event is not None
    lines = ["<kalito-memory x>", *(f"- line {number} {'.' * 90}" for number in range(200)), "</kalito-memory x>"]
    said = json.loads(answer_for(event, "\n".join(lines)))["hookSpecificOutput"]["additionalContext"].split("\n")
    assert (said[:2], said[-1]) == (lines[:2], lines[-1])
    assert 80 < len(said) < 100
