"""Exports of ChatGPT: the zip, its folder, or `conversations.json`; large ones have several (`conversations-000.json`).

A conversation is a tree of messages. What is read is the way from `current_node` to the root; an older export may have
none, and then the newest end counts.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from kalito_mcp.domain.records import Role
from kalito_mcp.exchange.conversation import Conversation, Home, Reading, Turn, moment
from kalito_mcp.exchange.exports import exports_in, streams
from kalito_mcp.exchange.json_files import json_list
from kalito_mcp.exchange.texts import count, hash_of, without, words_of

_FILES: Final = "conversations*.json"
_ROLES: Final = {"user": Role.USER, "assistant": Role.ASSISTANT}
_SPOKEN: Final = frozenset(("text", "multimodal_text"))
_THOUGHT: Final = frozenset(("thoughts", "reasoning_recap"))


class ChatGpt:
    """`conversation.Source`."""

    name: Final = "chatgpt"
    title: Final = "ChatGPT"
    is_appended: Final = False

    def find(self, home: Home) -> Iterable[Path]:
        del home  # an export can be anywhere
        return ()

    def within(self, folder: Path) -> Iterable[Path]:
        return exports_in(folder, _FILES)

    def read(self, reading: Reading) -> Iterator[Conversation]:
        for _, stream in streams(reading, _FILES):
            for one in json_list(stream, reading):
                if isinstance(one, dict) and isinstance(one.get("mapping"), dict):
                    yield _conversation(one, reading)
                else:
                    count(reading.skipped, "conversation of an unknown kind")


def _conversation(one: dict[str, Any], reading: Reading) -> Conversation:
    mapping: dict[str, Any] = one["mapping"]
    begun = moment(one.get("create_time")) or moment(one.get("update_time"))
    named = one.get("conversation_id") or one.get("id")
    session_id = named if isinstance(named, str) else hash_of(one.get("title"), begun, next(iter(mapping), None))
    way = _way(mapping, one.get("current_node"))
    on_it = set(way)
    for key, node in mapping.items():
        if key not in on_it and _said(node, {}):
            count(reading.skipped, "another branch")
    return Conversation(session_id, _turns(mapping, way, reading), started_at=begun)


def _way(mapping: dict[str, Any], current: Any) -> list[str]:
    """The keys of the nodes from the root to the current one."""
    if not isinstance(current, str) or current not in mapping:
        current = _newest_end(mapping)
    way: dict[str, None] = {}
    while isinstance(current, str) and current in mapping and current not in way:
        way[current] = None
        node = mapping[current]
        current = node.get("parent") if isinstance(node, dict) else None
    return [*reversed(way)]


def _newest_end(mapping: dict[str, Any]) -> str | None:
    """The newest message that nothing follows; of equals, and without times, the last in the file."""
    parents = {node.get("parent") for node in mapping.values() if isinstance(node, dict) and _has_parent(node)}
    ends = [key for key in mapping if key not in parents] or list(mapping)
    return max(enumerate(ends), key=lambda end: (_time_of(mapping[end[1]]), end[0]))[1] if ends else None


def _has_parent(node: dict[str, Any]) -> bool:
    return isinstance(node.get("parent"), str)


def _time_of(node: Any) -> int:
    message = node.get("message") if isinstance(node, dict) else None
    return (moment(message.get("create_time")) or 0) if isinstance(message, dict) else 0


def _turns(mapping: dict[str, Any], way: list[str], reading: Reading) -> Iterator[Turn]:
    for key in way:
        node = mapping[key]
        if said := _said(node, reading.skipped):
            message = node["message"]
            metadata = message.get("metadata")
            model = metadata.get("model_slug") if isinstance(metadata, dict) else None
            named = message.get("id")
            yield Turn(
                _ROLES[message["author"]["role"]],
                said,
                named if isinstance(named, str) else key,
                moment(message.get("create_time")),
                model if isinstance(model, str) else None,
            )


def _said(node: Any, skipped: dict[str, int]) -> str:
    """The text of the user or ChatGPT in a node; empty without text. Parts left out are counted."""
    message = node.get("message") if isinstance(node, dict) else None
    if not isinstance(message, dict):
        return ""
    author, content, metadata = message.get("author"), message.get("content"), message.get("metadata")
    role = author.get("role") if isinstance(author, dict) else None
    if not isinstance(content, dict) or not isinstance(role, str):
        count(skipped, "message of an unknown kind")
        return ""
    kind = content.get("content_type")
    if isinstance(metadata, dict) and metadata.get("is_visually_hidden_from_conversation") is True:
        count(skipped, "text of the host")
    elif role not in _ROLES:
        count(skipped, "tool call or output" if role == "tool" else "text of the host")
    elif message.get("recipient") not in (None, "all"):
        count(skipped, "tool call or output")
    elif not isinstance(kind, str) or kind not in _SPOKEN:
        is_thought = isinstance(kind, str) and kind in _THOUGHT
        count(skipped, "thinking" if is_thought else "tool call or output" if kind == "code" else "text of the host")
    else:
        return _text(content, skipped)
    return ""


def _text(content: dict[str, Any], skipped: dict[str, int]) -> str:
    parts = content.get("parts")
    found: list[str] = []
    for part in parts if isinstance(parts, list) else [content.get("text")]:
        if isinstance(part, dict) and part.get("content_type") == "audio_transcription":
            part = part.get("text")  # noqa: PLW2901 - what was spoken counts as written
        if isinstance(part, str):
            # Marks of quoted places, which its page shows as small links.
            found.append(words_of(without(part, "\ue200", "\ue201") if "\ue200" in part else part))
        elif part is not None:
            count(skipped, "image or file")
    return "\n\n".join(one for one in found if one)
