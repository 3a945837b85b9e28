"""Prompts: resume_session."""

from typing import Annotated, Any

from mcp.server import MCPServer
from pydantic import Field

from kalito_mcp.server.memory_handle import MemoryHandle
from kalito_mcp.server.refusals import protocol_errors


def register_prompts(server: MCPServer[Any], opened: MemoryHandle) -> None:
    """Add the prompts."""

    @server.prompt(
        name="resume_session",
        title="Resume a conversation",
        description="Continue a conversation from its summaries, pins and newest messages.",
    )
    async def resume_session(
        session_id: Annotated[str, Field(description="The conversation; leave it empty for the host's own.")] = "",
    ) -> str:
        with protocol_errors("prompt resume_session"):
            session = opened.session(session_id)
            context = await (await opened.memory_of(session)).build_context(session)
        return (
            f"{context.text}\n\nWe are continuing this conversation. In two or three sentences, say where we stopped "
            "and what is still open; then wait for me."
        )
