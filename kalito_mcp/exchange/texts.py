"""The words of a turn, without what a host or this memory put between them. Pure."""

import re
from collections.abc import Callable, Iterator
from hashlib import blake2b
from typing import Any, Final

from kalito_mcp.text.host_blocks import without_memory

_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_INJECTED: Final = ("system-reminder",)
TOOL_BLOCKS: Final = frozenset(
    "tool_use tool_result tool_call tool_response function_call function_call_output toolRequest toolResponse "
    "server_tool_use web_search_tool_result mcp_tool_use mcp_tool_result tool-call tool-result tool".split()
)
THINKING_BLOCKS: Final = frozenset("thinking redacted_thinking reasoning thoughts summary_text".split())
_TEXT_BLOCKS: Final = frozenset(("text", "input_text", "output_text", "Text", None))


def words_of(text: str) -> str:
    """The text without reminders of a host and what this memory had injected; empty if nothing is left. Lone
    surrogates become U+FFFD."""
    if not text.isascii():
        text = _SURROGATE.sub("\ufffd", text)
    if "<" in text:
        for tag in _INJECTED:
            text = without(text, f"<{tag}>", f"</{tag}>")
        text = without_memory(text)
    return text.strip()


def spoken(content: Any, skipped: "dict[str, int]", clean: "Callable[[str], str]" = words_of) -> str:
    """The text in the content of a message, its blocks two lines apart; empty without text. `clean` takes out of each
    text what nobody said."""
    return "\n\n".join(words for text in texts_in(content, skipped) if (words := clean(text)))


def hash_of(*parts: object) -> str:
    """A key for a message without an id, as a hash of 32 digits."""
    return blake2b(repr(parts).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def without(text: str, opening: str, closing: str) -> str:
    """The text without what is between these marks, marks included. What is not closed stays."""
    kept: list[str] = []
    place = 0
    while (begin := text.find(opening, place)) >= 0:
        end = text.find(closing, begin + len(opening))
        if end < 0:
            break
        kept.append(text[place:begin])
        place = end + len(closing)
    return "".join(kept) + text[place:] if kept or place else text


def texts_in(content: Any, skipped: "dict[str, int]") -> Iterator[str]:
    """The texts in the content of a message: a string, a list of blocks, or one block. What is no text is counted."""
    if isinstance(content, str):
        yield content
        return
    if isinstance(content, dict):
        content = [content]
    if not isinstance(content, list):
        if content is not None:
            count(skipped, "content of an unknown kind")
        return
    for block in content:
        if isinstance(block, str):
            yield block
        elif not isinstance(block, dict):
            count(skipped, "content of an unknown kind")
        else:
            kind = block.get("type")
            if isinstance(kind, str | None) and kind in _TEXT_BLOCKS and isinstance(block.get("text"), str):
                yield block["text"]
            else:
                count(skipped, _reason(kind, block))


def count(skipped: "dict[str, int]", reason: str) -> None:
    """Count something that is left out."""
    skipped[reason] = skipped.get(reason, 0) + 1


def _reason(kind: Any, block: "dict[str, Any]") -> str:
    if not isinstance(kind, str):
        is_call = "functionCall" in block or "functionResponse" in block
        return "tool call or output" if is_call else "content of an unknown kind"
    if kind in TOOL_BLOCKS:
        return "tool call or output"
    if kind in THINKING_BLOCKS:
        return "thinking"
    return "image or file" if kind in _FILES else "content of an unknown kind"


_FILES: Final = frozenset("image document file input_image input_file image_url attachment".split())
