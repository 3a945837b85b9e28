"""One MCP server over one memory, the same on every transport and for both protocol eras."""

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from mcp.server import CacheHint, MCPServer
from mcp.server.caching import CacheableMethod
from mcp.server.lowlevel.server import NotificationOptions
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
from mcp.server.mcpserver.tools import Tool
from mcp.server.mcpserver.utilities.func_metadata import FuncMetadata
from mcp.shared.exceptions import MCPError
from mcp.types import INVALID_PARAMS, CallToolResult, GetPromptResult, InputRequiredResult, ToolAnnotations
from pydantic import ValidationError

from kalito_mcp.capture.capturer import Capture
from kalito_mcp.capture.captures import Captures
from kalito_mcp.errors import InvalidInput, KalitoError
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
from kalito_mcp.server.tools.chatgpt import ChatGptTools
from kalito_mcp.server.tools.conversation import ConversationTools
from kalito_mcp.server.tools.files import FileTools
from kalito_mcp.server.tools.forgetting import ForgettingTools
from kalito_mcp.server.tools.graph import GraphTools
from kalito_mcp.server.tools.hooks import HookTools
from kalito_mcp.server.tools.pins import PinTools
from kalito_mcp.server.tools.records import RecordTools
from kalito_mcp.server.tools.search import SearchTools
from kalito_mcp.server.watcher import Watcher
from kalito_mcp.version import __version__
from kalito_mcp.web.arguments import inlined, tidied, unknown_arguments
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
_UNLISTED: Final = ("title", "pattern", "maxLength")


class _Arguments(FuncMetadata):
    """The SDK's argument parser, which parses every string that contains JSON. Here, JSON strings were parsed
    before."""

    def pre_parse_json(self, data: dict[str, Any]) -> dict[str, Any]:
        return data


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
        self._captures = captures

    @property
    def capture(self) -> Capture:
        """What takes the reports of this machine's own hooks."""
        return self._captures.host

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
            arguments = tidied(arguments, tool.parameters)
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
            return text_answer(await self._captures.current().take(report, is_late=is_late))
        except KalitoError as error:
            raise refusal(error, "hook_event") from error

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
    tools = _tools(opened, OwnConversation(opened, captures))
    if has_memory_tool:
        tools.append(_memory_tool(opened))
    if has_hooks:
        tools.append(_hook_tool(captures, opened))
    if has_chatgpt:
        tools += _chatgpt_tools(opened, public_url)
    server = KalitoServer(opened, subscriptions, tools, captures, has_hooks=has_hooks)
    subscriptions.serve(server)
    register_resources(server, opened)
    register_session_list(server, opened, subscriptions)
    core = server._lowlevel_server  # the transports of the SDK ask for the options themselves
    core.create_initialization_options = partial(  # type: ignore[method-assign]
        core.create_initialization_options, NotificationOptions(resources_changed=True)
    )
    register_prompts(server, opened)
    return server


def _tools(opened: MemoryHandle, own: OwnConversation) -> list[Tool]:
    conversation, pins = ConversationTools(opened, own), PinTools(opened)
    search, graph = SearchTools(opened, own), GraphTools(opened)
    records, forgetting = RecordTools(opened), ForgettingTools(opened)
    writes = {"read_only": False, "destructive": False}
    reads = {"read_only": True, "destructive": False}
    destroys = {"read_only": False, "destructive": True}
    return [
        _tool(conversation.record_messages, "Record messages", "save, store, remember the conversation", **writes),
        _tool(conversation.build_context, "Build context", None, **reads, is_text=True),
        _tool(search.search_memory, "Search memory", None, **reads),
        _tool(pins.create_pin, "Pin a fact", "remember a fact, preference, decision", **writes),
        _tool(conversation.summarize_session, "Summarise the session", "sum up, compact the conversation", **writes),
        _tool(graph.record_feedback, "Record feedback", "liked, disliked, try again, thumbs up or down", **writes),
        _tool(
            conversation.finalize_session,
            "Finalize the session",
            "close, end the conversation",
            **writes,
            is_idempotent=True,
        ),
        _tool(records.remember, "Remember", "note, to-do, task, store a document, reflection", **writes),
        _tool(records.update_memory, "Update a memory", "correct, edit, complete a task", **destroys),
        _tool(forgetting.forget, "Forget", "delete, erase, remove", **destroys),
        _tool(records.restore, "Restore", "undo, bring back, revert", **writes, is_idempotent=True),
        _tool(records.memory_history, "Memory history", "versions, who changed it, one record in full", **reads),
        _tool(records.list_tasks, "List tasks", "to-do, what is due", **reads),
    ]


def _memory_tool(opened: MemoryHandle) -> Tool:
    function = FileTools(opened).memory
    return _tool(function, "Memory files", None, read_only=False, destructive=True, is_text=True)


def _chatgpt_tools(opened: MemoryHandle, public_url: str) -> list[Tool]:
    tools = ChatGptTools(opened, public_url)
    reads = {"read_only": True, "destructive": False}
    return [_tool(tools.search, "Search", None, **reads), _tool(tools.fetch, "Fetch", None, **reads)]


def _hook_tool(captures: Captures, opened: MemoryHandle) -> Tool:
    """The tool that hooks call. Hosts hide it from their model because of its visibility."""
    tool = _tool(
        HookTools(captures, opened).hook_event, "Hook event", None, read_only=False, destructive=False, is_text=True
    )
    tool.meta = {"ui": {"visibility": ["app"]}}
    return tool


def _tool(
    function: Callable[..., Any],
    title: str,
    hint: str | None,
    *,
    read_only: bool,
    destructive: bool,
    is_idempotent: bool = False,
    is_text: bool = False,
) -> Tool:
    """A tool as hosts list it. They search it by its `hint`; one without a hint is always loaded."""
    tool = Tool.from_function(
        function,
        title=title,
        description=" ".join((inspect.getdoc(function) or "").split()),
        annotations=ToolAnnotations(
            title=title,
            read_only_hint=read_only,
            destructive_hint=destructive,
            idempotent_hint=is_idempotent or read_only,
            open_world_hint=False,
        ),
        meta={"anthropic/searchHint": hint} if hint else {"anthropic/alwaysLoad": True},
        structured_output=False if is_text else None,
    )
    tool.parameters = _terse(inlined(tool.parameters))
    tool.parameters["additionalProperties"] = False
    parsing = dict(tool.fn_metadata) | {"output_schema": _terse(tool.fn_metadata.output_schema)}
    tool.fn_metadata = _Arguments(**parsing)
    return tool


def _terse(schema: Any) -> Any:
    """The schema without the titles that pydantic derives from names, and without the null of optional arguments.
    They add nothing, and would cost a third of the listing. Nor has it patterns and longest lengths, which are checked
    in the call: servers of local models make a grammar of the schemas, and refuse every tool if they cannot."""
    if isinstance(schema, list):
        return [_terse(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    kept = dict(schema)
    choices = kept.get("anyOf")
    if isinstance(choices, list) and len(choices) == 2 and {"type": "null"} in choices:  # noqa: PLR2004 - it and null
        [only] = [choice for choice in choices if choice != {"type": "null"}]
        kept = {**only, **{key: value for key, value in kept.items() if key != "anyOf"}}
    if kept.get("default", ...) is None:
        del kept["default"]
    # A title is a string; a property of that name is a schema.
    return {key: _terse(value) for key, value in kept.items() if key not in _UNLISTED or isinstance(value, dict)}
