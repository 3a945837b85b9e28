"""Chats of VS Code: whole files, and logs of changes as it writes them."""

import json
from pathlib import Path
from typing import Any

import pytest

from kalito_mcp.exchange.conversation import Conversation, Home, Reading
from kalito_mcp.exchange.programs import SOURCES
from tests.exchange.files import lines, read

ASKED, ANSWERED = "Where is the ferry?", "At pier 4."
AT = 1_772_359_200_000
SOURCE = SOURCES["vscode"]


def request(text: Any, *response: Any, key: str = "r1", **others: Any) -> dict[str, Any]:
    return {
        "requestId": key,
        "timestamp": AT,
        "message": {"text": text, "parts": [{"kind": "text", "text": text}]},
        "variableData": {"variables": []},
        "response": list(response),
        "responseId": f"{key}-response",
        **others,
    }


def session(*requests: Any) -> dict[str, Any]:
    return {"version": 3, "sessionId": "v1", "creationDate": AT, "requests": list(requests)}


def whole(folder: Path, *requests: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "v1.json"
    path.write_text(json.dumps(session(*requests)))
    return path


def log(folder: Path, *changes: Any) -> Path:
    return lines(folder / "v1.jsonl", changes)


def said(path: Path) -> list[str]:
    found, _ = read(SOURCE, path)
    return [turn.text for turn in found["v1"]]


def test_words_are_read_and_what_tools_did_is_counted(tmp_path: Path) -> None:
    path = whole(
        tmp_path,
        request(
            ASKED,
            {"kind": "thinking", "value": "hm"},
            {"value": "It is in ", "supportThemeIcons": False},
            {"kind": "inlineReference", "inlineReference": {"path": "/home/ann/pier.rs", "scheme": "file"}},
            {"value": "."},
            {"kind": "toolInvocationSerialized", "toolId": "read", "invocationMessage": {"value": "Reading"}},
            {"kind": "inlineReference", "name": "Pier", "inlineReference": {"name": "x", "location": {}}},
            {"kind": "markdownContent", "content": {"value": " it is:\n```\n"}},
            {"kind": "codeblockUri", "uri": {"path": "/home/ann/pier.rs"}},
            {"kind": "textEditGroup", "edits": [[{"text": "fn pier() {}"}]]},
            {"value": "\n```\n"},
            {"value": ANSWERED},
            modelId="copilot/gpt-5",
            modelState={"value": 1, "completedAt": AT + 9_000},
        ),
        request("taken back", {"value": "x"}, key="r2", shouldBeRemovedOnSend={"requestId": "r2"}),
        request("cut", {"value": "kept"}, key="r3", shouldBeRemovedOnSend={"requestId": "r3", "afterUndoStop": "u"}),
        request("hidden", key="r4", isHidden=True),
        request("go on", {"value": "done"}, key="r5", isSystemInitiated=True),
        None,
    )
    found, reading = read(SOURCE, path)
    assert [(turn.role, turn.key, turn.text, turn.at, turn.model) for turn in found["v1"][:2]] == [
        ("user", "r1", ASKED, AT, None),
        (
            "assistant",
            "r1-response",
            f"It is in `pier.rs`.\n\n`Pier` it is:\n{ANSWERED}",
            AT + 9_000,
            "copilot/gpt-5",
        ),
    ]
    assert [turn.text for turn in found["v1"][2:]] == ["cut", "kept", "done"]
    assert reading.skipped == {
        "thinking": 1,
        "tool call or output": 1,
        "text of the host": 3,
        "another branch": 2,
        "message of an unknown kind": 1,
    }


def test_chats_of_the_first_releases_are_read(tmp_path: Path) -> None:
    old = {"message": ASKED, "response": [{"value": ANSWERED}], "isCanceled": False}
    found, _ = read(SOURCE, whole(tmp_path, old, {**old, "response": ANSWERED}))
    assert [turn.text for turn in found["v1"]] == [ASKED, ANSWERED, ASKED, ANSWERED]
    assert len({turn.key for turn in found["v1"]}) == 4


def test_a_log_is_replayed(tmp_path: Path) -> None:
    path = log(
        tmp_path,
        {"kind": 0, "v": session()},
        {"kind": 2, "k": ["requests"], "v": [request("first try"), request("undone", key="r2")]},
        {"kind": 1, "k": ["customTitle"], "v": "Ferries"},
        {"kind": 1, "k": ["requests", 0, "message"], "v": {"text": ASKED}},
        {"kind": 2, "k": ["requests", 0, "response"], "v": [{"value": "At "}, {"value": "pier"}]},
        {"kind": 2, "k": ["requests", 0, "response"], "v": [{"value": "pier 4."}], "i": 1},
        {"kind": 2, "k": ["requests"], "i": 1},
        {"kind": 2, "k": ["requests"], "v": [{**request("And the tram?", key="r3"), "response": None}]},
        {"kind": 2, "k": ["requests", 1, "response"], "v": [{"value": "In Bergen."}]},
        {"kind": 3, "k": ["customTitle"]},
        {"kind": 1, "k": ["requests", 9, "message"], "v": "x"},
        {"kind": 2, "k": ["version"], "v": []},
        {"kind": 7},
        {"kind": 1, "k": []},
    )
    found, reading = read(SOURCE, path)
    assert [turn.text for turn in found["v1"]] == [ASKED, ANSWERED, "And the tram?", "In Bergen."]
    assert reading.skipped == {"change that does not fit": 4}
    # After many changes the log begins again with the whole session.
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps({"kind": 0, "v": session(request("New"))}) + "\n" + '{"kind": 1, "k": ["requ')
    found, reading = read(SOURCE, path)
    assert [turn.text for turn in found["v1"]] == ["New"]
    assert reading.skipped["torn last line"] == 1


def test_an_answer_that_is_being_written_waits(tmp_path: Path) -> None:
    begun = request(ASKED, {"value": "At"}, modelState={"value": 0})
    assert said(log(tmp_path, {"kind": 0, "v": session(begun)})) == [ASKED]
    # Of one that was given up, with another after it, what is there is kept.
    assert said(log(tmp_path, {"kind": 0, "v": session(begun, request("Well?", key="r2"))})) == [ASKED, "At", "Well?"]


@pytest.mark.parametrize("changes", [[], [{"kind": 1, "k": ["requests"], "v": []}], [{"kind": 0, "v": []}], [{}]])
def test_a_log_that_does_not_begin_with_a_session_is_counted(tmp_path: Path, changes: list[Any]) -> None:
    found, reading = read(SOURCE, log(tmp_path, *changes))
    assert found == {}
    assert reading.skipped["file that is not a session"] == 1


def test_chats_are_found_with_the_folder_of_their_workspace(tmp_path: Path) -> None:
    user = tmp_path / ".config" / "Code" / "User"
    kept = whole(user / "workspaceStorage" / "a1" / "chatSessions", request(ASKED))
    far = log(user / "workspaceStorage" / "b2" / "chatSessions", {"kind": 0, "v": session(request(ASKED))})
    empty = whole(user / "globalStorage" / "emptyWindowChatSessions", request(ASKED))
    lines(user / "workspaceStorage" / "a1" / "other" / "v1.json", [{}])
    for place, about in (
        (kept, {"folder": "file:///home/ann/harbour%20lab"}),
        (far, {"folder": "vscode-remote://wsl%2Bubuntu/home/ann"}),
    ):
        (place.parent.parent / "workspace.json").write_text(json.dumps(about))
    assert list(SOURCE.find(Home(tmp_path, {}))) == [kept, far, empty]
    assert list(SOURCE.within(user / "workspaceStorage")) == [kept, far]

    def folder(path: Path) -> str | None:
        [conversation] = SOURCE.read(Reading(path))
        assert isinstance(conversation, Conversation)
        return conversation.folder

    assert [folder(path) for path in (kept, far, empty)] == [
        "file:///home/ann/harbour%20lab",
        "vscode-remote://wsl%2Bubuntu/home/ann",
        None,
    ]
