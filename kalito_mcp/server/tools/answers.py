"""How a tool answers: compact text and structured content that state the same facts.

Both, because hosts differ in which of the two they show their model.
"""

from typing import Any

from mcp.types import CallToolResult, TextContent
from pydantic import BaseModel


def answer(text: str, structured: BaseModel) -> CallToolResult:
    """A result with both forms; what is None is left out of the structured one."""
    return CallToolResult(
        content=[TextContent(type="text", text=text)],
        structured_content=structured.model_dump(mode="json", exclude_none=True),
    )


def text_answer(text: str, structured: dict[str, Any] | None = None) -> CallToolResult:
    """A result that is text: long prose, which would cost a host's model twice as structured content."""
    return CallToolResult(content=[TextContent(type="text", text=text)], structured_content=structured)


def plural(count: int, noun: str) -> str:
    """`1 message`, `2 messages`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
