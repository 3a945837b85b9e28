"""All tools, in the order in which hosts list them. A tool that is not in this table does not exist."""

from collections.abc import Mapping
from typing import Final

from kalito_mcp.domain.access import Permission
from kalito_mcp.memory.verbs.conversation import CONTEXT, FINALIZE, RECORD, SUMMARIZE
from kalito_mcp.memory.verbs.forgetting import FORGET
from kalito_mcp.memory.verbs.records import PIN, READ, REMEMBER, RESTORE, TASKS, UPDATE
from kalito_mcp.memory.verbs.search import FEEDBACK, SEARCH
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

TOOLS: Final = (
    ToolRow(record_messages, "Record messages", RECORD.permission, "save, store, remember the conversation"),
    ToolRow(build_context, "Build context", CONTEXT.permission, is_text=True),
    ToolRow(search_memory, "Search memory", SEARCH.permission),
    ToolRow(create_pin, "Pin a fact", PIN.permission, "remember a fact, preference, decision"),
    ToolRow(summarize_session, "Summarise the session", SUMMARIZE.permission, "sum up, compact the conversation"),
    ToolRow(record_feedback, "Record feedback", FEEDBACK.permission, "liked, disliked, try again, thumbs up or down"),
    ToolRow(
        finalize_session, "Finalize the session", FINALIZE.permission, "close, end the conversation", is_idempotent=True
    ),
    ToolRow(remember, "Remember", REMEMBER.permission, "note, to-do, task, store a document, reflection"),
    ToolRow(update_memory, "Update a memory", UPDATE.permission, "correct, edit, complete a task", destroys=True),
    ToolRow(forget, "Forget", FORGET.permission, "delete, erase, remove", destroys=True),
    ToolRow(restore, "Restore", RESTORE.permission, "undo, bring back, revert", is_idempotent=True),
    ToolRow(memory_history, "Memory history", READ.permission, "versions, who changed it, one record in full"),
    ToolRow(list_tasks, "List tasks", TASKS.permission, "to-do, what is due"),
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
