"""`kalito-mcp snapshot`: snapshots of an agent's long-term graph."""

import json
import os
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from kalito_mcp.cli.options import Commands, settings_of, settings_of_existing, settings_to_read, with_settings
from kalito_mcp.cli.running import with_memory
from kalito_mcp.cli.terminal import ask
from kalito_mcp.text.plurals import plural

if TYPE_CHECKING:
    from kalito_mcp.config.settings import Settings
    from kalito_mcp.graph.snapshot_folder import SnapshotFolder
    from kalito_mcp.orchestrator.orchestrator import MemoryOrchestrator

Result = TypeVar("Result")
_SHOWN: Final = 20
with_agent = click.option("--agent", "agent_id", default="default", show_default=True, help="Whose graph.")


@click.group(name="snapshot", cls=Commands)
def command() -> None:
    """Save, look at and restore snapshots of an agent's long-term graph.

    They are JSON files in the folder `<database>.snapshots`, next to the database or in the folder that the setting
    checkpoint.folder names. They contain no records: restoring or deleting one never
    changes what was said.
    """


@command.command()
@click.argument("name", required=False)
@with_agent
@with_settings
def save(database: str | None, config: Path | None, agent_id: str, name: str | None) -> None:
    """Write the agent's graph to the snapshot NAME. Without NAME, replace the agent's own snapshot."""
    settings = settings_of_existing(database, config)
    if name is not None:
        # Also checks an empty name, from an unset variable in a script: it must not replace the agent's own.
        _folder(settings).path(name)
    written = _with_agent(settings, agent_id, lambda agent: agent.save_snapshot(name))
    click.echo(f"{written.name}  {written.size_bytes:,} bytes  {written.path}")


@command.command(name="list")
@with_settings
def list_all(database: str | None, config: Path | None) -> None:
    """List the snapshots, the newest first, each with its time here."""
    settings = settings_of(database, config)
    folder, zone = _folder(settings), settings.time.zone_of_user(os.environ.get("TZ"))
    found = folder.all()
    if not found:
        click.echo(f"no snapshots in {folder.folder}")
    for one in found:
        click.echo(f"{zone.minute(one.written_at)}  {one.size_bytes:>12,} bytes  {one.name}")


@command.command()
@click.argument("name")
@click.option("--json", "is_json", is_flag=True, help="One JSON object, for programs.")
@with_settings
def show(database: str | None, config: Path | None, name: str, is_json: bool) -> None:
    """Show the snapshot NAME: its size, and the questions that rank highest."""
    shown = _with_agent(settings_to_read(database, config), None, lambda agent: agent.snapshot_overview(name))
    if is_json:
        click.echo(json.dumps(shown, ensure_ascii=False))
        return
    click.echo(f"{shown['name']}  {shown['bytes']:,} bytes  {shown['written_at']}")
    for kind in ("nodes", "edges"):
        parts = ", ".join(f"{count} {name}" for name, count in shown[f"{kind}_by_type"].items())
        click.echo(f"{plural(shown[kind], kind[:-1])}: {parts or 'none'}")
    for node in shown["top_queries"]:
        liked = f"asked {node['repeat']:g}x  feedback {node['feedback']:+.1f}"
        click.echo(f"  rank {node['rank']:.2f}  {liked}  {_line(node['text'])}")


@command.command()
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask.")
@with_agent
@with_settings
def restore(database: str | None, config: Path | None, agent_id: str, name: str, yes: bool) -> None:
    """Replace the agent's graph with the snapshot NAME. No record is changed.

    A database that does not exist is created, so snapshots can be restored into a new one.
    """
    settings = settings_of(database, config)
    _folder(settings).existing(name)
    if not yes:
        ask(
            f"Replace the long-term graph of agent {agent_id!r} with snapshot {name!r}?",
            undone="nothing was restored",
        )
    nodes = _with_agent(settings, agent_id, lambda agent: agent.restore_snapshot(name))
    click.echo(f"restored {name}: {plural(nodes, 'node')}")


@command.command()
@click.argument("earlier")
@click.argument("later", required=False)
@with_agent
@with_settings
def diff(database: str | None, config: Path | None, agent_id: str, earlier: str, later: str | None) -> None:
    """Show what changed from the snapshot EARLIER to LATER or, without LATER, to the agent's graph now."""
    from kalito_mcp.graph.snapshot_diff import diff as compare  # noqa: PLC0415 - keeps --help quick

    async def both(agent: "MemoryOrchestrator") -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        before = await agent.read_snapshot(earlier)
        return before, await _as_it_would_be_saved(agent) if later is None else await agent.read_snapshot(later)

    found = compare(*_with_agent(settings_to_read(database, config), agent_id, both))
    click.echo(
        f"{plural(len(found.added), 'node')} added, {len(found.removed)} removed, {len(found.changed)} changed; "
        f"{plural(found.added_edges, 'edge')} added, {found.removed_edges} removed"
    )
    for sign, nodes in (("+", found.added), ("-", found.removed), ("~", [after for _, after in found.changed])):
        for node in nodes[:_SHOWN]:
            click.echo(f"{sign} {node['type']:<8} {_line(node.get('summary') or node.get('text') or node['id'])}")
        if len(nodes) > _SHOWN:
            click.echo(f"{sign} and {len(nodes) - _SHOWN} more")


async def _as_it_would_be_saved(agent: "MemoryOrchestrator") -> Mapping[str, Any]:
    """The part of the agent's graph that a snapshot would contain now: a snapshot never has the whole graph."""
    from kalito_mcp.graph.top_subgraph import top_subgraph  # noqa: PLC0415 - numpy comes with it

    return top_subgraph(await agent.get_agent_store(), agent.config.checkpoint.top_k).to_snapshot()


def _folder(settings: "Settings") -> "SnapshotFolder":
    from kalito_mcp.graph.snapshot_folder import SnapshotFolder  # noqa: PLC0415 - keeps --help quick

    return SnapshotFolder(settings.snapshots)


def _with_agent(
    settings: "Settings", agent_id: str | None, act: Callable[["MemoryOrchestrator"], Awaitable[Result]]
) -> Result:
    return with_memory(settings, lambda memory: act(memory.orchestrator(agent_id)))


def _line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 100 else f"{line[:99]}…"  # noqa: PLR2004 - a terminal's width
