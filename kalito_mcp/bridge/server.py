"""The server that a host on this machine starts if its memory is on another one. It lists the same as every server, and
passes on calls.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from mcp.server.apps import client_supports_apps
from mcp.server.context import ServerRequestContext
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.subscriptions import ResourceUpdated
from mcp.types import (
    CallToolRequestParams,
    CompleteRequestParams,
    GetPromptRequestParams,
    ListResourcesResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    RequestParams,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from kalito_mcp.bridge.home import Caller
from kalito_mcp.bridge.hooks import Hooks
from kalito_mcp.bridge.passing import Passing, ToolCall, made_here, refusal_of
from kalito_mcp.bridge.replies import Progress, RequestRefused
from kalito_mcp.capture.capturer import report_of_call
from kalito_mcp.errors import KalitoError
from kalito_mcp.server.app.offering import PAGE_URI, page
from kalito_mcp.server.build import KalitoServer, build_server
from kalito_mcp.server.refusals import refusal
from kalito_mcp.server.session_list import FIRST_CURSOR

if TYPE_CHECKING:
    from kalito_mcp.memory import Memory

_SERVER_INFO: Final = "io.modelcontextprotocol/serverInfo"
_ASKS: Final = "input_required"
_HOOK_TOOL: Final = "hook_event"


@dataclass(frozen=True, slots=True)
class Host:
    """The session and the project of the host that has started this process, if it works in any."""

    session: str | None
    project: str | None


def build_bridge(
    passing: Passing,
    hooks: Hooks,
    host: Host,
    *,
    has_memory_tool: bool = False,
    has_hooks: bool = False,
    has_chatgpt: bool = False,
) -> KalitoServer:
    """A server that passes on all calls. It never opens a memory. It has the tools of `build_server`."""
    server = build_server(_no_memory, has_memory_tool=has_memory_tool, has_hooks=has_hooks, has_chatgpt=has_chatgpt)
    bridge = _Bridge(server, passing, hooks, host)
    core = server._lowlevel_server  # MCPServer has no public way to replace these
    core.lifespan = _no_lifespan
    server.subscriptions.prepare = _nothing_to_prepare
    server.state_keys.use_own_key()
    core.add_request_handler("tools/call", CallToolRequestParams, bridge.call_tool)
    core.add_request_handler("resources/list", PaginatedRequestParams, bridge.list_resources)
    core.add_request_handler("resources/read", ReadResourceRequestParams, bridge.read_resource)
    core.add_request_handler("prompts/get", GetPromptRequestParams, bridge.get_prompt)
    core.add_request_handler("completion/complete", CompleteRequestParams, bridge.complete)
    return server


@asynccontextmanager
async def _no_memory() -> "AsyncIterator[Memory]":
    raise RuntimeError("a bridge has no memory")
    yield


async def _nothing_to_prepare(*_what: object) -> None:
    """No memory is watched here."""


@asynccontextmanager
async def _no_lifespan(_server: Any) -> AsyncIterator[None]:
    yield


class _Bridge:
    """Answers the requests of one host."""

    def __init__(self, server: KalitoServer, passing: Passing, hooks: Hooks, host: Host) -> None:
        self._server = server
        self._passing = passing
        self._hooks = hooks
        self._host = host

    async def call_tool(self, context: ServerRequestContext[Any], params: CallToolRequestParams) -> dict[str, Any]:
        try:
            tool, arguments = self._server.checked_call(params.name, params.arguments or {})
            if params.name == _HOOK_TOOL:
                text = await self._hooks.take(report_of_call(arguments))
                return made_here(text)
            call = ToolCall(params.name, arguments, _required(tool.output_schema), _answers(params))
            caller, on_progress = self._caller(context), _progress(context)
            result = await self._passing.call(call, caller, on_progress)
            while result.get("resultType") == _ASKS and context.protocol_version not in MODERN_PROTOCOL_VERSIONS:
                call = replace(call, answers=await _ask_user(context, result))
                result = await self._passing.call(call, caller, on_progress)
            self._notify(call, result)
            return _plain(result)
        except RequestRefused as refused:
            raise refusal_of(refused) from refused
        except ToolError as error:
            return _failed(error)
        except KalitoError as error:
            return _failed(refusal(error, params.name))

    async def list_resources(
        self, context: ServerRequestContext[Any], params: PaginatedRequestParams
    ) -> ListResourcesResult | dict[str, Any]:
        if params.cursor is None:
            return ListResourcesResult(resources=await self._server.list_resources(), next_cursor=FIRST_CURSOR)
        return await self._read("resources/list", context, params)

    async def read_resource(
        self, context: ServerRequestContext[Any], params: ReadResourceRequestParams
    ) -> ReadResourceResult | dict[str, Any]:
        if str(params.uri) == PAGE_URI:  # the home may be of another version
            return ReadResourceResult(contents=[page()])
        return await self._read("resources/read", context, params)

    async def get_prompt(self, context: ServerRequestContext[Any], params: GetPromptRequestParams) -> dict[str, Any]:
        return await self._read("prompts/get", context, params)

    async def complete(self, context: ServerRequestContext[Any], params: CompleteRequestParams) -> dict[str, Any]:
        try:
            return _plain(await self._passing.complete(_params_of(params), self._caller(context)))
        except RequestRefused as refused:
            raise refusal_of(refused) from refused

    async def _read(self, method: str, context: ServerRequestContext[Any], params: RequestParams) -> dict[str, Any]:
        try:
            return _plain(await self._passing.read(method, _params_of(params), self._caller(context)))
        except RequestRefused as refused:
            raise refusal_of(refused) from refused

    def _notify(self, call: ToolCall, result: Mapping[str, Any]) -> None:
        """Notify the host that all its subscriptions may have changed, after one of its own changes. It sees others'
        changes when it reads."""
        if call.only_reads or result.get("isError"):
            return
        for one in self._server.subscriptions:
            for uri in one.watched:
                one.deliver(ResourceUpdated(uri=uri))

    def _caller(self, context: ServerRequestContext[Any]) -> Caller:
        """The caller. The home keeps the host's name with the records."""
        params = context.session.client_params
        client = (
            None if params is None else params.client_info.model_dump(by_alias=True, mode="json", exclude_none=True)
        )
        declared = context.session.client_capabilities
        elicits = None if declared is None or declared.elicitation is None else declared.elicitation
        elicitation = None if elicits is None else elicits.model_dump(by_alias=True, mode="json", exclude_none=True)
        return Caller(client, self._host.session, self._host.project, elicitation, client_supports_apps(context))


def _required(schema: Mapping[str, Any] | None) -> dict[str, str]:
    """The fields that an answer must have, each with its JSON type."""
    fields: Mapping[str, Any] = (schema or {}).get("properties", {})
    return {name: str(fields.get(name, {}).get("type", "string")) for name in (schema or {}).get("required", [])}


def _answers(params: CallToolRequestParams) -> dict[str, Any]:
    """The user's answer to the home, in the form of the 2026 protocol."""
    given = params.model_dump(by_alias=True, mode="json", exclude_none=True)
    return {name: given[name] for name in ("inputResponses", "requestState") if name in given}


async def _ask_user(context: ServerRequestContext[Any], result: Mapping[str, Any]) -> dict[str, Any]:
    """Ask the user of a host of the 2025 protocol what the home wants to know, and return the answers."""
    answers: dict[str, Any] = {}
    for name, request in (result.get("inputRequests") or {}).items():
        given = request.get("params") or {}
        if request.get("method") != "elicitation/create" or "requestedSchema" not in given:
            raise ToolError("unsupported: the home asks what this host cannot be asked; do it on the home")
        answer = await context.session.elicit_form(given["message"], given["requestedSchema"], context.request_id)
        answers[name] = answer.model_dump(by_alias=True, mode="json", exclude_none=True)
    state = {"requestState": result["requestState"]} if "requestState" in result else {}
    return {"inputResponses": answers, **state}


def _progress(context: ServerRequestContext[Any]) -> Progress | None:
    """A function that passes progress on; None if the host did not ask for it."""
    meta: Mapping[str, Any] = context.meta or {}
    return (
        context.session.report_progress if meta.get("progress_token", meta.get("progressToken")) is not None else None
    )


def _params_of(params: RequestParams) -> dict[str, Any]:
    """The parameters as they came, without those of this connection."""
    return params.model_dump(by_alias=True, mode="json", exclude_none=True, exclude={"meta"})


def _plain(result: dict[str, Any]) -> dict[str, Any]:
    """The result without the home's name: the server here puts its own. The rest stays."""
    meta = {name: value for name, value in (result.get("_meta") or {}).items() if name != _SERVER_INFO}
    bare = {name: value for name, value in result.items() if name != "_meta"}
    return {**bare, "_meta": meta} if meta else bare


def _failed(error: ToolError) -> dict[str, Any]:
    return made_here(str(error), is_error=True)
