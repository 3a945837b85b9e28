"""One MCP server over one memory, the same on every transport and for both protocol eras."""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, Final

from mcp.server import CacheHint, MCPServer
from mcp.server.caching import CacheableMethod
from mcp.server.lowlevel.helper_types import ReadResourceContents
from mcp.server.lowlevel.server import NotificationOptions
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
from mcp.server.mcpserver.tools import Tool
from mcp.shared.exceptions import MCPError
from mcp.types import INVALID_PARAMS, CallToolResult, GetPromptResult, InputRequiredResult
from pydantic import ValidationError

from kalito_mcp.capture.capturer import Capture
from kalito_mcp.capture.captures import Captures
from kalito_mcp.errors import InvalidInput, KalitoError
from kalito_mcp.server.app.offering import PAGE_URI, page, with_app
from kalito_mcp.server.caller import key_of, reported, taken_once, with_caller
from kalito_mcp.server.draining import Draining
from kalito_mcp.server.gate import Gate
from kalito_mcp.server.instructions import instructions
from kalito_mcp.server.measuring import Measuring
from kalito_mcp.server.memory_handle import MemoryHandle, MemoryOpener
from kalito_mcp.server.own_conversation import OwnConversation
from kalito_mcp.server.prompts import register_prompts
from kalito_mcp.server.refusals import refusal, unknown
from kalito_mcp.server.resources import register_resources
from kalito_mcp.server.session_list import refuse_cursors, register_session_list
from kalito_mcp.server.state_keys import StateKeys
from kalito_mcp.server.subscriptions import Subscriptions, except_subscriptions
from kalito_mcp.server.tools.answers import text_answer
from kalito_mcp.server.tools.table import CHATGPT_TOOLS, FILE_TOOL, HOOK_TOOL, TOOLS
from kalito_mcp.server.tools.tool import schema_of
from kalito_mcp.server.watcher import Watcher
from kalito_mcp.version import __version__
from kalito_mcp.web.arguments import tidied, unknown_arguments
from kalito_mcp.web.faults import in_words
from kalito_mcp.web.metrics import Metrics

_SHARED: Final = CacheHint(ttl_ms=3_600_000, scope="public")
_CACHE_HINTS: Final[Mapping[CacheableMethod, CacheHint]] = {
    "server/discover": _SHARED,
    "tools/list": _SHARED,
    "prompts/list": _SHARED,
    "resources/templates/list": _SHARED,
    # The first page. The others say themselves that they are private.
    "resources/list": _SHARED,
    # Nothing is kept: a host reads what it wrote a moment ago.
    "resources/read": CacheHint(ttl_ms=0, scope="private"),
}
"""Who may keep an answer, and how long. What has memory in it is private."""


class KalitoServer(MCPServer[None]):
    """The SDK's server with our refusals. An unknown tool or prompt is a protocol error. A sentence explains a wrong
    argument. A failure of ours is logged with an incident id."""

    def __init__(
        self,
        opened: MemoryHandle,
        subscriptions: Subscriptions,
        tools: list[Tool],
        captures: Captures,
        *,
        public_url: str = "",
        has_hooks: bool = False,
    ) -> None:
        self._tools_by_name = {tool.name: tool for tool in tools}
        self.metrics = Metrics()
        self.draining = Draining()
        self.state_keys = StateKeys(opened.memory)
        super().__init__(
            name="kalito-mcp",
            title="Kalito memory",
            instructions=instructions(has_hooks=has_hooks),
            version=__version__,
            tools=tools,
            lifespan=opened.lifespan,
            subscriptions=subscriptions,
            log_level="WARNING",
            middleware=[
                Gate(),
                except_subscriptions(with_caller),
                except_subscriptions(with_app),
                except_subscriptions(self.draining.count_calls),
                except_subscriptions(refuse_cursors),
                except_subscriptions(subscriptions.after_calls),
                except_subscriptions(Measuring(self.metrics, self._tools_by_name)),
            ],
            request_state_security=self.state_keys.security,
            cache_hints=_CACHE_HINTS,
        )
        self.middleware.insert(0, except_subscriptions(self.state_keys.before_calls))
        self.opened = opened
        self.subscriptions = subscriptions
        self.captures = captures
        self.own = OwnConversation(opened, captures)
        self.public_url = public_url.rstrip("/")

    @property
    def capture(self) -> Capture:
        """What takes the reports of this machine's own hooks."""
        return self.captures.host

    @property
    def tool_names(self) -> frozenset[str]:
        """The names of its tools."""
        return frozenset(self._tools_by_name)

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[None, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """Call a tool. An unknown tool is an MCPError; every other failure is a ToolError in our words."""
        report = reported(context, name)
        if report is not None:
            return await self._hook_answer(*report)
        tool, arguments = self._known_call(name, arguments)
        key = key_of(context)
        try:
            if key is not None:
                await (await self.opened.memory()).imports.check_not_taken_in(key)
            with taken_once(key):
                return await super().call_tool(name, arguments, context)
        except KalitoError as error:
            raise refusal(error, name) from error
        except UnexpectedToolError as error:
            raise refusal(error.__cause__ or error, name) from error
        except ToolError as error:
            if isinstance(error.__cause__, ValidationError):
                raise ToolError(f"invalid_input: {in_words(error.__cause__, tool.parameters)}") from None
            raise

    def checked_call(self, name: str, arguments: dict[str, Any]) -> tuple[Tool, dict[str, Any]]:
        """The tool that a call names, and the arguments in our spelling, without calling it.

        Raises:
            MCPError: there is no such tool. ToolError: an argument is wrong; in our words.
        """
        tool, arguments = self._known_call(name, arguments)
        try:
            tool.fn_metadata.arg_model.model_validate(arguments)
        except ValidationError as error:
            raise ToolError(f"invalid_input: {in_words(error, tool.parameters)}") from None
        return tool, arguments

    def _known_call(self, name: str, arguments: dict[str, Any]) -> tuple[Tool, dict[str, Any]]:
        tool = self._tools_by_name.get(name)
        if tool is None:
            raise unknown("tool", name, self._tools_by_name)
        try:
            arguments = tidied(arguments, schema_of(tool.fn_metadata.arg_model))
        except InvalidInput as error:
            raise refusal(error, name) from error
        fault = unknown_arguments(arguments, tool.parameters)
        if fault is not None:
            raise ToolError(f"invalid_input: {fault}")
        return tool, arguments

    async def _hook_answer(self, report: Mapping[str, Any], is_late: bool) -> CallToolResult:
        """Take the report of a hook on another machine. Paths in it are not paths of this machine."""
        payload = report.get("payload")
        if isinstance(payload, dict):
            report = {**report, "payload": {name: one for name, one in payload.items() if name != "transcriptPath"}}
        try:
            return text_answer(await self.captures.current().take(report, is_late=is_late))
        except KalitoError as error:
            raise refusal(error, "hook_event") from error

    async def read_resource(
        self, uri: Any, context: Context[None, Any] | None = None
    ) -> Iterable[ReadResourceContents] | InputRequiredResult:
        """Read a resource, or the page of the App, which only the lists of hosts that show it name."""
        if str(uri) == PAGE_URI:
            found = page()
            return [ReadResourceContents(found.text, found.mime_type, found.meta)]
        return await super().read_resource(uri, context)

    async def get_prompt(
        self, name: str, arguments: dict[str, Any] | None = None, context: Context[None, Any] | None = None
    ) -> GetPromptResult | InputRequiredResult:
        """Return a prompt. An unknown prompt or argument is the protocol error for invalid parameters."""
        known = {prompt.name: [one.name for one in prompt.arguments or []] for prompt in await self.list_prompts()}
        if name not in known:
            raise unknown("prompt", name, known)
        fault = unknown_arguments(arguments or {}, {"properties": {one: {} for one in known[name]}})
        if fault is not None:
            raise MCPError(code=INVALID_PARAMS, message=fault)
        return await super().get_prompt(name, arguments, context)


def build_server(
    opener: MemoryOpener,
    *,
    default_session: str | None = None,
    has_memory_tool: bool = False,
    has_hooks: bool = False,
    has_chatgpt: bool = False,
    public_url: str = "",
) -> KalitoServer:
    """Return a server that opens its memory when it starts. `default_session` replaces a missing session_id. With
    `has_memory_tool` it has Anthropic's memory tool, with `has_hooks` the tool that hooks call, and with `has_chatgpt`
    those that ChatGPT calls, whose records have URLs below `public_url`."""
    opened = MemoryHandle(opener, default_session)
    subscriptions = Subscriptions()
    captures = Captures(Capture(opened.memory), opened.memory)
    opened.alongside = Watcher(subscriptions, opened.memory).run
    more = [FILE_TOOL] * has_memory_tool + [HOOK_TOOL] * has_hooks + [*CHATGPT_TOOLS] * has_chatgpt
    tools = [row.as_sdk_tool() for row in (*TOOLS, *more)]
    server = KalitoServer(opened, subscriptions, tools, captures, public_url=public_url, has_hooks=has_hooks)
    subscriptions.serve(server)
    register_resources(server, opened)
    register_session_list(server, opened, subscriptions)
    core = server._lowlevel_server  # the transports of the SDK ask for the options themselves
    core.create_initialization_options = partial(  # type: ignore[method-assign]
        core.create_initialization_options, NotificationOptions(resources_changed=True)
    )
    register_prompts(server, opened)
    return server
