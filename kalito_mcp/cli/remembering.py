"""`kalito-mcp remember` and `search`: keep a record, and find it again.

The words of a note, a task or a thought are those of the person who runs `remember`. A document's are its source's.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kalito_mcp.cli.options import (
    every_project,
    one_project,
    settings_of,
    settings_to_read,
    with_assignments,
    with_settings,
)
from kalito_mcp.cli.record_lines import (
    hit_line,
    nothing_lines,
    redaction_lines,
    remembered_line,
    turn_lines,
    why_lines,
)
from kalito_mcp.cli.running import this_person, with_memory
from kalito_mcp.cli.session_lines import project_names
from kalito_mcp.cli.terminal import tell, tell_json, typed_fields
from kalito_mcp.domain.importance import least_score
from kalito_mcp.domain.records import Origin, RecordType, Role
from kalito_mcp.domain.search import SearchFilters, SearchPage, SearchRequest
from kalito_mcp.domain.time import from_iso, zone_of
from kalito_mcp.domain.zone import Zone
from kalito_mcp.errors import InvalidInput
from kalito_mcp.safety.escaping import as_data
from kalito_mcp.text.times.expressions import moment_in_words

if TYPE_CHECKING:
    from kalito_mcp.domain.memory_records import MemoryRecord
    from kalito_mcp.memory import Memory

with_session = click.option("--session", "session_id", metavar="ID", help="Only in this conversation.")
with_agent = click.option("--agent", "agent_id", metavar="ID", help="Which agent's memory. Default: `default`.")


@click.command()
@click.argument("text", required=False)
@click.option(
    "--file",
    "path",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Keep this file as a document. It replaces the document kept earlier from the same path.",
)
@click.option(
    "--type",
    "record_type",
    type=click.Choice(["note", "task", "document", "thought"]),
    help="Default: `note`. A document needs --set source=NAME. A thought is in no context unless asked for.",
)
@with_assignments
@with_session
@with_agent
@click.option(
    "--project",
    metavar="PROJECT",
    callback=one_project,
    help="Whose it is: a folder (. is this one) or a name. Default: it is personal.",
)
@with_settings
def remember(
    database: str | None,
    config: Path | None,
    text: str | None,
    path: Path | None,
    record_type: str | None,
    assignments: tuple[str, ...],
    session_id: str | None,
    agent_id: str | None,
    project: str | None,
) -> None:
    """Keep TEXT, a note unless --type says otherwise; - reads it from standard input. Secrets are removed."""
    if (text is None) is (path is None):
        raise click.UsageError("give a text (- reads it from standard input) or --file")
    if path is not None and record_type not in (None, "document"):
        raise click.UsageError("--file keeps a document; leave out --type")
    settings = settings_of(database, config)
    is_new = not settings.database.exists()
    kind = record_type or ("note" if path is None else "document")
    fields = typed_fields(text, assignments)
    if path is not None:
        if "text" in fields:
            raise click.UsageError("--file already gives the text; leave out --set text")
        # The whole path: the same name in another folder is another document.
        fields = {"text": _words(path), "source": str(path.resolve()), **fields}

    async def keep(memory: "Memory") -> "Sequence[MemoryRecord]":
        memory = await memory.in_project(project)
        return await memory.remember(kind, fields, session_id=session_id, agent_id=agent_id, editor=this_person())

    kept = with_memory(settings, keep)
    tell([remembered_line(kind, kept), *([f"created a new memory: {settings.database}"] if is_new else [])])
    tell(redaction_lines(kept[0].redacted))


def _least_importance(_context: click.Context, _option: click.Parameter, value: str) -> float:
    try:
        return least_score(value)
    except ValueError as error:
        raise click.BadParameter(f"{value!r}: use {error}") from error


@click.command()
@click.argument("words", nargs=-1, required=True)
@click.option(
    "--also",
    multiple=True,
    metavar="WORDS",
    help="Another way to say it, best as a sentence that answers. Can be repeated; the first four count.",
)
@click.option("-k", "--limit", type=click.IntRange(min=1), default=10, show_default=True, help="How many at most.")
@with_session
@with_agent
@click.option(
    "--project",
    metavar="PROJECT",
    callback=every_project,
    help="Only what is of this folder (. is this one) or name, and what is personal; `personal`: only that.",
)
@click.option(
    "--type",
    "types",
    multiple=True,
    type=click.Choice([str(one) for one in RecordType]),
    help="Only records of this type. Thoughts are found only with --type thought.",
)
@click.option(
    "--role", "roles", multiple=True, type=click.Choice([str(one) for one in Role]), help="Only what this role said."
)
@click.option("--name", "names", multiple=True, metavar="NAME", help="Only what a speaker of this name said.")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="Only records with this tag.")
@click.option(
    "--origin",
    "origins",
    multiple=True,
    type=click.Choice([str(one) for one in Origin]),
    help="Only words of this origin.",
)
@click.option(
    "--min-importance",
    callback=_least_importance,
    default="0",
    metavar="SCORE",
    help="The least importance: 0 to 1, or low, medium, high or critical.",
)
@click.option("--since", metavar="WHEN", help="From then on: 2026-03-04, 7d (days ago), 'last March', 'two weeks ago'.")
@click.option("--until", metavar="WHEN", help="Up to then; a day or a month counts to its end.")
@click.option("--now", metavar="MOMENT", help="The moment that `7d` counts from, ISO 8601. Default: now.")
@click.option("--explain", "is_explained", is_flag=True, help="Say why each hit was found, and the parts of its score.")
@click.option("--json", "is_json", is_flag=True, help="JSON, one object a line, for programs.")
@with_settings
def search(
    database: str | None,
    config: Path | None,
    words: tuple[str, ...],
    also: tuple[str, ...],
    limit: int,
    session_id: str | None,
    agent_id: str | None,
    project: str | None,
    types: tuple[str, ...],
    roles: tuple[str, ...],
    names: tuple[str, ...],
    tags: tuple[str, ...],
    origins: tuple[str, ...],
    min_importance: float,
    since: str | None,
    until: str | None,
    now: str | None,
    is_explained: bool,
    is_json: bool,
) -> None:
    """Find records about WORDS, best first, one a line. Found records count as used, as in every search.

    --type, --role, --name, --tag and --origin can be repeated: a record has to match one of the values.

    '"leaves at seven" -moss' requires a phrase and excludes a word. Quote it; if it begins with -, put it after --.
    """
    query = " ".join(words)

    async def found(memory: "Memory") -> tuple[SearchPage, Zone, Mapping[str, str]]:
        memory = await memory.in_project(project)
        zone = memory.zone
        now_ms = memory.place.clock.now_ms() if now is None else from_iso(now, "now", zone)
        zone = zone if now is None else zone_of(now, now_ms, zone)
        filters = SearchFilters(
            types=frozenset(map(RecordType, types)),
            roles=frozenset(map(Role, roles)),
            names=frozenset(names),
            tags=frozenset(tags),
            origins=frozenset(map(Origin, origins)),
            min_importance=min_importance,
            since=None if since is None else moment_in_words(since, "since", now_ms, is_last=False, zone=zone),
            until=None if until is None else moment_in_words(until, "until", now_ms, is_last=True, zone=zone),
        )
        request = SearchRequest(query, limit, filters, explain=is_explained, now_ms=now_ms, zone=zone, also=also)
        page = await memory.search_memory(request, session_id=session_id, agent_id=agent_id)
        return page, zone, project_names(one for one, _ in await memory.projects.all())

    page, zone, projects = with_memory(settings_to_read(database, config), found)
    if page.note and (page.hits or is_json):
        click.echo(as_data(page.note), err=True)  # on stderr, so that no program takes it for a hit
    if is_json:
        tell_json(hit.to_dict() for hit in page.hits)
    elif page.hits:
        tell(_hit_lines(page, query, zone, projects, is_explained=is_explained))
    else:
        given = {
            "--session": session_id, "--project": project, "--type": types, "--role": roles, "--name": names,
            "--tag": tags, "--origin": origins, "--min-importance": min_importance, "--since": since, "--until": until,
        }  # fmt: skip
        tell(nothing_lines(page.note, [option for option, value in given.items() if value]))


def _hit_lines(
    page: SearchPage, query: str, zone: Zone, projects: Mapping[str, str], *, is_explained: bool
) -> Iterator[str]:
    for hit in page.hits:
        yield hit_line(hit, query, zone, projects)
        yield from turn_lines(hit)
        if is_explained:
            yield from why_lines(hit)


def _words(path: Path) -> str:
    """The text of the file, without a byte order mark."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidInput(f"{path} is not UTF-8; nothing was written. Convert it to UTF-8 first") from None
    except OSError as error:
        raise InvalidInput(f"cannot read {path}: {error.strerror}; nothing was written. Make it readable") from None
