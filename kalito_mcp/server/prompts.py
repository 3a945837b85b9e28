"""Prompts: resume_session."""

from typing import Annotated, Any

from mcp.server import MCPServer
from mcp.shared.exceptions import MCPError
from mcp.types import INVALID_PARAMS
from pydantic import Field

from kalito_mcp.errors import KalitoError
from kalito_mcp.server.opened import OpenedMemory


def register_prompts(server: MCPServer[Any], opened: OpenedMemory) -> None:
    """Add the prompts."""

    @server.prompt(
        name="resume_session",
        title="Resume a conversation",
        description="Go on where a conversation stopped: its summaries, pins and newest messages.",
    )
    async def resume_session(
        session_id: Annotated[str, Field(description="Which one; empty for the host's own.")] = "",
    ) -> str:
        try:
            context = await (await opened.memory()).build_context(opened.session(session_id))
        except KalitoError as error:
            raise MCPError(code=INVALID_PARAMS, message=str(error)) from error
        return (
            f"{context.text}\n\nWe go on with this conversation. In two or three sentences, say where we stopped and "
            "what is still open; then wait for me."
        )
