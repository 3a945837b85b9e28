"""A stand-in for the API of a model, on loopback. It speaks the streaming formats of four APIs, and keeps what it got.

Anthropic's messages, OpenAI's responses and chat completions, and Gemini's generateContent. It is not a model: what it
answers is a function of the request. It calls tools in the first two formats alone.
"""

import json
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

Events = Iterator[tuple[str | None, Any]]
"""The name of each event of a stream, if the API names them, and what it says."""

OTHERWISE: Final = "Understood."
"""What it says to what it does not know."""
_LABELS: Final = ("type", "role")
_MODEL: Final = ("assistant", "model")
_USAGE: Final = {"input_tokens": 100, "output_tokens": 10}


@dataclass(frozen=True, slots=True)
class Request:
    """What a host sent to its model. `newest` are the user's words since the model spoke last, `text`
    all words, in order."""

    path: str
    body: Mapping[str, Any]

    @property
    def text(self) -> str:
        return "\n".join(_texts(self.body))

    @property
    def newest(self) -> str:
        turns = self.body.get("messages") or self.body.get("input") or self.body.get("contents") or []
        if isinstance(turns, str):
            return turns
        after = next((place for place in range(len(turns), 0, -1) if turns[place - 1].get("role") in _MODEL), 0)
        said = [turn.get("content", turn.get("parts")) for turn in turns[after:] if turn.get("role") == "user"]
        return "\n".join(_texts(said))


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool that the model wants called. `namespace` is where OpenAI's responses list it, if in one."""

    name: str
    arguments: Mapping[str, Any]
    namespace: str | None = None


Speaks = Callable[[Request], str | ToolCall]
"""What a model answers to a request."""


def scripted(script: Sequence[tuple[str, str]]) -> Speaks:
    """Answers with the reply of the first rule whose key is in the newest words of the user."""

    def speaks(request: Request) -> str:
        newest = request.newest
        return next((reply for key, reply in script if key in newest), OTHERWISE)

    return speaks


@dataclass(slots=True)
class ModelApi:
    """A running stand-in: where it is, what it says, and what it got."""

    url: str
    speaks: Speaks
    requests: list[Request] = field(default_factory=list[Request])
    unknown: list[str] = field(default_factory=list[str])
    """Paths that it has no answer for."""


@contextmanager
def model_api(speaks: Speaks) -> Iterator[ModelApi]:
    """A stand-in on a free port of the loopback address, while the block runs."""

    class Handler(_Handler):
        pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        api = Handler.api = ModelApi(f"http://127.0.0.1:{server.server_address[1]}", speaks)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield api
        finally:
            server.shutdown()
            thread.join()


class _Handler(BaseHTTPRequestHandler):
    api: ModelApi

    def do_HEAD(self) -> None:
        self._send(b"", "application/json")

    def do_GET(self) -> None:
        self.api.unknown.append(f"GET {self.path}")
        self._send(b'{"data": [], "models": []}', "application/json")

    def do_POST(self) -> None:
        given = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path = self.path.partition("?")[0]
        try:
            body = json.loads(given)
        except ValueError:
            body = None
        answer = _answer(path)
        if not isinstance(body, dict) or answer is None:
            self.api.unknown.append(f"POST {self.path}")
            self._send(b'{"error": {"message": "the stand-in does not know this"}}', "application/json", 404)
            return
        if answer is _count:
            self._send(json.dumps(_count()).encode(), "application/json")
            return
        request = Request(path, body)
        reply = self.api.speaks(request)
        self.api.requests.append(request)
        events = list(answer(reply, str(body.get("model", "stand-in"))))
        if body.get("stream") or path.endswith(":streamGenerateContent"):
            self._send("".join(_line(name, said) for name, said in events).encode(), "text/event-stream")
        else:
            self._send(json.dumps(_whole(path, reply, events)).encode(), "application/json")

    def _send(self, content: bytes, kind: str, status: int = 200) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def _answer(path: str) -> Any:
    """What makes the answer to a path; None if the path is not known."""
    if path.endswith(("/count_tokens", ":countTokens")):
        return _count
    if path.endswith("/messages"):
        return _messages
    if path.endswith("/responses"):
        return _responses
    if path.endswith("/chat/completions"):
        return _chat_completions
    if path.endswith((":generateContent", ":streamGenerateContent")):
        return _generate_content
    return None


def _new_id(kind: str) -> str:
    return f"{kind}_{secrets.token_hex(8)}"


def _count() -> dict[str, int]:
    return {"input_tokens": 100, "totalTokens": 100}


def _messages(reply: str | ToolCall, model: str) -> Events:
    """Anthropic's messages."""
    message = {
        "id": _new_id("msg"),  # Claude Code takes what has one id for one message
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": _USAGE,
    }
    yield "message_start", {"type": "message_start", "message": message}
    block: dict[str, Any] = {"type": "text", "text": ""}
    delta = {"type": "text_delta", "text": reply}
    if isinstance(reply, ToolCall):
        block = {"type": "tool_use", "id": _new_id("call"), "name": reply.name, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(reply.arguments)}
    yield "content_block_start", {"type": "content_block_start", "index": 0, "content_block": block}
    yield "content_block_delta", {"type": "content_block_delta", "index": 0, "delta": delta}
    yield "content_block_stop", {"type": "content_block_stop", "index": 0}
    reason = "tool_use" if isinstance(reply, ToolCall) else "end_turn"
    end = {"stop_reason": reason, "stop_sequence": None}
    yield "message_delta", {"type": "message_delta", "delta": end, "usage": {"output_tokens": 10}}
    yield "message_stop", {"type": "message_stop"}


def _responses(reply: str | ToolCall, model: str) -> Events:
    """OpenAI's responses."""
    said = {"type": "output_text", "text": reply, "annotations": []}
    item = {"type": "message", "id": "item_1", "role": "assistant", "status": "completed", "content": [said]}
    if isinstance(reply, ToolCall):
        item = {"type": "function_call", "id": "item_1", "call_id": _new_id("call"), "status": "completed"}
        item |= {"name": reply.name, "arguments": json.dumps(reply.arguments)}
        item |= {"namespace": reply.namespace} if reply.namespace else {}
    response = {"id": "resp_1", "object": "response", "model": model, "created_at": 1}
    yield "response.created", {"type": "response.created", "response": response | {"status": "in_progress"}}
    if isinstance(reply, str):
        added = item | {"status": "in_progress", "content": []}
        yield "response.output_item.added", {"type": "response.output_item.added", "output_index": 0, "item": added}
        delta = {"type": "response.output_text.delta", "item_id": "item_1", "output_index": 0, "content_index": 0}
        yield "response.output_text.delta", delta | {"delta": reply}
    yield "response.output_item.done", {"type": "response.output_item.done", "output_index": 0, "item": item}
    usage = _USAGE | {"total_tokens": 110, "input_tokens_details": None, "output_tokens_details": None}
    done = response | {"status": "completed", "output": [item], "usage": usage}
    yield "response.completed", {"type": "response.completed", "response": done}


def _chat_completions(reply: str, model: str) -> Events:
    """OpenAI's chat completions."""
    chunk = {"id": "chat_1", "object": "chat.completion.chunk", "created": 1, "model": model}
    for delta, reason in (({"role": "assistant", "content": reply}, None), ({}, "stop")):
        yield None, chunk | {"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}
    usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
    yield None, chunk | {"choices": [], "usage": usage}
    yield None, "[DONE]"


def _generate_content(reply: str, model: str) -> Events:
    """Gemini's generateContent."""
    content = {"role": "model", "parts": [{"text": reply}]}
    usage = {"promptTokenCount": 100, "candidatesTokenCount": 10, "totalTokenCount": 110}
    candidate = {"index": 0, "content": content, "finishReason": "STOP"}
    yield None, {"candidates": [candidate], "usageMetadata": usage, "modelVersion": model}


def _whole(path: str, reply: str | ToolCall, events: Sequence[tuple[str | None, Any]]) -> Any:
    """The answer to a request that wants no stream: words, not a call."""
    if path.endswith("/messages"):
        message: Mapping[str, Any] = events[0][1]["message"]
        return {**message, "content": [{"type": "text", "text": reply}], "stop_reason": "end_turn"}
    if path.endswith("/responses"):
        return events[-1][1]["response"]
    if path.endswith("/chat/completions"):
        said = {"index": 0, "message": {"role": "assistant", "content": reply}, "finish_reason": "stop"}
        return {**events[-2][1], "object": "chat.completion", "choices": [said]}
    return events[0][1]


def _line(name: str | None, said: Any) -> str:
    written = said if isinstance(said, str) else json.dumps(said)
    return (f"event: {name}\n" if name else "") + f"data: {written}\n\n"


def _texts(value: Any) -> Iterator[str]:
    """All texts of a JSON value, in order, without those that only say what it is."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, part in value.items():
            if name not in _LABELS:
                yield from _texts(part)
    elif isinstance(value, list):
        for part in value:
            yield from _texts(part)
