"""Refuses a call that the home would certainly refuse, with the same message, before the caller hears that it is kept.

Only the call itself is checked: only the home knows what is stored. The limits come from this machine's settings; a
home with lower ones may still refuse.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from kalito_mcp.domain.digest import LISTS, Digest
from kalito_mcp.domain.memory_records import PROGRAM
from kalito_mcp.domain.time import to_iso
from kalito_mcp.domain.validation import LimitsPolicy, checked_text
from kalito_mcp.domain.zone import EPOCH, MILLISECOND, UTC_ZONE
from kalito_mcp.editing.new_record import as_record
from kalito_mcp.errors import InvalidInput
from kalito_mcp.memory.verbs.conversation import new_messages
from kalito_mcp.memory.verbs.records import with_due_day
from kalito_mcp.records.recorder import check_messages
from kalito_mcp.records.schemas import check_size, checked_content
from kalito_mcp.server.tools.conversation import MessageInput
from kalito_mcp.text.times.expressions import moment_in_words

OWN_WORDS: Final = ("summary", *LISTS)
"""Arguments of summarize_session that describe the conversation."""
_ANY_MOMENT: Final = 0
"""Times are not words any more."""
_TEXTS: Final = {"create_pin": "content", "summarize_session": "summary"}


def dated(arguments: Mapping[str, Any], said_at: datetime) -> dict[str, Any]:
    """The arguments, with messages that were said at that moment and not when they are delivered. Words for times count
    from it, too."""
    now_ms = (said_at - EPOCH) // MILLISECOND
    kept = dict(arguments)
    if isinstance(kept.get("messages"), list):
        kept["messages"] = [{**one, "created_at": _said_at(one, now_ms)} for one in kept["messages"]]
    for name in ("fields", "changes"):
        if isinstance(kept.get(name), dict):
            kept[name] = with_due_day(kept[name], now_ms, UTC_ZONE)
    return kept


def _said_at(message: Mapping[str, Any], now_ms: int) -> Any:
    """When the message was sent; what cannot be read stays as it is, and is refused."""
    given = message.get("created_at") or message.get("createdAt") or to_iso(now_ms)
    if not isinstance(given, str) or given.strip()[:4].isdecimal():
        return given
    try:
        return to_iso(moment_in_words(given, "created_at", now_ms, is_last=False, zone=UTC_ZONE))
    except InvalidInput:
        return given


def check_call(tool: str, arguments: Mapping[str, Any], limits: LimitsPolicy) -> None:
    """Raise InvalidInput or TextTooLarge if the home would, whatever it has stored."""
    if tool == "record_messages":
        sent = [MessageInput.model_validate(one) for one in arguments["messages"]]
        check_messages(new_messages(sent, UTC_ZONE, _ANY_MOMENT), limits)
    elif tool == "remember":
        fields = {"text": arguments["text"], **(arguments.get("fields") or {})}
        record_type, given, _ = as_record(
            arguments["type"], fields, PROGRAM, reach=None, new_source=lambda: "of its own"
        )
        check_size(record_type, given, limits)
        if not str(checked_content(record_type, given)["text"]).strip():
            raise InvalidInput("text is blank; send the text to remember")
    elif tool == "summarize_session":
        digest = Digest(**{name: tuple(arguments[name] or ()) for name in LISTS if name in arguments})
        digest.text(arguments.get("summary"))
    if (field := _TEXTS.get(tool)) and arguments.get(field):
        checked_text(arguments[field].strip(), field, max_bytes=limits.max_text_bytes)
