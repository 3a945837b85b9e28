"""Which conversation a call comes from, and what its assistant still sees of it."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kalito_mcp.capture.captures import Captures
from kalito_mcp.domain.search import SeenPart
from kalito_mcp.server.memory_handle import MemoryHandle

if TYPE_CHECKING:
    from kalito_mcp.memory import Memory


class OwnConversation:
    """The conversation of the assistant that calls.

    It is the one that the host names. Otherwise it is one whose prompt has no answer yet: an assistant calls tools
    while it works on a prompt.
    """

    def __init__(self, opened: MemoryHandle, captures: Captures) -> None:
        self._opened = opened
        self._captures = captures

    async def seen(self, asked_for: str | None = None) -> frozenset[SeenPart]:
        """The messages that the assistant still sees. Of a session that it asks for by name, only a prompt that has no
        answer yet. Nothing if no hooks report, because compactions are unknown then.

        If it may be one of several conversations, only the newest prompts of these.
        """
        memory = await self._opened.memory()
        after = dict(await self._seen_after(memory))
        if asked_for in after:
            del after[asked_for]
            after |= {one.id: one.message_count - 1 for one in await memory.hooks.unanswered() if one.id == asked_for}
        return await memory.hooks.seen_parts(after) if after else frozenset()

    async def _seen_after(self, memory: "Memory") -> Mapping[str, int]:
        capture = self._captures.current()
        if name := self._opened.host_session:
            return await capture.seen_after(name, memory)
        unanswered = await memory.hooks.unanswered()
        if len(unanswered) == 1:
            return await capture.seen_after(unanswered[0].id, memory)
        return {one.id: one.message_count - 1 for one in unanswered}
