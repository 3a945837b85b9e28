"""Sends a prompt through everything between a host and its database, as the host would, and takes it out again.

The server is started by the host's own entry, and the hook runs by the host's own line. Both get the environment of
this process, as from a host that was started in this terminal.
"""

import json
import os
import secrets
import shutil
import subprocess
import tempfile
import time
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TextIO

import anyio
import anyio.to_thread
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.stdio import stdio_client

from kalito_mcp.cli.serve import command as serve
from kalito_mcp.config.settings import load_settings
from kalito_mcp.config.sources import read_sources
from kalito_mcp.errors import KalitoError
from kalito_mcp.hosts.plans import state_of
from kalito_mcp.hosts.plugins import NOT_ON_PATH, TWICE
from kalito_mcp.hosts.prompts import PAYLOADS
from kalito_mcp.hosts.wired import PromptHook, ServerStart, prompt_hook_of, server_of, shown_command, why_hooks_are_off
from kalito_mcp.projects import is_ignored, project_of
from kalito_mcp.switch import read_switch
from kalito_mcp.text.plurals import plural
from kalito_mcp.wiring import open_memory

if TYPE_CHECKING:
    from kalito_mcp.config.settings import Settings
    from kalito_mcp.hosts.facts import Host
    from kalito_mcp.hosts.places import Places
    from kalito_mcp.memory import Memory
    from kalito_mcp.runtime.database_address import DatabaseAddress, LocalFiles

SESSION: Final = "kalito-doctor"
_ANSWERS_WITHIN_S: Final = 20.0
_LISTENS_WITHIN_S: Final = 10.0
_HOOK_ENDS_WITHIN_S: Final = 10.0
_ARRIVES_WITHIN_S: Final = 10.0
_LOOK_EVERY_S: Final = 0.05
_LEFT_BY_ANOTHER_MS: Final = 3_600_000
"""A prompt of this age is what a doctor left that was stopped."""


@dataclass(frozen=True, slots=True)
class Link:
    """One link between a host and its database, whether it is whole, and what to do if it is not."""

    name: str
    is_whole: bool
    detail: str


class _Broken(Exception):
    """A link is broken."""

    def __init__(self, name: str, detail: str) -> None:
        super().__init__(detail)
        self.link = Link(name, is_whole=False, detail=detail)


async def check_host(host: "Host", places: "Places", environment: Mapping[str, str], folder: Path) -> list[Link]:
    """The links of one host in their order, up to the first that is broken. `folder` is where the person works."""
    check = _Check(host, places, environment, folder)
    try:
        await check.run()
    except _Broken as broken:
        check.links.append(broken.link)
    return check.links


class _Check:
    """The check of one host: its links so far."""

    def __init__(self, host: "Host", places: "Places", environment: Mapping[str, str], folder: Path) -> None:
        self.links: list[Link] = []
        self._host = host
        self._places = places
        self._environment = dict(environment)
        self._folder = folder
        self._marker = secrets.token_hex(4)
        self._is_sent = False

    async def run(self) -> None:
        """Raises _Broken at the first broken link."""
        start, hook = self._configuration()
        self._program("program", start.command)
        if hook is not None and hook.program is not None:
            self._program("hook program", hook.program)
        environment = {**self._environment, **start.variables}
        settings = self._settings(start, environment)
        if hook is not None:
            self._switch(settings)
        with _trace_kept(settings.database.files.trace(self._host.key)):
            try:
                await self._through_server(start, hook, environment, settings)
            finally:
                if self._is_sent:
                    with anyio.CancelScope(shield=True):
                        await self._clean_up(settings)

    def _configuration(self) -> tuple[ServerStart, PromptHook | None]:
        host, install = self._host, f"run `kalito-mcp install {self._host.key}`"
        try:
            start, hook = server_of(host, self._places), prompt_hook_of(host, self._places)
            off = why_hooks_are_off(host, self._places)
        except KalitoError as error:
            raise _Broken("configuration", str(error)) from error
        if start is None:
            raise _Broken("configuration", f"{host.entry.where(self._places)} has no entry of kalito; {install}")
        if state_of(host, self._places).is_double:
            raise _Broken("configuration", f"{TWICE}; run `kalito-mcp uninstall {host.key}`")
        if start.is_off:
            raise _Broken("configuration", f"kalito is switched off in {start.file}")
        if hook is None:
            self._whole("configuration", f"{start.file}; no hooks: the assistant calls the tools itself")
        elif off is not None:
            raise _Broken("configuration", off)
        else:
            self._whole("configuration", " and ".join(dict.fromkeys((str(start.file), str(hook.file)))))
        return start, hook

    def _program(self, name: str, program: str) -> None:
        path = self._environment.get("PATH")
        if shutil.which(program, path=path) is not None:
            self._whole(name, program)
        elif Path(program).exists():
            raise _Broken(name, f"{program} cannot be executed; run `kalito-mcp install` again, or chmod +x it")
        else:
            advice = "is not there; run `kalito-mcp install` again" if Path(program).is_absolute() else NOT_ON_PATH
            raise _Broken(name, f"{program} {advice}")

    def _settings(self, start: ServerStart, environment: Mapping[str, str]) -> "Settings":
        """The settings of the server that the host starts."""
        words = start.arguments[start.arguments.index("serve") + 1 :] if "serve" in start.arguments else ()
        given = serve.make_context("serve", list(words), resilient_parsing=True).params
        try:
            return load_settings(environment, config=given.get("config"), database=given.get("database"))
        except KalitoError as error:
            raise _Broken("settings", str(error)) from error

    def _switch(self, settings: "Settings") -> None:
        try:
            switch = read_switch(settings.database.files.switch)
        except KalitoError as error:
            raise _Broken("memory", str(error)) from error
        if switch.is_paused(time.time_ns() // 1_000_000):
            raise _Broken("memory", "it is paused, and nothing is remembered; `kalito-mcp resume` ends that")
        if switch.is_excluded(str(self._folder)):
            raise _Broken(
                "memory", f"nothing is remembered in {self._folder}; `kalito-mcp exclude` lists the folders, and "
                "`--remove FOLDER` takes one back"
            )  # fmt: skip
        if is_ignored(project_of(self._folder, settings.projects), settings.projects):
            raise _Broken("memory", f"nothing is remembered in {self._folder}: the setting memory.ignored names it")
        if switch.is_excluded(str(self._places.home)):
            return
        # The current folder must not become a project by accident.
        self._folder = Path(self._places.home)

    async def _through_server(
        self, start: ServerStart, hook: PromptHook | None, environment: dict[str, str], settings: "Settings"
    ) -> None:
        listening = _servers(settings.database.files)
        broken: _Broken | None
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, _log_in(Path(folder)) as log:
            async with AsyncExitStack() as stack:
                try:
                    client = await stack.enter_async_context(_connected(start, environment, log))
                    listed = await client.list_tools()
                except (OSError, MCPError, TimeoutError, ExceptionGroup) as error:
                    broken = _Broken("server", _reason(error, log))
                else:
                    broken = await self._asked(client, listed.tools, hook, settings, listening, log)
            if broken is not None:
                raise broken

    async def _asked(
        self,
        client: Client,
        tools: list[Any],
        hook: PromptHook | None,
        settings: "Settings",
        listening: set[str],
        log: TextIO,
    ) -> _Broken | None:
        """The fault, returned and not raised: an exception that leaves the client's block becomes a group."""
        self._whole("server", f"starts, and lists {plural(len(tools), 'tool')}")
        if hook is None:
            return None
        try:
            async with open_memory(settings=settings) as opened:
                memory = await opened.in_project(None)
                await self._prompt(client, hook, memory, settings.database, listening, log)
        except _Broken as broken:
            return broken
        except KalitoError as error:
            return _Broken("database", str(error))
        return None

    async def _prompt(
        self,
        client: Client,
        hook: PromptHook,
        memory: "Memory",
        database: "DatabaseAddress",
        listening: set[str],
        log: TextIO,
    ) -> None:
        """Send the prompt, and find it."""
        said = await self._sent(client, hook, database, listening, log)
        if not await self._has_arrived(memory):
            raise _Broken(*self._lost(database, said, log))
        self._whole("hook", f"{hook.event} {shown_command(hook)}")
        self._whole("database", f"the prompt is in {database}")

    async def _clean_up(self, settings: "Settings") -> None:
        """Erase the prompt. The server has ended by now, so nothing brings it back."""
        for file in _in_spool(settings.database.files, self._marker):
            file.unlink(missing_ok=True)
        try:
            async with open_memory(settings=settings) as opened:
                memory = await opened.in_project(None)
                found = await self._found(memory, with_left_ones=True)
                if found:
                    await memory.purge(found)
        except KalitoError as error:
            raise _Broken("clean-up", f"the prompt may be in {settings.database} still: {error}") from error
        if found:
            self._whole("clean-up", f"the prompt is erased again; only the empty session {SESSION!r} stays")

    async def _sent(
        self, client: Client, hook: PromptHook, database: "DatabaseAddress", listening: set[str], log: TextIO
    ) -> str:
        """Report a prompt as the host does. Returns what the hook wrote to stderr."""
        text = f"kalito-mcp doctor looks whether this prompt arrives: {self._marker}"
        payload = PAYLOADS[self._host.key](SESSION, str(self._folder), text)
        self._is_sent = True
        if hook.tool_input is not None:
            try:
                result = await client.call_tool("hook_event", hook.arguments(payload))
            except MCPError as error:
                raise _Broken("hook", f"{error}; run `kalito-mcp install {self._host.key}` again") from error
            if result.is_error:
                raise _Broken("hook", " ".join(str(getattr(block, "text", "")) for block in result.content))
            return ""
        hears = read_sources(self._environment).checked_database()
        if hears != database:
            raise _Broken(
                "hook", f"it reports to {hears}, but the server remembers in {database}: set the database in the "
                "configuration file, which both read, instead of in the entry"
            )  # fmt: skip
        if not await _has_new_server(database.files, listening):
            raise _Broken("server", f"hooks do not find it in {database.files.hooks}{_last_line(log)}")
        return await self._run(hook, json.dumps(payload))

    async def _run(self, hook: PromptHook, payload: str) -> str:
        # subprocess.run, because a hook that ends before it has read its stdin is no error there.
        run = partial(
            subprocess.run,
            hook.line or list(hook.argv),
            shell=bool(hook.line),
            input=payload,
            env=self._environment,
            cwd=self._folder,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=_HOOK_ENDS_WITHIN_S,
            check=False,
        )
        try:
            ended = await anyio.to_thread.run_sync(run)
        except subprocess.TimeoutExpired:
            raise _Broken(
                "hook", f"it does not end within {_HOOK_ENDS_WITHIN_S:.0f} s: {shown_command(hook)}"
            ) from None
        except OSError as error:
            raise _Broken("hook", f"it cannot be run: {error}") from error
        said = " ".join(ended.stderr.split())
        if ended.returncode != 0:
            raise _Broken("hook", f"it ends with {ended.returncode}: {said or shown_command(hook)}")
        return said

    def _lost(self, database: "DatabaseAddress", said: str, log: TextIO) -> tuple[str, str]:
        """The broken link behind a prompt that did not arrive, and what is known of it."""
        left = _in_spool(database.files, self._marker)
        if left and left[0].suffix == ".broken":
            return "database", f"the server cannot record the prompt{_last_line(log)}"
        if left and left[0].suffix == ".json":
            return "server", f"no server took the prompt out of {left[0].parent}{_last_line(log)}"
        if left:
            return "database", f"the server took the prompt and has not recorded it; is {database} busy?"
        if said:
            return "hook", said
        return "hook", f"it says that all went well, but the prompt is not in {database}{_last_line(log)}"

    async def _has_arrived(self, memory: "Memory") -> bool:
        """Whether the prompt is in the database, at once or soon."""
        with anyio.move_on_after(_ARRIVES_WITHIN_S):
            for _ in count():
                if await self._found(memory):
                    return True
                await anyio.sleep(_LOOK_EVERY_S)
        return False

    async def _found(self, memory: "Memory", *, with_left_ones: bool = False) -> list[str]:
        """The ids of the prompt of this check and, if wanted, of what an earlier one has left."""
        before = memory.place.clock.now_ms() - _LEFT_BY_ANOTHER_MS if with_left_ones else 0
        found: list[str] = []
        for session in await memory.conversations.recent(prefix=SESSION):
            said = (await memory.conversations.transcript(session.id)).messages
            found += [one.record_id for one in said if self._marker in one.text or one.created_at < before]
        return found

    def _whole(self, name: str, detail: str) -> None:
        self.links.append(Link(name, is_whole=True, detail=detail))


@contextmanager
def _trace_kept(file: Path) -> Iterator[None]:
    """Leaves the trace of a host's hooks as it was: `status` is to speak of what the host itself sent."""
    heard_ns = None
    with suppress(OSError):
        heard_ns = file.stat().st_mtime_ns
    try:
        yield
    finally:
        with suppress(OSError):
            if heard_ns is None:
                file.unlink(missing_ok=True)
            else:
                os.utime(file, ns=(heard_ns, heard_ns))


@asynccontextmanager
async def _connected(start: ServerStart, environment: dict[str, str], log: TextIO) -> AsyncGenerator[Client]:
    server = StdioServerParameters(command=start.command, args=list(start.arguments), env=environment)
    async with Client(stdio_client(server, errlog=log), read_timeout_seconds=_ANSWERS_WITHIN_S) as client:
        yield client


def _log_in(folder: Path) -> TextIO:
    """A new file for what a server writes to stderr."""
    return (folder / "stderr").open("w+", encoding="utf-8", errors="replace")


def _reason(error: BaseException, log: TextIO) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, TimeoutError):
        return f"it does not answer within {_ANSWERS_WITHIN_S:.0f} s{_last_line(log)}"
    return f"it does not start: {error or type(error).__name__}{_last_line(log)}"


def _last_line(log: TextIO) -> str:
    """The server's last log line, for the end of a sentence."""
    log.seek(0)
    lines = [line.strip() for line in log.read().splitlines() if line.strip()]
    return f" ({lines[-1].removeprefix('kalito-mcp: ')})" if lines else ""


def _servers(files: "LocalFiles") -> set[str]:
    """The servers that say where hooks find them."""
    return {file.name for file in files.hooks.glob("server-*.json")}


async def _has_new_server(files: "LocalFiles", before: set[str]) -> bool:
    """Whether hooks find a server that was not there before, at once or soon."""
    with anyio.move_on_after(_LISTENS_WITHIN_S):
        for _ in count():
            if _servers(files) - before:
                return True
            await anyio.sleep(_LOOK_EVERY_S)
    return False


def _in_spool(files: "LocalFiles", marker: str) -> list[Path]:
    """The files of the spool with this prompt."""
    found: list[Path] = []
    for file in files.spool.glob("*"):
        with suppress(OSError):
            if marker in file.read_text(encoding="utf-8", errors="replace"):
                found.append(file)
    return found
