"""The programs whose conversations can be imported, by name."""

from typing import Final

from kalito_mcp.exchange.chatgpt import ChatGpt
from kalito_mcp.exchange.claude_ai import ClaudeAi
from kalito_mcp.exchange.claude_code import ClaudeCode
from kalito_mcp.exchange.cline import Cline
from kalito_mcp.exchange.codex import Codex
from kalito_mcp.exchange.conversation import Source
from kalito_mcp.exchange.copilot import Copilot
from kalito_mcp.exchange.cursor import Cursor
from kalito_mcp.exchange.gemini import Gemini
from kalito_mcp.exchange.goose import Goose
from kalito_mcp.exchange.instructions import BasicMemory, Instructions
from kalito_mcp.exchange.opencode import OpenCode
from kalito_mcp.exchange.other_memories import ClaudeMem, Mem0, ServerMemory
from kalito_mcp.exchange.vscode import VsCode
from kalito_mcp.exchange.zed import Zed

_ALL: Final[tuple[Source, ...]] = (
    ClaudeCode(),
    Codex(),
    Gemini(),
    Cursor(),
    OpenCode(),
    Copilot(),
    VsCode(),
    Cline("cline", "Cline", "saoudrizwan.claude-dev"),
    Cline("roo", "Roo Code", "rooveterinaryinc.roo-cline"),
    Zed(),
    Goose(),
    ClaudeMem(),
    ServerMemory(),
    BasicMemory(),
    Instructions(),
    ChatGpt(),
    ClaudeAi(),
    Mem0("mem0", "mem0"),
    Mem0("openmemory", "OpenMemory"),
)
SOURCES: Final = {source.name: source for source in _ALL}
EXPORTS: Final = {
    "chatgpt": "export.zip",
    "claude-ai": "export.zip",
    "mem0": "memories.json",
    "openmemory": "memories_export.zip",
}
"""The sources that have no place of their own on a machine, so that their file is named, each with how it may be
called."""
