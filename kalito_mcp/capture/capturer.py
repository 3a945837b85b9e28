"""Takes what hooks report into the memory, and answers with what to put into the prompt."""

import logging
import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import anyio
from anyio.abc import TaskGroup

from kalito_mcp.capture.answers import answer_for
from kalito_mcp.capture.conversations import MOST_CONTINUED, Conversation, Conversations, name_of
from kalito_mcp.capture.events import EventKind, HookEvent, read_event
from kalito_mcp.capture.transcripts import with_reply
from kalito_mcp.capture.work import work_note
from kalito_mcp.domain.records import HOOK_KEY, NewMessage, Origin, Role
from kalito_mcp.domain.scope import PERSONAL
from kalito_mcp.errors import Conflict, InvalidInput, KalitoError, SessionFinalized, SessionNotFound, StorageError
from kalito_mcp.safety.redaction import cleaned, usable_handle

if TYPE_CHECKING:
    from kalito_mcp.memory import Memory

_log: Final = logging.getLogger("kalito.capture")
_SUMMARIES_TOKENS: Final = 100_000
_RECORDING_S: Final = 0.03
"""How long a hook waits for the recording, after the time for what is put into the prompt."""
_MOST_OPENING_S: Final = 2.0
"""How long the first prompt of a server waits, if that is longer: for the memory to open, and for a search with nothing
in memory yet."""
_MARK: Final = "… [the rest was too long to be kept]"


class Capture:
    """Takes reports of hooks, of any host and conversation. `memory` waits until the memory is open.

    A report is `{host, event, payload, at_ms, id}`: the names of the host and of its event, what the host gave the
    hook, when that was, and what makes this report one, however often it arrives. The last two may be missing.
    """

    def __init__(self, memory: "Callable[[], Awaitable[Memory]]") -> None:
        self._memory = memory
        self.heard: Callable[[str], object] = _ignore
        """Called with the host of each report that was taken."""
        self.keep: Callable[[Mapping[str, Any]], object] | None = None
        """Keeps a report that could not be recorded in time, to be taken later. Without it, a hook waits."""
        self.catch_up: Callable[[Mapping[str, Any]], Awaitable[None]] = _nothing_waits
        """Waits until what was kept of the same conversation before this report is recorded."""
        self.tasks: TaskGroup | None = None
        """Where the recording goes on when a hook waits no longer. Without it, a hook waits."""
        self.folder: Path | None = None
        """Where what assistants see is shared with other servers."""
        self._conversations = Conversations()
        self._is_warm = False
        """Whether a prompt has been searched for."""

    async def take(self, report: Mapping[str, Any], *, is_late: bool = False) -> str:
        """Record the report of a hook. Returns the hook's output for the host: empty if there is nothing to say, or if
        it `is_late` and no hook waits for it.

        In a project that is not remembered, or during a pause, it does nothing and raises nothing.

        Raises:
            KalitoError: it could not be recorded. After a StorageError it may be tried again.
        """
        host, name, payload = str(report.get("host")), str(report.get("event")), report.get("payload")
        given: Mapping[str, Any] | None = payload if isinstance(payload, dict) else {}
        if is_late and host == "copilot":
            given = with_reply(name, given or {})
        event = None if given is None else read_event(host, name, given)
        if event is None:
            return ""
        event = replace(event, session_id=usable_handle(event.session_id, event.host))
        if not _id_of(report) and event.id is None:
            report = {**report, "id": secrets.token_hex(8)}
        if is_late or self.keep is None:
            return await self._recorded_and_answered(await self._memory(), report, event, is_late=is_late)
        until_s = anyio.current_time() + _MOST_OPENING_S
        memory = await self._opened_in_time()
        if memory is None:
            self.keep(report)
            return ""
        if self.tasks is None:
            await self.catch_up(report)
            return await self._recorded_and_answered(memory, report, event, is_late=False)
        wait_s = memory.hooks.policy.timeout_s
        if event.kind is EventKind.PROMPT:
            wait_s = self._wait_s(memory, until_s - anyio.current_time())
        answer = await self._answered_in_time(self.tasks, memory, report, event, wait_s + _RECORDING_S)
        if answer is None:
            # If it is recorded after all, this has the same key, so it is not recorded twice.
            self.keep({"at_ms": memory.place.clock.now_ms(), **report})
        return answer or ""

    async def _answered_in_time(
        self, tasks: TaskGroup, memory: "Memory", report: Mapping[str, Any], event: HookEvent, wait_s: float
    ) -> str | None:
        """The answer; None if it is not ready yet, or recording failed and may be tried again. It goes on in `tasks`,
        unless an earlier event of the conversation still waits."""
        until_s = anyio.current_time() + wait_s
        with anyio.move_on_after(wait_s) as limit:
            await self.catch_up(report)
        if limit.cancelled_caught:
            return None
        answers: list[str] = []
        faults: list[Exception] = []
        is_done = anyio.Event()

        async def record() -> None:
            try:
                answers.append(await self._recorded_and_answered(memory, report, event, is_late=False))
            except StorageError as error:
                _log.warning("an event of %s is kept for later: %s", event.host, error)
            except Exception as error:  # the caller raises it
                faults.append(error)
            is_done.set()

        tasks.start_soon(record)
        with anyio.move_on_after(until_s - anyio.current_time()):
            await is_done.wait()
        if faults:
            raise faults[0]
        return answers[0] if answers else None

    def _wait_s(self, memory: "Memory", left_s: float = _MOST_OPENING_S) -> float:
        """How long the search for a prompt may take. For the first prompt, that is the rest of its time."""
        return memory.hooks.policy.timeout_s if self._is_warm else max(memory.hooks.policy.timeout_s, left_s)

    async def _opened_in_time(self) -> "Memory | None":
        """The memory; None if it is not open in time, such as one that another program has locked."""
        try:
            with anyio.move_on_after(_MOST_OPENING_S):
                return await self._memory()
        except StorageError as error:
            _log.warning("an event is kept for later: %s", error)
        return None

    def go_on_in(self, tasks: TaskGroup | None) -> None:
        """From now on, let recordings go on in these tasks when a hook waits no longer; with None, let hooks wait."""
        self.tasks = tasks

    def share_in(self, folder: Path) -> None:
        """From now on, share with other servers what assistants see, in files in this folder."""
        self.folder = folder
        self._conversations.keep_in(folder)

    async def seen_after(self, session_id: str, memory: "Memory") -> Mapping[str, int]:
        """The messages of this session that the assistant still sees (see `Conversation`). Empty if no hook has
        reported it."""
        everywhere = memory if memory.place.limits.project is not None else await memory.in_project(None)
        conversation = await self._conversations.find(name_of(session_id), everywhere)
        return conversation.seen_after if conversation.is_heard else {}

    def session_of(self, name: str) -> str:
        """The session into which the conversation of this name is recorded now."""
        return self._conversations.session_of(name)

    def forget(self) -> None:
        """Know of no conversation, as after a restart."""
        self._conversations.clear()

    async def _recorded_and_answered(
        self, opened: "Memory", report: Mapping[str, Any], event: HookEvent, *, is_late: bool
    ) -> str:
        async with self._conversations.turn(event.session_id):
            return await self._recorded_in_turn(opened, report, event, is_late=is_late)

    async def _recorded_in_turn(
        self, opened: "Memory", report: Mapping[str, Any], event: HookEvent, *, is_late: bool
    ) -> str:
        at_ms = report.get("at_ms")
        moment = at_ms if is_late and isinstance(at_ms, int) else None
        key = _key_of(event) or f"{HOOK_KEY}{_id_of(report)}"
        try:
            memory = await in_project_of_folder(opened, event.folder)
            memory.place.check_remembered(event.folder)
            everywhere = opened if opened.place.limits.project is not None else await opened.in_project(None)
            conversation = await self._conversations.find(event.session_id, everywhere)
            # An assistant that goes into another folder does not take its conversation with it.
            memory = await memory.in_project_of(conversation.session_id)
            memory.place.check_remembered()
            conversation.is_heard = True
            own = conversation.sub_agents.ascribed(event, key, is_late=is_late)
            if own is None:
                self._conversations.keep(conversation)
                return ""
            most = memory.max_text_bytes
            event = replace(own, text=storable(own.text, most), unascribed=storable(own.unascribed, most))
            if is_late and (unread := conversation.take_back(key)):
                memory.hooks.take_back(conversation.session_id, unread)
            with conversation.giving(key):
                text = await self._taken(memory, event, conversation, key, moment, is_late=is_late)
            self._conversations.keep(conversation)
        except (SessionNotFound, Conflict) as error:
            _log.debug("nothing is kept of an event %s of %s: %s", event.name, event.host, error)
            return ""
        self.heard(event.host)
        return answer_for(event, text)

    async def _taken(
        self,
        memory: "Memory",
        event: HookEvent,
        conversation: Conversation,
        key: str,
        moment: int | None,
        *,
        is_late: bool,
    ) -> str:
        """Record the event, and return what to put into the prompt."""
        match event.kind:
            case EventKind.STARTED if not is_late:
                return await self._known(memory, event, conversation)
            case EventKind.PROMPT:
                # Before it is recorded: nothing is more like a prompt than itself, and the assistant sees that.
                is_asked = not is_late and bool(event.text)
                found = [await self._known(memory, event, conversation)] if is_asked else []
                found += [await self._injected(memory, event, conversation)] if is_asked else []
                await self._record(memory, event, conversation, _messages(event, key, moment))
                return "\n".join(filter(None, found))
            case EventKind.REPLY:
                reply = NewMessage(Role.ASSISTANT, event.text, client_key=key, created_at=moment)
                await self._record_work(memory, event, conversation, key, moment, reply)
            case EventKind.TOOL if event.tool is not None:
                conversation.add_work(key, event.tool)
            case EventKind.COMPACTING:
                await self._record_work(memory, event, conversation, key, moment)
                session = await memory.conversations.get(conversation.session_id)
                conversation.was_compacted(0 if session is None else session.message_count)
            case EventKind.COMPACTED:
                conversation.has_known = conversation.is_resumed = False
                if event.text.strip():
                    await self._record_summary(memory, event, conversation, key, moment)
            case EventKind.ENDED:
                await self._record_work(memory, event, conversation, key, moment)
                if event.is_over:
                    await memory.finalize_session(conversation.session_id)
        return ""

    async def _record(
        self, memory: "Memory", event: HookEvent, conversation: Conversation, messages: list[NewMessage]
    ) -> None:
        """Record messages, in the session that follows if this one was finalized."""
        for _ in range(MOST_CONTINUED):
            session_id = conversation.session_id
            try:
                await memory.record_messages(session_id, messages, client=event.host)
            except SessionFinalized:
                conversation.go_on_after(session_id)
                continue
            return

    async def _record_work(
        self,
        memory: "Memory",
        event: HookEvent,
        conversation: Conversation,
        key: str,
        moment: int | None,
        reply: NewMessage | None = None,
    ) -> None:
        """Record what the assistant did since its last reply, and its reply, if there is one."""
        done = dict(conversation.work)
        note = work_note(list(done.values()))
        of_tools = NewMessage(
            Role.SYSTEM, note, client_key=f"{key}:{_hash_of(note)}:work", created_at=moment, origin=Origin.TOOL
        )
        messages = [*([of_tools] if note else []), *([reply] if reply is not None else [])]
        if messages:
            await self._record(memory, event, conversation, messages)
        for report_id in done:  # not what was added meanwhile
            conversation.work.pop(report_id, None)

    async def _record_summary(
        self, memory: "Memory", event: HookEvent, conversation: Conversation, key: str, moment: int | None
    ) -> None:
        """Keep the host's summary: as the session's summary if it is the first. Otherwise as a message, because it
        covers the whole conversation, and summarised messages get no second summary."""
        session_id = conversation.session_id
        stored = (await memory.manager.build_context(session_id, _SUMMARIES_TOKENS)).summaries
        if cleaned(event.text.strip())[0] in [one.summary for one in stored]:
            return
        try:
            if not stored and await memory.conversations.adopt_summary(session_id, event.text) is not None:
                return
        except SessionFinalized:
            pass  # it was resumed to be compacted, and goes on with its summary
        summary = NewMessage(
            Role.SYSTEM, event.text, client_key=f"{key}:summary", created_at=moment, origin=Origin.TOOL
        )
        await self._record(memory, event, conversation, [summary])

    async def _injected(self, memory: "Memory", event: HookEvent, conversation: Conversation) -> str:
        """Records that matter for a prompt, if they are found in time."""
        try:
            with anyio.fail_after(self._wait_s(memory)):
                found = await memory.hooks.inject(
                    conversation.session_id,
                    event.text,
                    seen_after=conversation.seen_after,
                    shown=frozenset(conversation.shown),
                    client=event.host,
                )
        except TimeoutError:
            _log.debug("no context in time for a prompt of %s", event.host)
            return ""
        except KalitoError as error:
            _log.warning("no context for a prompt of %s: %s", event.host, error)
            return ""
        finally:
            self._is_warm = True
        conversation.shown.update(found.record_ids)
        return found.text

    async def _known(self, memory: "Memory", event: HookEvent, conversation: Conversation) -> str:
        """What is known of the person and the project, once a conversation."""
        if conversation.has_known:
            return ""
        try:
            known = await memory.hooks.inject_known(
                conversation.session_id,
                seen_after=conversation.seen_after,
                client=event.host,
                is_seen=conversation.is_resumed,
            )
        except KalitoError as error:
            _log.warning("what is known is left out of a prompt: %s", error)
            return ""
        conversation.has_known = True
        conversation.shown.update(known.record_ids)
        return "" if conversation.is_resumed else known.text


async def in_project_of_folder(memory: "Memory", folder: str | None) -> "Memory":
    """The memory for the project of a folder. A folder whose name cannot be a project's gets another name. Without a
    folder, a memory that is limited to a project stays in it."""
    if folder is None and memory.place.limits.project is not None:
        return memory
    try:
        return await memory.in_project(folder or PERSONAL)
    except InvalidInput:
        return await memory.in_project(f"folder-{_hash_of(folder or '')}")


def storable(text: str, max_bytes: int) -> str:
    """The text without what no database stores, cut if it is too long."""
    text = text.replace("\0", "\ufffd")
    if not text.isascii():
        text = text.encode("utf-8", "replace").decode()
    if len(text) <= max_bytes and len(text.encode()) <= max_bytes:
        return text
    mark = _MARK.encode()
    return (text.encode()[: max_bytes - len(mark)] + mark).decode("utf-8", "ignore")


def _messages(event: HookEvent, key: str, moment: int | None) -> list[NewMessage]:
    """The messages of a prompt: what may not be the person's is ascribed to nobody, and comes first."""
    said = {Role.SYSTEM: event.unascribed, Role.USER: event.text}
    keys = {Role.SYSTEM: f"{key}:unascribed", Role.USER: key}
    return [NewMessage(role, text, client_key=keys[role], created_at=moment) for role, text in said.items() if text]


def _hash_of(text: str) -> str:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()


def _ignore(_what: object) -> None:
    """Do nothing."""


async def _nothing_waits(_report: object) -> None:
    """Do nothing."""


def _id_of(report: Mapping[str, Any]) -> str:
    report_id = report.get("id")
    return report_id if isinstance(report_id, str) else ""


def _key_of(event: HookEvent) -> str:
    """The identity of an event, if the host names its turn or moment: a host may report one reply twice, or run one
    hook from two of its files. Empty without either. Secrets do not count: events that wait for a server have none."""
    if event.id is None:
        return ""
    words = cleaned(event.text or event.unascribed)[0]
    return f"{HOOK_KEY}{event.host}:{_hash_of(event.id)}:{event.kind}:{_hash_of(words)}"


def report_of_call(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The report in the arguments of the tool `hook_event`."""
    payload = {name: value for name, value in arguments.items() if value not in (None, "")}
    host, event = payload.pop("host", None), payload.pop("event", None)
    return {"host": host, "event": event, "payload": payload}
