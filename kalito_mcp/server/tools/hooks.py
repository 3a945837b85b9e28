"""The tool `hook_event`, which a host's hooks call instead of its model."""

from typing import Annotated

from mcp.types import CallToolResult
from pydantic import Field

from kalito_mcp.capture.capturer import report_of_call
from kalito_mcp.memory.verbs.shapes import Input
from kalito_mcp.safety.redaction import usable_handle
from kalito_mcp.server.tools.answers import text_answer
from kalito_mcp.server.tools.serving import ToolContext, serving

Text = Annotated[str | None, Field(max_length=4_194_304)]


class HookEvent(Input):
    """The arguments of hook_event."""

    host: Annotated[str, Field(description="Which host: claude-code, codex, ...", max_length=40)]
    event: Annotated[str, Field(description="The host's name of the event.", max_length=60)]
    session_id: Annotated[str, Field(max_length=4_096)]
    cwd: Text = None
    prompt: Text = None
    prompt_id: Text = None
    text: Text = None
    trigger: Text = None
    source: Text = None
    reason: Text = None
    agent_id: Text = None
    tool_name: Text = None
    tool_input: Text = None
    tool_response: Text = None
    error: Text = None


async def hook_event(context: ToolContext, sent: HookEvent) -> CallToolResult:
    """Report an event of the conversation. For hooks of the host, not for the model. Returns what the hook prints:
    what is remembered of the prompt, or nothing."""
    server = serving(context)
    report = report_of_call(sent.model_dump())
    capture, name = server.captures.current(), usable_handle(sent.session_id, sent.host)
    if sent.agent_id is None:
        server.opened.goes_on_in(name)
    answer = await capture.take(report)
    if sent.agent_id is None:
        # What the model stores goes to the session where its conversation continues, even if it was closed and
        # resumed.
        server.opened.goes_on_in(capture.session_of(name))
    return text_answer(answer)
