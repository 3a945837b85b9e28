"""The tool of pins: create_pin."""

from typing import Annotated

from mcp.types import CallToolResult

from kalito_mcp.memory.verbs import records as verbs
from kalito_mcp.memory.verbs.shapes import ClientKey, Pin
from kalito_mcp.server.tools.answers import answer, redaction_lines
from kalito_mcp.server.tools.serving import ToolContext, caller_of, serving
from kalito_mcp.server.tools.shapes import CreatedPin, SessionId


class CreatePin(verbs.CreatePin):
    """The arguments of create_pin."""

    session_id: SessionId = None
    client_key: ClientKey = None

    @property
    def own_key(self) -> str | None:
        return self.client_key


async def create_pin(context: ToolContext, sent: CreatePin) -> Annotated[CallToolResult, CreatedPin]:
    """Pin one fact that contexts shall show. What people say in passing is pinned by itself: call this when the
    user asks you to remember something, or something known no longer holds (`replaces`). Returns the pin."""
    opened = serving(context).opened
    session = sent.session_id or opened.host_session or None
    memory = await (opened.memory_of(session) if session else opened.memory())
    pin, shared = await verbs.create_pin(caller_of(context, memory), sent.model_copy(update={"session_id": session}))
    fields = pin.to_dict()
    source = f" from {pin.source_message_id}" if pin.source_message_id else ""
    place = f" in session {pin.session_id}" if pin.session_id else ""
    did = "Known already:" if pin.is_known else "Pinned"
    text = (
        f"{did} {pin.id}{place}{source} (scope {pin.reach}, {pin.pin_type}, "
        f"importance {pin.importance_score}, {fields['created_at']}): {pin.content}"
    )
    copied = [] if shared is None else [f"Shared in {shared.space} as {shared.record_id}."]
    created = CreatedPin(
        pin=Pin(**fields),
        known_already=pin.is_known or None,
        space=None if shared is None else shared.space,
        shared_as=None if shared is None else shared.record_id,
        redacted=list(pin.redacted) or None,
    )
    return answer("\n".join([text, *copied, *redaction_lines(pin.redacted)]), created)
