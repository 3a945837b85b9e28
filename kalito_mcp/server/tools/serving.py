"""The server that answers a call, and the caller of a verb."""

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, cast

from mcp.server.mcpserver import Context

from kalito_mcp.domain.memory_records import Editor, EditorType
from kalito_mcp.memory.verbs.verb import Caller

if TYPE_CHECKING:
    from kalito_mcp.capture.captures import Captures
    from kalito_mcp.memory import Memory
    from kalito_mcp.server.memory_handle import MemoryHandle
    from kalito_mcp.server.own_conversation import OwnConversation

ToolContext: TypeAlias = Context[None, Any]


class Serving(Protocol):
    """What tools need of the server. `public_url` is where clients reach it, without a slash at its end; empty if only
    this machine does."""

    opened: "MemoryHandle"
    own: "OwnConversation"
    captures: "Captures"
    public_url: str


def serving(context: ToolContext) -> Serving:
    """The server that answers this call."""
    return cast("Serving", context.mcp_server)


def editor_of(context: ToolContext) -> Editor:
    """The calling assistant, by the name that its host reports."""
    client = context.session.client_params
    return Editor(EditorType.AGENT, client.client_info.name[:200] if client is not None else None)


def caller_of(context: ToolContext, memory: "Memory", session: str = "") -> Caller:
    """The calling assistant, of this memory and conversation."""
    return Caller(memory, editor_of(context), session)
