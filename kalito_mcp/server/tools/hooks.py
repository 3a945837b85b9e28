"""The tool `hook_event`, which a host's hooks call instead of its model."""

from typing import Annotated, Final

from mcp.types import CallToolResult
from pydantic import Field

from kalito_mcp.capture.capturer import report_of_call
from kalito_mcp.capture.captures import Captures
from kalito_mcp.safety.redaction import usable_handle
from kalito_mcp.server.memory_handle import MemoryHandle
from kalito_mcp.server.tools.answers import text_answer

_MOST_CHARS: Final = 4_194_304
_MOST_NAME: Final = 4_096
Text = Annotated[str | None, Field(max_length=_MOST_CHARS)]


class HookTools:
    """What hooks report."""

    def __init__(self, captures: Captures, opened: MemoryHandle) -> None:
        self._captures = captures
        self._opened = opened

    async def hook_event(
        self,
        host: Annotated[str, Field(description="Which host: claude-code, codex, ...", max_length=40)],
        event: Annotated[str, Field(description="The host's name of the event.", max_length=60)],
        session_id: Annotated[str, Field(max_length=_MOST_NAME)],
        cwd: Text = None,
        prompt: Text = None,
        prompt_id: Text = None,
        text: Text = None,
        trigger: Text = None,
        source: Text = None,
        reason: Text = None,
        agent_id: Text = None,
        tool_name: Text = None,
        tool_input: Text = None,
        tool_response: Text = None,
        error: Text = None,
    ) -> CallToolResult:
        """Report an event of the conversation. For hooks of the host, not for the model. Returns what the hook prints:
        what is remembered of the prompt, or nothing."""
        report = report_of_call(
            {
                "host": host,
                "event": event,
                "session_id": session_id,
                "cwd": cwd,
                "prompt": prompt,
                "prompt_id": prompt_id,
                "text": text,
                "trigger": trigger,
                "source": source,
                "reason": reason,
                "agent_id": agent_id,
                "tool_name": tool_name,
                "tool_input": tool_input,
                "tool_response": tool_response,
                "error": error,
            }
        )
        capture, name = self._captures.current(), usable_handle(session_id, host)
        if agent_id is None:
            self._opened.goes_on_in(name)
        answer = await capture.take(report)
        if agent_id is None:
            # What the model stores goes to the session where its conversation continues, even if it was closed and
            # resumed.
            self._opened.goes_on_in(capture.session_of(name))
        return text_answer(answer)
