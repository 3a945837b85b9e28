"""Handles a host's call: it is passed on, it waits for the home, or it gets the home's last answer.

Calls that record are passed on in order, and wait if the home cannot take them. Calls that read get the kept answer,
which says how old it is. Calls that change or erase stored records need the home: an erasure must not be pretended.
"""

import json
import secrets
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol

import anyio
import anyio.to_thread
from mcp.server.mcpserver.exceptions import ToolError
from mcp.shared.exceptions import MCPError
from mcp.types import INTERNAL_ERROR

from kalito_mcp.bridge.answers import Answers, KeptAnswer
from kalito_mcp.bridge.checks import OWN_WORDS, check_call, dated
from kalito_mcp.bridge.delivery import Change, Delivery, refusal_in
from kalito_mcp.bridge.home import Caller
from kalito_mcp.bridge.replies import HomeAway, HomeForbids, HomePaused, HomeRefuses, Progress, RequestRefused
from kalito_mcp.domain.access import Permission
from kalito_mcp.domain.request_keys import BRIDGE_PREFIX
from kalito_mcp.domain.validation import LimitsPolicy
from kalito_mcp.errors import InvalidInput, StorageError
from kalito_mcp.safety.escaping import escape_json, json_text, visible
from kalito_mcp.safety.redaction import checked_handle, cleaned, hashed, redact
from kalito_mcp.server.tools.table import PERMISSIONS
from kalito_mcp.text.plurals import plural

WAITING: Final = frozenset({"record_messages", "create_pin", "remember", "record_feedback", "summarize_session"})
"""Tools whose calls wait for the home; summarize_session only with a summary of the caller's own."""
_ERASING: Final = frozenset({"update_memory", "forget", "restore", "memory"})
"""Tools after which no earlier answer is shown."""
_REPEATABLE: Final = frozenset({"finalize_session", "forget", "restore"})
"""Tools that need the home and may safely be called twice."""
_KEYED: Final = frozenset({"create_pin"})
_ONCE: Final = frozenset({"remember", "record_feedback", "summarize_session"})
"""Tools without a key of their own: the home keeps the key of the call."""
_WITH_SESSION: Final = frozenset({"record_messages", "create_pin", "summarize_session"})
_KEYS: Final = ("client_key", "clientKey")
_AS_THEY_ARE: Final = frozenset({"session_id", "client_key", "messages"})
_OF_ONE_TURN: Final = frozenset({"query", "also", "seen_messages", "pending_input"})
"""Arguments of build_context that differ each time, and do not affect what may be shown."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a tool. The arguments are valid as far as their shape goes. `required` are the fields that its answer
    must have, each with its JSON type, and `answers` what the user has answered to the home's questions."""

    name: str
    arguments: Mapping[str, Any]
    required: Mapping[str, str]
    answers: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def only_reads(self) -> bool:
        """Whether it changes nothing."""
        return PERMISSIONS.get(self.name) is Permission.READ or (
            self.name == "memory" and self.arguments.get("command") == "view"
        )


class Places(Protocol):
    """Projects of the folders on this machine."""

    def check_remembered(self, project: str | None = None) -> None:
        """Raise Conflict while nothing is recorded on this machine, in this folder or else in the host's."""

    def named(self, project: str) -> str:
        """The home's name of a project that a host names."""


class Passing:
    """Passes on what the hosts of one process ask."""

    def __init__(self, delivery: Delivery, answers: Answers, places: Places, limits: LimitsPolicy) -> None:
        self._limits = limits
        self._delivery = delivery
        self._answers = answers
        self._places = places

    async def call(self, call: ToolCall, caller: Caller, on_progress: Progress | None) -> dict[str, Any]:
        """The result of a tool's call: the home's, unchanged, or else what was kept or what waits.

        Raises:
            ToolError: the home is away and has to be there. RequestRefused: it refuses the call.
            KalitoError: nothing may be recorded now, or the call cannot be kept.
        """
        project = call.arguments.get("project")
        if isinstance(project, str) and project:
            call = replace(call, arguments={**call.arguments, "project": self._places.named(project)})
        if call.only_reads:
            return await self._read("tools/call", {"name": call.name, "arguments": dict(call.arguments)}, caller)
        if call.name in WAITING and (call.name != "summarize_session" or any(map(call.arguments.get, OWN_WORDS))):
            self._places.check_remembered(project or None)
            return await self._record(call, caller, on_progress)
        return await self._change(call, caller, on_progress)

    async def read(self, method: str, params: Mapping[str, Any], caller: Caller) -> dict[str, Any]:
        """The result of reading a resource or a prompt. Raises RequestRefused, or MCPError if the home is away."""
        try:
            return await self._read(method, params, caller)
        except ToolError as error:
            raise MCPError(code=INTERNAL_ERROR, message=str(error)) from error

    async def complete(self, params: Mapping[str, Any], caller: Caller) -> dict[str, Any]:
        """Completions of an argument; empty while the home is away."""
        try:
            return await self._delivery.ask("completion/complete", params, caller)
        except HomeAway:
            return {"completion": {"values": []}}

    async def _read(self, method: str, params: Mapping[str, Any], caller: Caller) -> dict[str, Any]:
        session, asked_as = caller.session or "", self._delivery.home.identity()
        place = {"session": session, "project": caller.project, "asked as": asked_as, "apps": caller.shows_apps}
        question = {"method": method, "params": params, **place}
        newest = _newest_context(params, place)
        is_caught_up = await self._delivery.catch_up()
        last_erasure = await anyio.to_thread.run_sync(self._answers.last_erasure)
        try:
            result = await self._delivery.ask(method, params, caller)
        except HomeForbids as forbidden:
            raise ToolError(f"forbidden: {forbidden.reason}") from forbidden
        except HomeAway as away:
            kept = await anyio.to_thread.run_sync(self._answers.find, question)
            is_other = kept is None and newest is not None
            if kept is None and newest is not None:
                kept = await anyio.to_thread.run_sync(self._answers.find, newest)
            if kept is None:
                raise ToolError(self._nothing_kept(away, await self._count_waiting())) from away
            return self._old(method, kept, away, await self._count_waiting(), is_other=is_other)
        if not result.get("isError"):
            keep = partial(self._answers.keep, result=result, last_erasure=last_erasure)
            for one in (question, newest):
                if one is not None:
                    await anyio.to_thread.run_sync(keep, one)
        if not is_caught_up and (waiting := await self._count_waiting()):
            return _with_note(method, result, "incomplete_answer", f"[{_not_in_it(waiting)}]")
        return result

    async def _record(self, call: ToolCall, caller: Caller, on_progress: Progress | None) -> dict[str, Any]:
        arguments, meta = _keyed(call, caller.session)
        session, said_at, redacted = arguments.get("session_id"), datetime.now(UTC), list[str]()

        def make_copy() -> Change:
            if call.name in _WITH_SESSION and not session:
                raise InvalidInput("session_id is missing; send the one that record_messages returned")
            of_now = dated(arguments, said_at)
            check_call(call.name, of_now, self._limits)
            kept, found = _without_secrets(of_now)
            redacted.extend(found)
            return Change({"name": call.name, "arguments": kept}, caller, meta)

        try:
            change = Change({"name": call.name, "arguments": arguments}, caller, meta)
            result = await self._delivery.pass_on(change, make_copy, on_progress=on_progress)
        except HomePaused as paused:
            raise ToolError(paused.reason) from paused
        except HomeAway as away:
            return self._waits(call, session, redacted, away, await self._count_waiting())
        is_known = bool(result.get("isError")) and refusal_in(result) is None
        return _without_ids(call, session, _TAKEN_IN) if is_known else result

    async def _change(self, call: ToolCall, caller: Caller, on_progress: Progress | None) -> dict[str, Any]:
        params = {"name": call.name, "arguments": dict(call.arguments), **call.answers}
        may_be_done, erasing = False, None
        try:
            await self._delivery.deliver_all()
            if call.name in _ERASING:
                erasing = await anyio.to_thread.run_sync(self._answers.begin_erasure)
            may_be_done = True
            result = await self._delivery.ask(
                "tools/call", params, caller, on_progress=on_progress, may_repeat=call.name in _REPEATABLE
            )
            may_be_done = not result.get("isError")
        except HomeForbids as forbidden:
            may_be_done = False
            raise ToolError(f"forbidden: {forbidden.reason}") from forbidden
        except HomeAway as away:
            may_be_done = may_be_done and away.may_be_done  # what waits is delivered before it
            note = "so nothing was changed; call it again when it answers"
            if may_be_done:
                note = "and it is not known whether it was done; look when it answers"
            raise ToolError(f"home_away: {self._is_away(away)}; {call.name} needs it, {note}") from away
        finally:
            if erasing is not None:
                with anyio.CancelScope(shield=True):
                    await self._end_erasure(call.name, erasing, is_done=may_be_done)
        return result

    async def _end_erasure(self, tool: str, erasing: Path, *, is_done: bool) -> None:
        try:
            await anyio.to_thread.run_sync(partial(self._answers.end_erasure, erasing, is_done=is_done))
        except StorageError as error:
            raise StorageError(f"{tool} was sent to the home, but {error}") from error

    async def _count_waiting(self) -> int:
        with suppress(OSError):  # whether they can be counted or not, they wait
            return await anyio.to_thread.run_sync(self._delivery.outbox.count)
        return 0

    def _waits(
        self, call: ToolCall, session: str | None, redacted: Sequence[str], away: HomeAway, waiting: int
    ) -> dict[str, Any]:
        """The answer to a call that waits."""
        in_session = f" for session {session}" if session else ""
        note = (
            f"Kept in this machine's outbox{in_session}, because {self._is_away(away)}. It goes to the home in order "
            f"and once, as soon as that answers; do not send it again. {plural(waiting, 'call')} "
            f"{'waits' if waiting == 1 else 'wait'}."
        )
        lines = [note, *([f"Removed and not stored: {', '.join(redacted)}"] if redacted else [])]
        more = {"redacted": list(redacted)} if redacted else {}
        return _without_ids(call, session, note, "\n".join(lines), **more)

    def _old(self, method: str, kept: KeptAnswer, away: HomeAway, waiting: int, *, is_other: bool) -> dict[str, Any]:
        """A kept answer that says how old it is, where the host looks: in the text and in the structured content."""
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(kept.at_ms / 1_000))
        what = "the last context of this conversation, for another query," if is_other else "its last answer to this,"
        note = f"[{self._is_away(away)}: this is {what} {_age(kept.age_s)} old, of {when}"
        note += f"; {_not_in_it(waiting)}]" if waiting else "]"
        return _with_note(method, kept.result, "old_answer", note)

    def _nothing_kept(self, away: HomeAway, waiting: int) -> str:
        held = f"; {plural(waiting, 'call')} {'waits' if waiting == 1 else 'wait'} for it" if waiting else ""
        return (
            f"home_away: {self._is_away(away)}, and no answer to this was kept{held}. Go on without the memory, go on "
            "recording, and ask again later"
        )

    def _is_away(self, away: HomeAway) -> str:
        origin = self._delivery.home.connection.origin
        hint = "; `kalito-mcp status` says what to do" if isinstance(away, HomeRefuses) else ""
        return f"the home of this memory, {origin}, cannot be used now ({away.reason}{hint})"


def _not_in_it(waiting: int) -> str:
    return f"what {plural(waiting, 'call')} from this machine recorded is not in it yet"


def _with_note(method: str, answer: Mapping[str, Any], field: str, note: str) -> dict[str, Any]:
    """The answer with a note where the host looks: in the text and in the structured content."""
    result = dict(answer)
    if method == "tools/call":
        # The note goes last: an error begins with its code.
        is_error = result.get("isError")
        content = result.get("content")
        result["content"] = [*(content or []), _text(note)] if is_error else _with_line(content, note)
        if isinstance(result.get("structuredContent"), dict):
            result["structuredContent"] = {field: note, **result["structuredContent"]}
    else:
        result["_meta"] = {**(result.get("_meta") or {}), f"kalito/{field}": note}
        if method == "prompts/get":
            result["messages"] = [_message(note), *result.get("messages", [])]
        elif method == "resources/read":
            result["contents"] = [_with_field(one, field, note) for one in result.get("contents", [])]
    return result


_EMPTY: Final[Mapping[str, Any]] = {
    "string": "",
    "integer": 0,
    "number": 0,
    "boolean": False,
    "array": [],
    "object": {},
}


_TAKEN_IN: Final = "The home has taken this in; its answer was lost on the way. Do not send it again."


def _without_ids(
    call: ToolCall, session: str | None, note: str, text: str | None = None, **more: Any
) -> dict[str, Any]:
    """The answer to a kept call, without the home's ids. Its arguments are repeated: some have only certain values."""
    sent = {name: value for name, value in call.arguments.items() if isinstance(value, str)}
    structured = {name: sent.get(name, _EMPTY[kind]) for name, kind in call.required.items()}
    if session and "session_id" in structured:
        structured["session_id"] = session
    return made_here(text or note, {**structured, "outbox": note, **more})


def made_here(text: str, structured: Mapping[str, Any] | None = None, *, is_error: bool = False) -> dict[str, Any]:
    """The result of a tool, not from the home. Invisible characters are escaped, as the home does."""
    result: dict[str, Any] = {"resultType": "complete", "content": [_text(visible(text))], "isError": is_error}
    return result if structured is None else result | {"structuredContent": escape_json(structured)}


def refusal_of(refused: RequestRefused) -> MCPError:
    """The home's error as an error of ours, unchanged."""
    return MCPError(code=refused.code, message=refused.message, data=refused.data)


def _keyed(call: ToolCall, host_session: str | None) -> tuple[dict[str, Any], dict[str, Any]]:
    """The arguments with the session, and with keys where they are missing; and the rest of the request's `_meta` about
    its key.

    The home would create a session for messages without one. If its answer is lost, its id would be unknown.
    """
    arguments = dict(call.arguments)
    if call.name in _WITH_SESSION and not arguments.get("session_id") and host_session:
        arguments["session_id"] = host_session
    elif call.name == "record_messages" and not arguments.get("session_id"):
        arguments["session_id"] = f"session_{secrets.token_hex(8)}"
    if call.name == "record_messages" and isinstance(arguments.get("messages"), list):
        arguments["messages"] = [
            {**one, "client_key": f"{BRIDGE_PREFIX}{secrets.token_hex(12)}"}
            if isinstance(one, dict) and not (one.get("client_key") or one.get("clientKey"))
            else one
            for one in arguments["messages"]
        ]
    elif call.name in _KEYED and not arguments.get("client_key"):
        arguments["client_key"] = f"{BRIDGE_PREFIX}{secrets.token_hex(12)}"
    return arguments, {"kalito/once": secrets.token_hex(16)} if call.name in _ONCE else {}


def _without_secrets(arguments: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The redacted arguments, and the kinds of what was removed. The session's id stays."""
    kept, redacted = cleaned({name: value for name, value in arguments.items() if name not in _AS_THEY_ARE})
    messages = arguments.get("messages")
    if isinstance(messages, list):
        # A client key is not a secret, although its name suggests it: without it, a resend would be stored twice.
        bare = [{name: value for name, value in one.items() if name not in _KEYS} for one in messages]
        bare, found = cleaned(bare)
        redacted += found
        keys = [{name: _key(one[name]) for name in _KEYS if isinstance(one.get(name), str)} for one in messages]
        kept = {**kept, "messages": [one | key for one, key in zip(bare, keys, strict=True)]}
    if isinstance(arguments.get("client_key"), str):
        kept = {**kept, "client_key": _key(arguments["client_key"])}
    if arguments.get("session_id"):
        kept = {**kept, "session_id": checked_handle(arguments["session_id"], "session_id")}
    return kept, redacted


def _key(key: str) -> str:
    """The key as a memory keeps it."""
    return hashed(key) if redact(key).kinds else key


def _newest_context(params: Mapping[str, Any], place: Mapping[str, Any]) -> dict[str, Any] | None:
    """The question under which the newest context of a conversation is kept, whatever it was asked with; None of
    another call. Everything else that it was asked for is the same: another agent or project has another context."""
    arguments = dict(params.get("arguments") or {})
    if params.get("name") != "build_context" or not (arguments.get("session_id") or place["session"]):
        return None
    limits = {name: value for name, value in arguments.items() if name not in _OF_ONE_TURN}
    return {"newest context of": {**place, "format": "text", **limits}}


def _with_line(content: Any, note: str) -> list[Any]:
    """The content with a line before its first text."""
    blocks = list(content) if isinstance(content, list) else []
    if blocks and isinstance(blocks[0], dict) and blocks[0].get("type") == "text":
        return [{**blocks[0], "text": f"{note}\n{blocks[0].get('text', '')}"}, *blocks[1:]]
    return [_text(note), *blocks]


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _with_field(content: Any, field: str, note: str) -> Any:
    """The content of a resource with a field before its first: each of ours is a JSON object."""
    try:
        found = json.loads(content["text"])
    except (KeyError, TypeError, ValueError):
        return content
    return {**content, "text": json_text({field: note, **found})} if isinstance(found, dict) else content


def _message(text: str) -> dict[str, Any]:
    return {"role": "user", "content": {"type": "text", "text": text}}


def _age(seconds: float) -> str:
    for length, name in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
        if seconds >= length:
            return plural(int(seconds // length), name)
    return plural(int(seconds), "second")
