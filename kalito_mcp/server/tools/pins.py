"""The tool of pins: create_pin."""

from typing import Annotated, Any

from mcp.server.mcpserver import Context
from mcp.types import CallToolResult
from pydantic import Field

from kalito_mcp.domain.records import CreatePinRequest, PinType
from kalito_mcp.server.memory_handle import MemoryHandle
from kalito_mcp.server.tools.answers import answer, redaction_lines
from kalito_mcp.server.tools.records import editor_of
from kalito_mcp.server.tools.shapes import CreatedPin, MessageRef, SessionId
from kalito_mcp.shapes import Pin, PinTypeName, ReachName


class PinTools:
    """The tool that pins one fact."""

    def __init__(self, opened: MemoryHandle) -> None:
        self._opened = opened

    async def create_pin(
        self,
        context: Context[None, Any],
        content: Annotated[
            str,
            Field(
                description="The fact, in one sentence that makes sense on its own.",
                min_length=1,
                pattern=r"\S",
            ),
        ],
        session_id: SessionId = None,
        source_message_id: MessageRef = None,
        importance_score: Annotated[
            float | None,
            Field(description="0 to 1; default: 0.8."),
        ] = None,
        pin_type: Annotated[PinTypeName, Field(description="`manual` when the user asked for it.")] = "manual",
        scope: Annotated[
            ReachName | None,
            Field(
                description="Which contexts show it: `person` all, for what is about the user; `project` those of the "
                "project. Default: by what it says. Both need no session_id."
            ),
        ] = None,
        replaces: Annotated[
            list[str] | None,
            Field(description="What no longer holds because of it: ids, or words as they were stored.", max_length=20),
        ] = None,
        client_key: Annotated[
            str | None,
            Field(description="Your own id for it; a resend is not stored twice.", min_length=1, max_length=200),
        ] = None,
        confirmed: Annotated[
            bool, Field(description="The user has confirmed it. Needed for the words of a tool or a document.")
        ] = False,
    ) -> Annotated[CallToolResult, CreatedPin]:
        """Pin one fact that contexts shall show. What people say in passing is pinned by itself: call this when the
        user asks you to remember something, or something known no longer holds (`replaces`). Returns the pin."""
        session = session_id or self._opened.host_session
        memory = await (self._opened.memory_of(session) if session else self._opened.memory())
        pin = await memory.create_pin(
            CreatePinRequest(
                session_id=session or None,
                content=content,
                source_message_id=source_message_id,
                importance_score=importance_score,
                pin_type=PinType(pin_type),
                client_key=client_key,
                client=editor_of(context).id,
                is_confirmed=confirmed,
                scope=scope,
                replaces=tuple(replaces or ()),
            )
        )
        fields = pin.to_dict()
        source = f" from {pin.source_message_id}" if pin.source_message_id else ""
        place = f" in session {pin.session_id}" if pin.session_id else ""
        did = "Known already:" if pin.is_known else "Pinned"
        text = (
            f"{did} {pin.id}{place}{source} (scope {pin.reach}, {pin.pin_type}, "
            f"importance {pin.importance_score}, {fields['created_at']}): {pin.content}"
        )
        created = CreatedPin(pin=Pin(**fields), known_already=pin.is_known or None, redacted=list(pin.redacted) or None)
        return answer("\n".join([text, *redaction_lines(pin.redacted)]), created)
