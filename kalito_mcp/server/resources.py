"""Resources: the profile, sessions with their numbers and graphs, the agent's graph, its snapshots, and records."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ResourceNotFoundError
from mcp.server.mcpserver.resources import ResourceSecurity
from mcp.types import Completion, PromptReference, ResourceTemplateReference

from kalito_mcp.errors import InvalidInput, KalitoError, NotFound, SessionNotFound
from kalito_mcp.safety.escaping import json_text
from kalito_mcp.server.addresses import (
    AGENT_URI,
    GRAPH_URI,
    HISTORY_URI,
    PROFILE_URI,
    RECORD_URI,
    SESSIONS_URI,
    SNAPSHOT_URI,
    SNAPSHOTS_URI,
    STATS_URI,
)
from kalito_mcp.server.memory_handle import MemoryHandle
from kalito_mcp.server.refusals import protocol_errors

if TYPE_CHECKING:
    from kalito_mcp.memory import Memory

_MAX_SESSIONS: Final = 100
_MAX_COMPLETIONS: Final = 100


def register_resources(server: MCPServer[Any], opened: MemoryHandle) -> None:
    """Add the resources and the completion of ids."""
    resource = partial(server.resource, mime_type="application/json")

    @resource(
        SESSIONS_URI,
        name="sessions",
        title="Sessions",
        description="The 100 latest conversations: session_id, title, agent, state, counts.",
    )
    async def sessions() -> str:
        with protocol_errors("resource sessions"):
            memory = await opened.memory()
            found = await memory.conversations.recent(limit=_MAX_SESSIONS)
            titles = await memory.conversations.titles(one.id for one in found)
        listed = [session.to_dict(titles.get(session.id)) for session in found]
        return _json({"sessions": listed, "shown": len(found), "limit": _MAX_SESSIONS})

    @resource(
        STATS_URI,
        name="session-stats",
        title="Session statistics",
        description="One conversation in numbers: messages, summaries, pins, oldest and newest message, importance.",
        # An id is not a path: it may begin with a slash or contain two dots, and is only used as a query parameter.
        security=ResourceSecurity(exempt_params={"session_id"}),
    )
    async def session_stats(session_id: str) -> str:
        with _not_found_as_resource_error("session-stats", (SessionNotFound,)):
            stats = await (await opened.memory_of(session_id)).conversations.stats(session_id)
        return _json(stats.to_dict())

    @resource(
        GRAPH_URI,
        name="session-graph",
        title="Session graph",
        description="One conversation's graph: its size, and the questions and entities that rank highest.",
        security=ResourceSecurity(exempt_params={"session_id"}),
    )
    async def session_graph(session_id: str) -> str:
        with _not_found_as_resource_error("session-graph", (SessionNotFound,)):
            found = await (await opened.memory()).conversations.graph_overview(session_id=session_id)
        return _json(found)

    @resource(
        AGENT_URI,
        name="agent",
        title="Agent graph",
        description="The default agent's long-term graph: its size, and the questions and entities that rank highest.",
    )
    async def agent() -> str:
        with protocol_errors("resource agent"):
            return _json(await (await opened.memory()).conversations.graph_overview())

    @resource(
        PROFILE_URI,
        name="profile",
        title="Profile",
        description="What every conversation knows of the user, and those of the project of it, by subject.",
    )
    async def profile() -> str:
        with protocol_errors("resource profile"):
            return _json((await (await opened.memory()).records.profile()).to_dict())

    @resource(
        SNAPSHOTS_URI,
        name="snapshots",
        title="Snapshots",
        description="The snapshots of agents' long-term graphs: name, size in bytes, time of writing.",
    )
    async def snapshots() -> str:
        with protocol_errors("resource snapshots"):
            found = (await opened.memory()).orchestrator().list_snapshots()
        return _json({"snapshots": [one.to_dict() for one in found]})

    @resource(
        SNAPSHOT_URI,
        name="snapshot",
        title="Snapshot",
        description="One snapshot: its size, and the questions and entities that rank highest.",
    )
    async def snapshot(snapshot_id: str) -> str:
        with _not_found_as_resource_error("snapshot"):
            found = await (await opened.memory()).orchestrator().snapshot_overview(snapshot_id)
        return _json(found)

    @resource(
        RECORD_URI,
        name="record",
        title="Record",
        description="One record with all its fields: a message, thought, document, task, pin or summary.",
    )
    async def record(record_id: str) -> str:
        with _not_found_as_resource_error("record"):
            found = await (await opened.memory()).records.get(record_id)
        return _json(found.to_dict())

    @resource(
        HISTORY_URI,
        name="record-history",
        title="Record history",
        description="Every edit of one record, oldest first: who changed what and when.",
    )
    async def record_history(record_id: str) -> str:
        with _not_found_as_resource_error("record-history"):
            found = await (await opened.memory()).records.history(record_id)
        return _json({"record_id": record_id, "edits": found})

    completions = {"session_id": _session_ids, "snapshot_id": _snapshot_ids, "record_id": _record_ids}

    @server.completion()  # type: ignore[no-untyped-call, untyped-decorator]
    async def complete_id(
        ref: PromptReference | ResourceTemplateReference, argument: Any, _context: Any
    ) -> Completion | None:
        complete = completions.get(argument.name)
        if complete is None:
            return None
        with protocol_errors(f"completion of {argument.name}"):
            values = await complete(await opened.memory(), argument.value)
        return Completion(values=values[:_MAX_COMPLETIONS], has_more=len(values) > _MAX_COMPLETIONS)


async def _session_ids(memory: "Memory", prefix: str) -> list[str]:
    return [one.id for one in await memory.conversations.recent(prefix=prefix, limit=_MAX_COMPLETIONS + 1)]


async def _snapshot_ids(memory: "Memory", prefix: str) -> list[str]:
    return [one.name for one in memory.orchestrator().list_snapshots() if one.name.startswith(prefix)]


async def _record_ids(memory: "Memory", prefix: str) -> list[str]:
    return list(await memory.records.ids(prefix))


@contextmanager
def _not_found_as_resource_error(
    name: str, missing: tuple[type[KalitoError], ...] = (InvalidInput, NotFound)
) -> Iterator[None]:
    """Raise the `missing` errors of the block as the SDK's error for an unknown resource, and others as protocol
    errors. A damaged snapshot is InvalidInput."""
    with protocol_errors(f"resource {name}"):
        try:
            yield
        except missing as error:
            raise ResourceNotFoundError(str(error)) from error


def _json(content: dict[str, Any]) -> str:
    return json_text(content)
