"""Lines about the home of this machine's memory, if that is another machine: its address, and calls that wait."""

import os
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from kalito_mcp.bridge.connection import Connection, read_connection, read_token
from kalito_mcp.bridge.outbox import Entry, Outbox
from kalito_mcp.config.sources import read_sources
from kalito_mcp.errors import ConfigurationError, KalitoError
from kalito_mcp.runtime.database_address import LocalFiles
from kalito_mcp.text.plurals import plural

_WITHIN_S: Final = 10.0


def home_lines(files: LocalFiles | None = None) -> tuple[list[str], bool]:
    """Where the memory of this machine is, whether it answers, and what waits for it; and whether all is well. No line
    if the memory is on this machine and nothing waits."""
    try:
        files = files or read_sources(os.environ).checked_database().files
        connection = read_connection(files.home)
    except ConfigurationError as error:
        return [str(error)], False
    outbox = Outbox(files.home)
    waiting, refused = outbox.count(), len(outbox.refused())
    lines, fault = [], None
    if connection is not None:
        fault = fault_of(connection, files)
        state = "it answers" if fault is None else f"it cannot be used now: {fault}"
        lines.append(f"the memory of this machine is at {connection.url}; {state}")
    if waiting:
        if connection is None:
            until = ", and this machine is not connected: `kalito-mcp connect URL` delivers what waits"
        else:
            until = (
                "; an assistant that is running delivers what waits, or the next one that starts"
                if fault is None
                else ", until it can be used"
            )
        lines.append(f"{plural(waiting, 'call')} {'waits' if waiting == 1 else 'wait'} for the home{until}")
    if refused:
        lines.append(f"the home refused {plural(refused, 'call')} that waited for it: `kalito-mcp home` shows why")
    return lines, fault is None and not refused and (connection is not None or not waiting)


def fault_of(connection: Connection, files: LocalFiles) -> str | None:
    """Why the home does not answer this machine, in words; None if it does."""
    import anyio  # noqa: PLC0415 - keeps --help quick

    async def ask() -> str | None:
        with anyio.move_on_after(_WITHIN_S):
            return await checked(connection, read_token(files.home, os.environ, connection.origin))
        return f"no answer within {_WITHIN_S:g} s"

    try:
        return anyio.run(ask)
    except KalitoError as error:
        return str(error)


async def checked(connection: Connection, token: str) -> str | None:
    """Ask the home whether it takes what a bridge sends. What is wrong, in words; None if it does."""
    from kalito_mcp.bridge.home import Caller, Home  # noqa: PLC0415 - as above
    from kalito_mcp.bridge.replies import HomeAway, RequestRefused  # noqa: PLC0415 - as above

    home = Home(connection, partial(str, token))
    async with home.open():
        try:
            # A report without an event changes nothing. A home that knows no bridges does not know the tool.
            taken = await home.request(
                "tools/call", {"name": "hook_event", "arguments": {}}, Caller(), meta={"kalito/report": {}}
            )
        except HomeAway as away:
            return away.reason
        except RequestRefused as refused:
            return f"the kalito there is too old to be a home ({refused.message}); upgrade it"
    if taken.get("isError"):
        return f"it refuses what this machine records: {_text_of(taken)}"
    return None


def is_connected(files: LocalFiles) -> bool:
    """Whether the memory is on another machine, or whether that cannot be read."""
    try:
        return read_connection(files.home) is not None
    except ConfigurationError:
        return True


def leaving_lines(files: LocalFiles) -> list[str]:
    """A sentence on what happens when this machine leaves its home."""
    folder = files.home
    waiting = Outbox(folder).count()
    lines = [f"  {folder} (deleted): where the home is, the token, and the answers that were kept"]
    if waiting:
        stays = "waits for the home and stays" if waiting == 1 else "wait for the home and stay"
        lines.append(
            f"  {plural(waiting, 'call')} {stays} in {folder}; `kalito-mcp connect URL` delivers what waits later"
        )
    return lines


def entry_line(entry: Entry) -> str:
    """A call that waits, without its words."""
    given = entry.content
    params, meta = _object(given.get("params")), _object(given.get("meta"))
    name = str(params.get("name", "?"))
    report = meta.get("kalito/report")
    if isinstance(report, dict):
        name = f"{report.get('event')} of {report.get('host')}"
    session = _object(params.get("arguments")).get("session_id")
    place = f", session {session}" if session else ""
    return f"{entry.id}  {name}{place}" + (f": {entry.reason}" if entry.reason else "")


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _text_of(result: Mapping[str, Any]) -> str:
    content = result.get("content")
    first = content[0] if isinstance(content, list) and content else {}
    return str(first.get("text", "")) if isinstance(first, dict) else ""
