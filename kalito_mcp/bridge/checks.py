"""Refuses a call that the home would certainly refuse, with the same message, before the caller hears that it is kept.

Only the call itself is checked: only the home knows what is stored. The limits come from this machine's settings; a
home with lower ones may still refuse.
"""

from collections.abc import Mapping
from typing import Any, Final

from kalito_mcp.domain.digest import LISTS, Digest
from kalito_mcp.domain.memory_records import PROGRAM
from kalito_mcp.domain.validation import LimitsPolicy, checked_text
from kalito_mcp.domain.zone import UTC_ZONE
from kalito_mcp.editing.new_record import as_record
from kalito_mcp.errors import InvalidInput
from kalito_mcp.memory.verbs.conversation import new_messages
from kalito_mcp.records.recorder import check_messages
from kalito_mcp.records.schemas import check_size, checked_content
from kalito_mcp.server.tools.conversation import MessageInput

OWN_WORDS: Final = ("summary", *LISTS)
"""Arguments of summarize_session that describe the conversation."""
_TEXTS: Final = {"create_pin": "content", "summarize_session": "summary"}


def check_call(tool: str, arguments: Mapping[str, Any], limits: LimitsPolicy) -> None:
    """Raise InvalidInput or TextTooLarge if the home would, whatever it has stored."""
    if tool == "record_messages":
        sent = [MessageInput.model_validate(one) for one in arguments["messages"]]
        check_messages(new_messages(sent, UTC_ZONE), limits)
    elif tool == "remember":
        fields = {"text": arguments["text"], **(arguments.get("fields") or {})}
        record_type, given, _ = as_record(
            arguments["type"], fields, PROGRAM, reach=None, new_source=lambda: "of its own"
        )
        check_size(record_type, given, limits)
        if not str(checked_content(record_type, given)["text"]).strip():
            raise InvalidInput("text is blank; send the text to remember")
    elif tool == "summarize_session":
        Digest(**{name: tuple(arguments[name] or ()) for name in LISTS if name in arguments}).check()
    if (field := _TEXTS.get(tool)) and arguments.get(field):
        checked_text(arguments[field].strip(), field, max_bytes=limits.max_text_bytes)
