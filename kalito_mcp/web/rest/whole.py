"""Endpoints of the memory as a whole: what is known, numbers, graphs, tasks, and an export."""

from collections.abc import AsyncGenerator
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Final

import anyio
from pydantic import Field

from kalito_mcp.domain.access import Permission
from kalito_mcp.domain.archive import Selection
from kalito_mcp.errors import StorageFull, StorageReadOnly
from kalito_mcp.memory.verbs import records as verbs
from kalito_mcp.memory.verbs.shapes import AgentName, Input, Output, ReachName
from kalito_mcp.web.rest.endpoint import Call, Endpoint, InProject, Nothing, Reply, reads, serves
from kalito_mcp.web.rest.shapes import GraphBody, Known, RecordBody, record_body


class OfAgent(InProject):
    """Whose memory a call is about."""

    agent_id: AgentName = None


class ProfileOf(OfAgent):
    """Which profile to read."""

    include_untrusted: Annotated[
        bool, Field(description="Also words of tools and documents that read like an instruction.")
    ] = False


class ProfileLine(Known):
    """What is known, and what it is about."""

    subject: str


class OfferedPin(Output):
    """A pin of a session that could be made lasting, with this scope."""

    record_id: str
    scope: ReachName
    session_id: str | None = None
    text: str
    created_at: str


class ProfileBody(Output):
    """What every conversation knows, by subject."""

    known: list[ProfileLine]
    pinned_in_a_session: list[OfferedPin]


class TasksOf(verbs.ListTasks, InProject):
    """Which tasks to list."""


class TaskPage(Output):
    """Tasks, the earliest due first."""

    tasks: list[RecordBody]


class SnapshotBody(Output):
    """A snapshot of an agent's graph."""

    name: str
    bytes: int
    written_at: str


class Snapshots(Output):
    """The snapshots, newest first."""

    snapshots: list[SnapshotBody]


class ProjectBody(Output):
    """A project."""

    project: str
    sessions: int


class Projects(Output):
    """The newest thousand projects."""

    projects: list[ProjectBody]


class Agents(Output):
    """The newest ten thousand agents."""

    agents: list[str]


class Totals(Output):
    """How much there is, of all projects."""

    sessions: int
    messages: int
    pins: int
    summaries: int
    notes: int
    tasks: int
    documents: int


class ExportOf(Input):
    """What to export. Default: all."""

    session: Annotated[str | None, Field(description="Only one conversation.", min_length=1, max_length=200)] = None
    project: Annotated[
        str | None, Field(description="Only what is of it; `personal`: of none.", min_length=1, max_length=1_000)
    ] = None
    agent: Annotated[str | None, Field(description="Only one agent's.", min_length=1, max_length=200)] = None


async def read_profile(call: Call[Nothing, ProfileOf]) -> Reply:
    """What is known of the person and of projects."""
    query = call.query
    profile = await call.memory.records.profile(agent_id=query.agent_id, include_untrusted=query.include_untrusted)
    return Reply(ProfileBody(**profile.to_dict()))


async def list_tasks(call: Call[Nothing, TasksOf]) -> Reply:
    """Tasks, by due date."""
    found = await verbs.list_tasks(await call.caller(), call.query)
    return Reply(TaskPage(tasks=[record_body(one) for one in found]))


async def agent_graph(call: Call[Nothing, OfAgent]) -> Reply:
    """The overview of an agent's long-term graph."""
    return Reply(GraphBody(**await call.memory.conversations.graph_overview(agent_id=call.query.agent_id)))


async def list_snapshots(call: Call[Nothing, Nothing]) -> Reply:
    """The snapshots of the owner's agents."""
    found = call.memory.orchestrator().list_snapshots()
    return Reply(Snapshots(snapshots=[SnapshotBody(**one.to_dict()) for one in found]))


async def read_snapshot(call: Call[Nothing, Nothing]) -> Reply:
    """A snapshot's file, byte for byte."""
    return Reply(stream=_pieces(call.memory.orchestrator().snapshot_file(call.path["snapshot_id"]).path))


async def _pieces(file: Path) -> AsyncGenerator[bytes]:
    async with await anyio.open_file(file, "rb") as opened:
        while piece := await opened.read(_PIECE_BYTES):
            yield piece


async def list_projects(call: Call[Nothing, Nothing]) -> Reply:
    """Projects, newest first."""
    found = await call.memory.projects.all()
    return Reply(Projects(projects=[ProjectBody(project=name, sessions=count) for name, count in found]))


async def list_agents(call: Call[Nothing, Nothing]) -> Reply:
    """Agents, newest first."""
    return Reply(Agents(agents=list(await call.memory.conversations.agents())))


async def read_stats(call: Call[Nothing, Nothing]) -> Reply:
    """The memory in numbers."""
    return Reply(Totals(**await call.memory.conversations.totals()))


_PIECE_BYTES: Final = 1 << 16
EXPORT: Final = "GET /api/export"


async def export(call: Call[Nothing, ExportOf]) -> Reply:
    """The memory as an archive. Raises AccessDenied within limits."""
    query = call.query
    call.memory.place.limits.check_none("an archive")
    selection = Selection(session=query.session, project=query.project, agent=query.agent)
    with suppress(StorageReadOnly, StorageFull):  # what cannot be written can still be taken out
        await call.memory.access.log(EXPORT)
    return Reply(stream=call.exporter(call.memory, selection))


WHOLE: Final[tuple[Endpoint[Any, Any], ...]] = (
    reads("/profile", "What every conversation knows", read_profile, ProfileBody, ProfileOf),
    serves(verbs.TASKS, "GET", "/tasks", list_tasks, TaskPage, body=Nothing, query=TasksOf, tag="memory"),
    reads("/graph", "The overview of an agent's long-term graph", agent_graph, GraphBody, OfAgent),
    reads("/snapshots", "Snapshots of graphs", list_snapshots, Snapshots, Nothing),
    Endpoint(
        "GET", "/snapshots/{snapshot_id}", Permission.READ, "A snapshot's file, with all nodes, edges and vectors",
        read_snapshot, None, Nothing, Nothing,
    ),
    reads("/projects", "Projects", list_projects, Projects, Nothing),
    reads("/agents", "Agents", list_agents, Agents, Nothing),
    reads("/stats", "The memory in numbers", read_stats, Totals, Nothing),
    Endpoint(
        "GET", "/export", Permission.ADMIN, "The memory as an archive, without loss", export, None, Nothing, ExportOf,
        media="application/x-ndjson",
    ),
)  # fmt: skip
