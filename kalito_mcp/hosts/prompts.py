"""The input of each host's hook when a person has written a prompt, for `kalito-mcp doctor`. Pure.

Fields that no hook of ours reads are left out. Sources: as for the events in `capture.events`.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final


def _claude(session_id: str, folder: str, text: str) -> dict[str, Any]:
    return {
        "session_id": session_id,
        "transcript_path": "",
        "cwd": folder,
        "hook_event_name": "UserPromptSubmit",
        "prompt": text,
    }


def _cursor(session_id: str, folder: str, text: str) -> dict[str, Any]:
    return {
        "conversation_id": session_id,
        "hook_event_name": "beforeSubmitPrompt",
        "workspace_roots": [folder],
        "prompt": text,
        "attachments": [],
    }


def _gemini(session_id: str, folder: str, text: str) -> dict[str, Any]:
    return {"session_id": session_id, "cwd": folder, "hook_event_name": "BeforeAgent", "prompt": text}


def _copilot(session_id: str, folder: str, text: str) -> dict[str, Any]:
    return {"sessionId": session_id, "cwd": folder, "prompt": text}


def _opencode(session_id: str, folder: str, text: str) -> dict[str, Any]:
    return {"session_id": session_id, "cwd": folder, "prompt": text}


def _vscode(session_id: str, folder: str, text: str) -> dict[str, Any]:
    return {"sessionId": session_id, "cwd": folder, "hookEventName": "UserPromptSubmit", "prompt": text}


def _windsurf(session_id: str, folder: str, text: str) -> dict[str, Any]:
    """Without the folder: the hook runs in it."""
    del folder
    return {
        "agent_action_name": "pre_user_prompt",
        "trajectory_id": session_id,
        "tool_info": {"user_prompt": text},
    }


PAYLOADS: Final[Mapping[str, Callable[[str, str, str], dict[str, Any]]]] = {
    "claude-code": _claude,
    "codex": _claude,
    "cursor": _cursor,
    "gemini": _gemini,
    "vscode": _vscode,
    "copilot": _copilot,
    "opencode": _opencode,
    "windsurf": _windsurf,
}
"""By host: what it sends for a prompt, made of the session's id, the folder and the text."""
