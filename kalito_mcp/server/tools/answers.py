"""How a tool answers: compact text and structured content that state the same facts.

Both, because hosts differ in which of the two they show their model.
"""

from collections.abc import Sequence
from typing import Any

from mcp.types import CallToolResult, TextContent
from pydantic import BaseModel

from kalito_mcp.safety.escaping import visible


def answer(text: str, structured: BaseModel) -> CallToolResult:
    """A result with both forms; what is None is left out of the structured one. Nothing in either is invisible."""
    return text_answer(text, structured.model_dump(mode="json", exclude_none=True))


def text_answer(text: str, structured: dict[str, Any] | None = None) -> CallToolResult:
    """A result that is text: long prose, which would cost a host's model twice as structured content."""
    return CallToolResult(
        content=[TextContent(type="text", text=visible(text))],
        structured_content=None if structured is None else made_visible(structured),
    )


def made_visible(value: Any) -> Any:
    """A JSON value, in all of whose strings every character can be seen."""
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, dict):
        return {key: made_visible(one) for key, one in value.items()}
    return [made_visible(one) for one in value] if isinstance(value, list) else value


def not_kept(redacted: Sequence[str]) -> list[str]:
    """What was taken out before anything was written, as a line; none where it was nothing."""
    return [f"Not kept: {', '.join(redacted)}"] if redacted else []


def plural(count: int, noun: str) -> str:
    """`1 message`, `2 messages`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
