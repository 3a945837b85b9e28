"""How a tool answers: compact text and structured content that state the same facts.

Both, because hosts differ in which of the two they show their model.
"""

from collections.abc import Sequence
from typing import Any

from mcp.types import CallToolResult, TextContent
from pydantic import BaseModel

from kalito_mcp.safety.escaping import escape_json, visible


def answer(text: str, structured: BaseModel) -> CallToolResult:
    """A result in both forms. The structured one omits None. Invisible characters are escaped in both."""
    return text_answer(text, structured.model_dump(mode="json", exclude_none=True))


def text_answer(text: str, structured: dict[str, Any] | None = None) -> CallToolResult:
    """A result that is text: long prose, which would cost a host's model twice as structured content."""
    return CallToolResult(
        content=[TextContent(type="text", text=visible(text))],
        structured_content=None if structured is None else escape_json(structured),
    )


def redaction_lines(redacted: Sequence[str]) -> list[str]:
    """What was removed before the text was stored, as a line; no line if nothing was."""
    return [f"Removed and not stored: {', '.join(redacted)}"] if redacted else []
