"""Resources: the profile, sessions with their numbers and graphs, the agent's graph, its snapshots, and records."""

import inspect
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

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
    SNAPSHOT_GRAPH_URI,
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
_MAX_SNAPSHOT_BYTES: Final = 1 << 24


class _Resource(NamedTuple):
    """What is served at an address. A `read` error of the classes in `missing` means that there is no such resource."""

    uri: str
    name: str
    title: str
    description: str
    read: Callable[..., Awaitable[dict[str, Any]]]
    """From the memory's handle, and the id in the address if it has one."""
    missing: tuple[type[KalitoError], ...] = ()


def register_resources(server: MCPServer[Any], opened: MemoryHandle) -> None:
    """Add the resources and the completion of ids."""
    for one in _RESOURCES:
        server.resource(
            one.uri,
            name=one.name,
            title=one.title,
            description=one.description,
            mime_type="application/json",
            # An id is not a path: it may begin with a slash or contain two dots, and is only used as a query parameter.
            security=ResourceSecurity(exempt_params={"session_id"}) if "{session_id}" in one.uri else None,
        )(_reader(one, opened))

    @server.completion()  # type: ignore[no-untyped-call, untyped-decorator]
    async def complete_id(
        ref: PromptReference | ResourceTemplateReference, argument: Any, _context: Any
    ) -> Completion | None:
        complete = _COMPLETIONS.get(argument.name)
        if complete is None:
            return None
        with protocol_errors(f"completion of {argument.name}"):
            values = await complete(await opened.memory(), argument.value)
        return Completion(values=values[:_MAX_COMPLETIONS], has_more=len(values) > _MAX_COMPLETIONS)


def _reader(one: _Resource, opened: MemoryHandle) -> Callable[..., Awaitable[str]]:
    """The function that the SDK calls. It matches the signature with the address."""

    async def read(**named: str) -> str:
        with protocol_errors(f"resource {one.name}"):
            try:
                return json_text(await one.read(opened, **named))
            except one.missing as error:
                raise ResourceNotFoundError(str(error)) from error

    [_, *ids] = inspect.signature(one.read).parameters.values()
    read.__signature__ = inspect.Signature(ids)  # type: ignore[attr-defined]
    read.__annotations__ = {each.name: str for each in ids}
    return read


async def _sessions(opened: MemoryHandle) -> dict[str, Any]:
    memory = await opened.memory()
    found = await memory.conversations.recent(limit=_MAX_SESSIONS, has_forgotten=False)
    titles = await memory.conversations.titles(one.id for one in found)
    listed = [session.to_dict(titles.get(session.id)) for session in found]
    return {"sessions": listed, "shown": len(found), "limit": _MAX_SESSIONS}


async def _session_stats(opened: MemoryHandle, session_id: str) -> dict[str, Any]:
    return (await (await opened.memory_of(session_id)).conversations.stats(session_id)).to_dict()


async def _session_graph(opened: MemoryHandle, session_id: str) -> dict[str, Any]:
    return await (await opened.memory()).conversations.graph_overview(session_id=session_id)


async def _agent(opened: MemoryHandle) -> dict[str, Any]:
    return await (await opened.memory()).conversations.graph_overview()


async def _profile(opened: MemoryHandle) -> dict[str, Any]:
    return (await (await opened.memory()).records.profile()).to_dict()


async def _snapshots(opened: MemoryHandle) -> dict[str, Any]:
    return {"snapshots": [one.to_dict() for one in (await opened.memory()).orchestrator().list_snapshots()]}


async def _snapshot(opened: MemoryHandle, snapshot_id: str) -> dict[str, Any]:
    return await (await opened.memory()).orchestrator().snapshot_overview(snapshot_id)


async def _snapshot_graph(opened: MemoryHandle, snapshot_id: str) -> dict[str, Any]:
    agent = (await opened.memory()).orchestrator()
    if (size := agent.snapshot_file(snapshot_id).size_bytes) > _MAX_SNAPSHOT_BYTES:
        raise InvalidInput(
            f"snapshot {snapshot_id!r} has {size:,} bytes, and a resource shows at most {_MAX_SNAPSHOT_BYTES:,}; copy "
            "its file, or get it from GET /api/snapshots/{snapshot_id}"
        )
    return await agent.snapshot_graph(snapshot_id)


async def _record(opened: MemoryHandle, record_id: str) -> dict[str, Any]:
    return (await (await opened.memory()).records.get(record_id)).to_dict()


async def _history(opened: MemoryHandle, record_id: str) -> dict[str, Any]:
    return {"record_id": record_id, "edits": await (await opened.memory()).records.history(record_id)}


async def _session_ids(memory: "Memory", prefix: str) -> list[str]:
    found = await memory.conversations.recent(prefix=prefix, limit=_MAX_COMPLETIONS + 1, has_forgotten=False)
    return [one.id for one in found]


async def _snapshot_ids(memory: "Memory", prefix: str) -> list[str]:
    return [one.name for one in memory.orchestrator().list_snapshots() if one.name.startswith(prefix)]


async def _record_ids(memory: "Memory", prefix: str) -> list[str]:
    return list(await memory.records.completions(prefix))


_COMPLETIONS: Final = {"session_id": _session_ids, "snapshot_id": _snapshot_ids, "record_id": _record_ids}
_BY_ID: Final = (InvalidInput, NotFound)  # a damaged snapshot is InvalidInput
_RESOURCES: Final = (
    _Resource(
        SESSIONS_URI,
        "sessions",
        "Sessions",
        "The 100 latest conversations: session_id, title, agent, state, counts.",
        _sessions,
    ),
    _Resource(
        STATS_URI,
        "session-stats",
        "Session statistics",
        "One conversation in numbers: messages, summaries, pins, oldest and newest message, importance.",
        _session_stats,
        (SessionNotFound,),
    ),
    _Resource(
        GRAPH_URI,
        "session-graph",
        "Session graph",
        "One conversation's graph: its size, and the questions and entities that rank highest.",
        _session_graph,
        (SessionNotFound,),
    ),
    _Resource(
        AGENT_URI,
        "agent",
        "Agent graph",
        "The default agent's long-term graph: its size, and the questions and entities that rank highest.",
        _agent,
    ),
    _Resource(
        PROFILE_URI,
        "profile",
        "Profile",
        "What every conversation knows of the user, and those of the project of it, by subject.",
        _profile,
    ),
    _Resource(
        SNAPSHOTS_URI,
        "snapshots",
        "Snapshots",
        "The snapshots of agents' long-term graphs: name, size in bytes, time of writing.",
        _snapshots,
    ),
    _Resource(
        SNAPSHOT_URI,
        "snapshot",
        "Snapshot",
        "One snapshot: its size, and the questions and entities that rank highest.",
        _snapshot,
        _BY_ID,
    ),
    _Resource(
        SNAPSHOT_GRAPH_URI,
        "snapshot-graph",
        "Snapshot graph",
        "The content of one snapshot: all its nodes and edges.",
        _snapshot_graph,
        _BY_ID,
    ),
    _Resource(
        RECORD_URI,
        "record",
        "Record",
        "One record with all its fields: a message, thought, document, task, pin or summary.",
        _record,
        _BY_ID,
    ),
    _Resource(
        HISTORY_URI,
        "record-history",
        "Record history",
        "Every edit of one record, oldest first: who changed what and when.",
        _history,
        _BY_ID,
    ),
)
