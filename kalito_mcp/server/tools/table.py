"""All tools, in the order in which hosts list them. A tool that is not in this table does not exist."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from kalito_mcp.domain.access import Permission
from kalito_mcp.memory.verbs.table import VERBS
from kalito_mcp.server.tools.chatgpt import fetch, search
from kalito_mcp.server.tools.conversation import build_context, finalize_session, record_messages, summarize_session
from kalito_mcp.server.tools.files import memory
from kalito_mcp.server.tools.forgetting import forget
from kalito_mcp.server.tools.graph import record_feedback
from kalito_mcp.server.tools.hooks import hook_event
from kalito_mcp.server.tools.pins import create_pin
from kalito_mcp.server.tools.records import list_tasks, memory_history, remember, restore, update_memory
from kalito_mcp.server.tools.search import search_memory
from kalito_mcp.server.tools.tool import ToolRow

_VERBS: Final = {verb.name: verb for verb in VERBS}


def _of_verb(function: Callable[..., Any], title: str, hint: str | None = None, **more: bool) -> ToolRow:
    """The tool of the verb that has the function's name."""
    return ToolRow(function, title, _VERBS[function.__name__].permission, hint, **more)


TOOLS: Final = (
    _of_verb(record_messages, "Record messages", "save, store, remember the conversation"),
    _of_verb(build_context, "Build context", is_text=True),
    _of_verb(search_memory, "Search memory"),
    _of_verb(create_pin, "Pin a fact", "remember a fact, preference, decision"),
    _of_verb(summarize_session, "Summarise the session", "sum up, compact the conversation"),
    _of_verb(record_feedback, "Record feedback", "liked, disliked, try again, thumbs up or down"),
    _of_verb(finalize_session, "Finalize the session", "close, end the conversation", is_idempotent=True),
    _of_verb(remember, "Remember", "note, to-do, task, store a document, reflection"),
    _of_verb(update_memory, "Update a memory", "correct, edit, complete a task", destroys=True),
    _of_verb(forget, "Forget", "delete, erase, remove", destroys=True),
    _of_verb(restore, "Restore", "undo, bring back, revert", is_idempotent=True),
    _of_verb(memory_history, "Memory history", "versions, who changed it, one record in full"),
    _of_verb(list_tasks, "List tasks", "to-do, what is due"),
)
"""Those that every server has: each is a verb of the memory."""

FILE_TOOL: Final = ToolRow(memory, "Memory files", Permission.WRITE, destroys=True, is_text=True)
"""Anthropic's memory tool."""
HOOK_TOOL: Final = ToolRow(hook_event, "Hook event", Permission.WRITE, is_text=True, is_of_host=True)
CHATGPT_TOOLS: Final = (
    ToolRow(search, "Search", Permission.READ),
    ToolRow(fetch, "Fetch", Permission.READ),
)
PERMISSIONS: Final[Mapping[str, Permission]] = {
    row.name: row.permission for row in (*TOOLS, FILE_TOOL, HOOK_TOOL, *CHATGPT_TOOLS)
}
"""What each tool needs; `forget` needs more if it erases."""
