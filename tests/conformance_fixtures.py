"""Our server with the tools, resources and prompts that the conformance suite of MCP calls: `python -m ... PORT`.

They are registered on the server as `serve` builds it, with its gate, its refusals and its transports. What they return
is what the scenarios of @modelcontextprotocol/conformance ask for.
"""

import base64
import json
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final

import anyio
from mcp.server.mcpserver import Context, UserMessage
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.subscriptions import PromptsListChanged, ServerEvent, ToolsListChanged
from mcp.shared.exceptions import MCPError
from mcp.types import (
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    AudioContent,
    ContentBlock,
    CreateMessageRequest,
    CreateMessageRequestParams,
    ElicitRequest,
    ElicitRequestFormParams,
    EmbeddedResource,
    EmptyResult,
    ImageContent,
    InputRequiredResult,
    ListRootsRequest,
    SamplingMessage,
    SetLevelRequestParams,
    TextContent,
    TextResourceContents,
)
from pydantic import BaseModel, Field

from kalito_mcp.access.policy import HttpPolicy
from kalito_mcp.exchange.archive import archive_pieces
from kalito_mcp.server.build import KalitoServer, build_server
from kalito_mcp.server.http_server import serve_http
from kalito_mcp.server.web_app import http_app
from kalito_mcp.wiring import open_memory

AnyContext = Context[None, Any]
STEP_S: Final = 0.05
PIXEL: Final = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
SILENCE: Final = base64.b64encode(
    b"RIFF\x26\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0@\x1f\0\0@\x1f\0\0\1\0\x08\0data\2\0\0\0\x80\x80"
)
PERSON: Final[dict[str, Any]] = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
COLOUR: Final[dict[str, Any]] = {"type": "object", "properties": {"color": {"type": "string"}}, "required": ["color"]}
AGREED: Final[dict[str, Any]] = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
SCHEMA: Final[dict[str, Any]] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


def asked(message: str, schema: dict[str, Any]) -> ElicitRequest:
    return ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=schema))


def sampled(text: str, max_tokens: int) -> CreateMessageRequest:
    message = SamplingMessage(role="user", content=TextContent(type="text", text=text))
    return CreateMessageRequest(params=CreateMessageRequestParams(messages=[message], max_tokens=max_tokens))


def answered(context: AnyContext, key: str, field: str) -> str | None:
    """The field of what the user answered under the key, if they did."""
    answer = (context.input_responses or {}).get(key)
    content = getattr(answer, "content", None)
    found = content.get(field) if isinstance(content, dict) else None
    return None if found is None else str(found)


def embedded(uri: str, mime_type: str, text: str) -> EmbeddedResource:
    content = TextResourceContents(uri=uri, mime_type=mime_type, text=text)
    return EmbeddedResource(type="resource", resource=content)


# Content


async def test_simple_text() -> str:
    return "This is a simple text response for testing."


async def test_image_content() -> list[ContentBlock]:
    return [ImageContent(type="image", data=PIXEL, mime_type="image/png")]


async def test_audio_content() -> list[ContentBlock]:
    return [AudioContent(type="audio", data=SILENCE.decode(), mime_type="audio/wav")]


async def test_embedded_resource() -> list[ContentBlock]:
    return [embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")]


async def test_multiple_content_types() -> list[ContentBlock]:
    return [
        TextContent(type="text", text="Multiple content types test:"),
        ImageContent(type="image", data=PIXEL, mime_type="image/png"),
        embedded("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
    ]


async def test_error_handling() -> str:
    raise ToolError("This tool intentionally returns an error for testing")


async def json_schema_2020_12_tool(name: str = "") -> str:
    return name


async def test_x_mcp_header(region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})]) -> str:
    return region


# Notifications


async def test_tool_with_progress(context: AnyContext) -> str:
    for done in (0, 50, 100):
        await context.report_progress(done, 100)
        await anyio.sleep(STEP_S)
    return "done"


async def test_tool_with_logging(context: AnyContext) -> str:
    for text in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await context.info(text)  # type: ignore[deprecated] # older hosts still log
        await anyio.sleep(STEP_S)
    return "done"


async def test_logging_tool(context: AnyContext) -> str:
    return await test_tool_with_logging(context)


async def test_reconnection(context: AnyContext) -> str:
    await context.close_sse_stream()
    await anyio.sleep(2 * STEP_S)
    return "Reconnection test completed"


def delivered(context: AnyContext, event: ServerEvent) -> str:
    assert isinstance(context.mcp_server, KalitoServer)
    for one in context.mcp_server.subscriptions:
        one.deliver(event)
    return "notified"


async def test_trigger_tool_change(context: AnyContext) -> str:
    return delivered(context, ToolsListChanged())


async def test_trigger_prompt_change(context: AnyContext) -> str:
    return delivered(context, PromptsListChanged())


# Questions of the 2025 protocol


class UserResponse(BaseModel):
    username: str = Field(description="User's response")
    email: str = Field(description="User's email address")


class Defaults(BaseModel):
    name: str = "John Doe"
    age: int = 30
    score: float = 95.5
    status: str = Field(default="active", json_schema_extra={"enum": ["active", "inactive", "pending"]})
    verified: bool = True


ONE_OF: Final = [{"const": f"value{number}", "title": f"Option {number}"} for number in (1, 2, 3)]
PLAIN: Final = ["option1", "option2", "option3"]


class Enums(BaseModel):
    untitledSingle: str = Field(json_schema_extra={"enum": list(PLAIN)})  # noqa: N815 - the scenario's names
    titledSingle: str = Field(json_schema_extra={"oneOf": list(ONE_OF)})  # noqa: N815
    legacyEnum: str = Field(json_schema_extra={"enum": ["opt1", "opt2"], "enumNames": ["One", "Two"]})  # noqa: N815
    untitledMulti: list[str] = Field(json_schema_extra={"items": {"type": "string", "enum": list(PLAIN)}})  # noqa: N815
    titledMulti: list[str] = Field(json_schema_extra={"items": {"anyOf": list(ONE_OF)}})  # noqa: N815


async def test_sampling(prompt: str, context: AnyContext) -> str:
    result = await context.session.create_message(  # type: ignore[deprecated] # older hosts still sample
        messages=[SamplingMessage(role="user", content=TextContent(type="text", text=prompt))], max_tokens=100
    )
    return f"LLM response: {getattr(result.content, 'text', '')}"


async def elicited(context: AnyContext, message: str, schema: type[BaseModel]) -> str:
    result = await context.elicit(message, schema)
    content = result.data.model_dump_json() if result.action == "accept" else "{}"
    return f"action={result.action}, content={content}"


async def test_elicitation(message: str, context: AnyContext) -> str:
    return f"User response: {await elicited(context, message, UserResponse)}"


async def test_elicitation_sep1034_defaults(context: AnyContext) -> str:
    return f"Elicitation completed: {await elicited(context, 'Who are you?', Defaults)}"


async def test_elicitation_sep1330_enums(context: AnyContext) -> str:
    return f"Elicitation completed: {await elicited(context, 'Choose.', Enums)}"


# Questions of the 2026 protocol


async def test_missing_capability(context: AnyContext) -> str:
    if context.client_capabilities is None or context.client_capabilities.sampling is None:
        raise MCPError(
            code=MISSING_REQUIRED_CLIENT_CAPABILITY,
            message="this needs sampling",
            data={"requiredCapabilities": {"sampling": {}}},
        )
    return "the client can sample"


async def test_streaming_elicitation(context: AnyContext) -> str | InputRequiredResult:
    await context.report_progress(1, 2)
    return await test_input_required_result_elicitation(context)


async def test_input_required_result_elicitation(context: AnyContext) -> str | InputRequiredResult:
    name = answered(context, "user_name", "name")
    if name is None:
        return InputRequiredResult(input_requests={"user_name": asked("What is your name?", PERSON)})
    return f"Hello, {name}!"


async def test_input_required_result_sampling(context: AnyContext) -> str | InputRequiredResult:
    answer = (context.input_responses or {}).get("capital_question")
    if answer is None:
        return InputRequiredResult(
            input_requests={"capital_question": sampled("What is the capital of France?", max_tokens=100)}
        )
    return str(getattr(getattr(answer, "content", None), "text", answer))


async def test_input_required_result_list_roots(context: AnyContext) -> str | InputRequiredResult:
    answer = (context.input_responses or {}).get("client_roots")
    if answer is None:
        return InputRequiredResult(input_requests={"client_roots": ListRootsRequest()})
    return f"roots: {[str(one.uri) for one in getattr(answer, 'roots', [])]}"


async def test_input_required_result_request_state(context: AnyContext) -> str | InputRequiredResult:
    if context.request_state != "confirming" or answered(context, "confirm", "ok") is None:
        requests = {"confirm": asked("Please confirm", AGREED)}
        return InputRequiredResult(input_requests=dict(requests), request_state="confirming")
    return "state-ok"


async def test_input_required_result_multiple_inputs(context: AnyContext) -> str | InputRequiredResult:
    given = context.input_responses or {}
    if context.request_state != "three" or not {"user_name", "greeting", "client_roots"} <= given.keys():
        return InputRequiredResult(
            input_requests={
                "user_name": asked("What is your name?", PERSON),
                "greeting": sampled("Generate a greeting", max_tokens=50),
                "client_roots": ListRootsRequest(),
            },
            request_state="three",
        )
    return f"Welcome, {answered(context, 'user_name', 'name')}"


async def test_input_required_result_multi_round(context: AnyContext) -> str | InputRequiredResult:
    name = answered(context, "step1", "name")
    if context.request_state is None or (context.request_state == "first" and name is None):
        requests = {"step1": asked("Step 1: What is your name?", PERSON)}
        return InputRequiredResult(input_requests=dict(requests), request_state="first")
    colour = answered(context, "step2", "color")
    if colour is None:
        state = f"second:{name}" if context.request_state == "first" else context.request_state
        requests = {"step2": asked("Step 2: What is your favorite color?", COLOUR)}
        return InputRequiredResult(input_requests=dict(requests), request_state=state)
    return f"{context.request_state.removeprefix('second:')} likes {colour}"


async def test_input_required_result_tampered_state(context: AnyContext) -> str | InputRequiredResult:
    return await test_input_required_result_request_state(context)


async def test_input_required_result_capabilities(context: AnyContext) -> str | InputRequiredResult:
    if context.input_responses:
        return "answered"
    has = context.client_capabilities
    requests: dict[str, Any] = {}
    if has is not None and has.elicitation is not None:
        requests["user_name"] = asked("What is your name?", PERSON)
    if has is not None and has.sampling is not None:
        requests["greeting"] = sampled("Generate a greeting", max_tokens=50)
    return InputRequiredResult(input_requests=requests) if requests else "the client can do neither"


# Resources and prompts


async def static_text() -> str:
    return "This is the content of the static text resource."


async def static_binary() -> bytes:
    return base64.b64decode(PIXEL)


async def watched_resource() -> str:
    return "watched"


async def of_template(id: str) -> str:  # noqa: A002 - the scenario's name
    return json.dumps({"id": id, "templateTest": True, "data": f"Data for ID: {id}"})


async def test_simple_prompt() -> str:
    return "This is a simple prompt for testing."


async def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


async def test_prompt_with_embedded_resource(resourceUri: str) -> list[UserMessage]:  # noqa: N803 - the scenario's name
    content = embedded(resourceUri, "text/plain", "Embedded resource content for testing.")
    return [UserMessage(content=content), UserMessage("Please process the embedded resource above.")]


async def test_prompt_with_image() -> list[UserMessage]:
    image = ImageContent(type="image", data=PIXEL, mime_type="image/png")
    return [UserMessage(content=image), UserMessage("Please analyze the image above.")]


async def test_input_required_result_prompt(context: AnyContext) -> str | InputRequiredResult:
    said = answered(context, "user_context", "context")
    if said is None:
        schema = {"type": "object", "properties": {"context": {"type": "string"}}, "required": ["context"]}
        return InputRequiredResult(
            input_requests={"user_context": asked("What context should the prompt use?", schema)}
        )
    return f"Use this context: {said}"


TOOLS: Final = [
    test_simple_text,
    test_image_content,
    test_audio_content,
    test_embedded_resource,
    test_multiple_content_types,
    test_error_handling,
    json_schema_2020_12_tool,
    test_x_mcp_header,
    test_tool_with_progress,
    test_tool_with_logging,
    test_logging_tool,
    test_reconnection,
    test_trigger_tool_change,
    test_trigger_prompt_change,
    test_sampling,
    test_elicitation,
    test_elicitation_sep1034_defaults,
    test_elicitation_sep1330_enums,
    test_missing_capability,
    test_streaming_elicitation,
    test_input_required_result_elicitation,
    test_input_required_result_sampling,
    test_input_required_result_list_roots,
    test_input_required_result_request_state,
    test_input_required_result_multiple_inputs,
    test_input_required_result_multi_round,
    test_input_required_result_tampered_state,
    test_input_required_result_capabilities,
]
PROMPTS: Final = [
    test_simple_prompt,
    test_prompt_with_arguments,
    test_prompt_with_embedded_resource,
    test_prompt_with_image,
    test_input_required_result_prompt,
]


def register_fixtures(server: KalitoServer) -> None:
    """Add everything to a server."""
    for tool in TOOLS:
        server.add_tool(tool, description=f"{tool.__name__} of the conformance suite.", structured_output=False)
        added = server._tool_manager.get_tool(tool.__name__)
        assert added is not None
        server._tools_by_name[tool.__name__] = added
    server._tools_by_name["json_schema_2020_12_tool"].parameters = SCHEMA
    for prompt in PROMPTS:
        server.prompt(description=f"{prompt.__name__} of the conformance suite.")(prompt)
    server.resource("test://static-text", description="A text.", mime_type="text/plain")(static_text)
    server.resource("test://static-binary", description="A picture.", mime_type="image/png")(static_binary)
    server.resource("test://watched-resource", description="To subscribe to.")(watched_resource)
    server.resource("test://template/{id}/data", description="By id.", mime_type="application/json")(of_template)

    async def set_level(_context: Any, _params: SetLevelRequestParams) -> EmptyResult:
        return EmptyResult()

    server._lowlevel_server.add_request_handler("logging/setLevel", SetLevelRequestParams, set_level)


async def serve(port: int) -> None:
    """Serve a new memory with the fixtures until interrupted."""
    with tempfile.TemporaryDirectory() as folder:
        server = build_server(lambda: open_memory(Path(folder) / "memory.db"))
        register_fixtures(server)
        async with server.opened.open():
            app_on = partial(http_app, server, "http", HttpPolicy(), owner="local", exporter=archive_pieces)
            show = partial(print, flush=True)
            await serve_http(app_on, "/mcp", server=server, host="127.0.0.1", port=port, announce=show)


if __name__ == "__main__":
    anyio.run(serve, int(sys.argv[1]) if len(sys.argv) > 1 else 0)
