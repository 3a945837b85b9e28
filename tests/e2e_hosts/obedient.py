"""A stand-in for a model that does what it is asked: it calls the tools that the server's instructions ask for at each
turn, searches when it is asked something, and then answers. All it knows is the request and its replies.

It reads Anthropic's messages and OpenAI's responses. A tool that its host has not loaded yet it asks the host for.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from tests.e2e_hosts.model_api import OTHERWISE, Request, ToolCall

SEARCH: Final = "search_memory"
_CONTEXT: Final = "build_context"
_RECORD: Final = "record_messages"
_PIN: Final = "create_pin"
_OF_KALITO: Final = "mcp__kalito"
_LOADS_TOOLS: Final = "ToolSearch"
_CONTEXT_TOKENS: Final = 1_000
_EACH_TURN: Final = re.compile(r"\b(?:each|every|start of a) turn\b.*\bcall (\w+)")
_TO_REMEMBER: Final = re.compile(r'says "remember this", call (\w+)')
_REMEMBER: Final = "Remember: "
_WITH_SESSION: Final = re.compile(r"send it with every call(?: except (\w+))?")
_SESSION: Final = re.compile(r'\\?"session_id\\?":\s*\\?"([^"\\]+)')


@dataclass(frozen=True, slots=True)
class Step:
    """A part of what a model was sent, in order: words of the user, a call of its own, or what the call returned."""

    kind: str
    text: str
    tool: str = ""


@dataclass(frozen=True, slots=True)
class Search:
    """A search that the model made for a prompt, and what it got."""

    prompt: str
    hits: Sequence[Mapping[str, Any]]


@dataclass(slots=True)
class Obedient:
    """Answers each prompt with its reply, after the calls that it was asked for: at each turn, at a question, and at
    what is to be remembered. To the reply to a question it adds the first hit."""

    replies: Mapping[str, str]
    searches: list[Search] = field(default_factory=list[Search])
    calls: list[str] = field(default_factory=list[str])

    def __call__(self, request: Request) -> str | ToolCall:
        steps = list(steps_of(request))
        began = max((at for at, one in enumerate(steps) if one.kind == "user" and one.text in self.replies), default=-1)
        if began < 0 or not request.body.get("tools"):  # hosts also ask for a title and the like
            return OTHERWISE
        prompt, since = steps[began].text, steps[began + 1 :]
        results = {one.tool: one.text for one in since if one.kind == "result"}
        reply = self.replies[prompt]
        hits = hits_in(results[SEARCH]) if SEARCH in results else []
        if SEARCH in results and not any(one.prompt == prompt for one in self.searches):
            self.searches.append(Search(prompt, hits))
        if hits:
            reply = f"{reply} {hits[0]['text']}"
        number = list(self.replies).index(prompt)
        said = (("user", prompt), ("assistant", reply))
        messages = [{"role": role, "text": text, "client_key": f"{number}-{role}"} for role, text in said]
        arguments: Mapping[str, Mapping[str, Any]] = {
            _CONTEXT: {"query": prompt, "max_tokens": _CONTEXT_TOKENS},
            SEARCH: {"query": prompt},
            _PIN: {"content": prompt.removeprefix(_REMEMBER), "scope": "project"},
            _RECORD: {"messages": messages},
        }
        wanted = {*_EACH_TURN.findall(request.text), *([SEARCH] if prompt.endswith("?") else [])}
        wanted |= set(_TO_REMEMBER.findall(request.text)) if prompt.startswith(_REMEMBER) else set()
        for tool in (name for name in arguments if name in wanted and name not in results):
            call = _call(request, tool, {**arguments[tool], **_session(request, steps, tool)})
            if call is None and not any(one.tool == _LOADS_TOOLS and tool in one.text for one in since):
                call = ToolCall(_LOADS_TOOLS, {"query": f"select:{_OF_KALITO}__{tool}", "max_results": 1})
            if call is not None:
                self.calls.append(call.name.removeprefix(f"{_OF_KALITO}__"))
                return call
        return reply


def steps_of(request: Request) -> Iterator[Step]:
    """What the model was sent, in order."""
    called: dict[str, str] = {}
    for turn in request.body.get("messages") or request.body.get("input") or ():
        content = turn.get("content", turn)
        for part in content if isinstance(content, list) else [content]:
            kind = part.get("type") if isinstance(part, dict) else None
            if kind in ("tool_use", "function_call"):
                called[part.get("call_id", part["id"])] = tool = part["name"].removeprefix(f"{_OF_KALITO}__")
                yield Step("call", json.dumps(part.get("input", part.get("arguments"))), tool)
            elif kind in ("tool_result", "function_call_output"):
                returned = part.get("content", part.get("output"))
                text = returned if isinstance(returned, str) else json.dumps(returned)
                yield Step("result", text, called.get(part.get("tool_use_id", part.get("call_id")), ""))
            elif turn.get("role") == "user":
                yield Step("user", (part if isinstance(part, str) else part.get("text", "")).strip())


def hits_in(returned: str) -> Sequence[Mapping[str, Any]]:
    """The hits of a search, from what the host made of its result."""
    for at in (found.start() for found in re.finditer(r"[\[{]", returned)):
        try:
            value, _ = json.JSONDecoder().raw_decode(returned, at)
        except ValueError:
            continue
        hits = next(_hits(value), None)
        if hits is not None:
            return hits
    return ()


def _hits(value: Any) -> Iterator[Sequence[Mapping[str, Any]]]:
    if isinstance(value, dict):
        if isinstance(value.get("hits"), list):
            yield value["hits"]
        for part in value.values():
            yield from _hits(part)
    elif isinstance(value, list):
        for part in value:
            yield from _hits(part)
    elif isinstance(value, str) and '"hits"' in value:
        yield hits_in(value)


def _call(request: Request, tool: str, arguments: Mapping[str, Any]) -> ToolCall | None:
    """The call of a tool of kalito; None if the host does not offer it yet."""
    for one in request.body["tools"]:
        if one.get("name") == f"{_OF_KALITO}__{tool}":
            return ToolCall(one["name"], arguments)
        if one.get("name") == _OF_KALITO and any(inner["name"] == tool for inner in one.get("tools", ())):
            return ToolCall(tool, arguments, _OF_KALITO)
    return None


def _session(request: Request, steps: Sequence[Step], tool: str) -> Mapping[str, str]:
    """The session that kalito named before in this conversation, if the instructions ask to send it."""
    asked = _WITH_SESSION.search(request.text)
    named = [found[1] for one in steps if one.tool == _RECORD and (found := _SESSION.search(one.text))]
    return {"session_id": named[-1]} if asked and asked[1] != tool and named else {}
