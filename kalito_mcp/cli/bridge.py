"""`kalito-mcp serve` on a machine whose memory is on another one: what the host calls is passed on."""

import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio

from kalito_mcp.bridge.answers import Answers
from kalito_mcp.bridge.connection import Connection, read_token
from kalito_mcp.bridge.delivery import Delivery
from kalito_mcp.bridge.home import Caller, Home
from kalito_mcp.bridge.hooks import Hooks
from kalito_mcp.bridge.outbox import Outbox
from kalito_mcp.bridge.passing import Passing
from kalito_mcp.bridge.places import MachinePlaces
from kalito_mcp.bridge.replies import HomeAway, RequestRefused
from kalito_mcp.bridge.server import Host, build_bridge
from kalito_mcp.capture.listener import Listener
from kalito_mcp.cli.options import settings_of
from kalito_mcp.config.sources import PREFIX, read_sources
from kalito_mcp.domain.scope import PERSONAL
from kalito_mcp.domain.validation import LimitsPolicy
from kalito_mcp.projects import ProjectPolicy, is_path, project_of, project_of_host, working_folder
from kalito_mcp.runtime.database_address import LocalFiles
from kalito_mcp.server.first_answers import switches
from kalito_mcp.server.stdio import serve_stdio

if TYPE_CHECKING:
    from kalito_mcp.server.build import KalitoServer
    from kalito_mcp.server.first_answers import Begun

_SECTIONS: Final = ("projects", "limits")


async def serve_bridge(
    database: str | None,
    config: Path | None,
    project: str | None,
    connection: Connection,
    begun: "Begun | None",
    leave_trace: Callable[[LocalFiles, str], None],
) -> None:
    """Serve the host until it leaves. Hooks are listened to, and what waits is delivered, for as long."""
    files = read_sources(os.environ, config=config, database=database).checked_database().files
    policy, limits = _policies(database, config)
    places = MachinePlaces(files.switch, policy, _project_here(project, policy))
    home = Home(connection, partial(read_token, files.home, os.environ, connection.origin))
    delivery = Delivery(home, Outbox(files.home), places.is_paused)
    hooks = Hooks(delivery, partial(_places_of, files.switch, policy), files.switch)
    hooks.heard = partial(leave_trace, files)
    session = os.environ.get("KALITO_SESSION") or os.environ.get("CLAUDE_CODE_SESSION_ID")
    host = Host(session, places.project)
    server = build_bridge(
        Passing(delivery, Answers(files.answers), places, limits), hooks, host, **switches(os.environ)
    )
    listener = Listener(files, hooks.take)
    hooks.catch_up, hooks.keep = listener.catch_up, listener.keep
    async with home.open(), _during(server, delivery, listener):
        await serve_stdio(server, begun, delivery.keep_all)


@asynccontextmanager
async def _during(server: "KalitoServer", delivery: Delivery, listener: Listener) -> AsyncIterator[None]:
    """Deliver, listen and notify the host during the block."""
    async with anyio.create_task_group() as tasks:
        server.subscriptions.senders = tasks
        tasks.start_soon(_connect, delivery)
        tasks.start_soon(delivery.run)
        tasks.start_soon(listener.run)
        yield
        tasks.cancel_scope.cancel()


async def _connect(delivery: Delivery) -> None:
    """Connect before the first call, which would otherwise wait for it."""
    with suppress(HomeAway, RequestRefused):
        await delivery.ask("server/discover", {}, Caller())


def _places_of(switch: Path, policy: ProjectPolicy, folder: str | None) -> MachinePlaces:
    """The places of a host that works in this folder, or in none."""
    return MachinePlaces(switch, policy, PERSONAL if folder is None else project_of(folder, policy))


def _policies(database: str | None, config: Path | None) -> tuple[ProjectPolicy, LimitsPolicy]:
    """The settings of projects and of limits on this machine. The policies are imported only if one of these is set."""
    sources = read_sources(os.environ, config=config, database=database)
    prefixes = tuple(f"{PREFIX}{section.upper()}_" for section in _SECTIONS)
    if any(section in sources.sections for section in _SECTIONS) or any(
        name.startswith(prefixes) for name in sources.variables
    ):
        settings = settings_of(database, config)
        return settings.projects, settings.limits
    return ProjectPolicy(), LimitsPolicy()


def _project_here(project: str | None, policy: ProjectPolicy) -> str:
    """The project of the host, as it is called on this machine."""
    named = project or os.environ.get("KALITO_PROJECT")
    if not named:
        return project_of_host(os.environ, working_folder(), policy)
    return project_of(named, policy) if named != PERSONAL and is_path(named) else named
