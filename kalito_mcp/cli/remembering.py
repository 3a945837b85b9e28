"""`kalito-mcp remember` and `search`: what a person keeps, and how they find it again.

Who runs `remember` is whose words a note, a task or a thought are; a document has those of its source.
"""

from pathlib import Path

import click

from kalito_mcp.cli.opened import tell, tell_json, this_person, typed_fields, with_memory
from kalito_mcp.cli.options import settings_of, settings_of_one_that_exists, with_settings
from kalito_mcp.cli.record_lines import hit_line, remembered_line
from kalito_mcp.domain.records import RecordType
from kalito_mcp.domain.search import SearchFilters
from kalito_mcp.errors import InvalidInput
from kalito_mcp.records.redaction import redact
from kalito_mcp.retrieval.search import SearchRequest

with_session = click.option("--session", "session_id", metavar="ID", help="Only in this conversation.")
with_agent = click.option("--agent", "agent_id", metavar="ID", help="Whose memory; `default` unless given.")


@click.command()
@click.argument("text", required=False)
@click.option(
    "--file",
    "path",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Keep this file as a document; one that was kept from the same path before is replaced.",
)
@click.option(
    "--type",
    "record_type",
    type=click.Choice(["note", "task", "document", "thought"]),
    help="`note` unless given. A document needs --set source=NAME, a thought is in no context unless asked for.",
)
@click.option("--set", "assignments", multiple=True, metavar="FIELD=VALUE", help="VALUE is JSON, else taken as text.")
@with_session
@with_agent
@with_settings
def remember(
    database: Path | None,
    config: Path | None,
    text: str | None,
    path: Path | None,
    record_type: str | None,
    assignments: tuple[str, ...],
    session_id: str | None,
    agent_id: str | None,
) -> None:
    """Keep TEXT, a note unless --type says otherwise; - reads it from standard input. Secrets are taken out."""
    if (text is None) is (path is None):
        raise click.UsageError("give a text (- reads it from standard input) or --file")
    if path is not None and record_type not in (None, "document"):
        raise click.UsageError("--file keeps a document; leave --type out")
    settings = settings_of(database, config)
    is_new = not settings.database.exists()
    kind = record_type or ("note" if path is None else "document")
    fields = typed_fields(text, assignments)
    if path is not None:
        if "text" in fields:
            raise click.UsageError("the text is that of --file; leave --set text out")
        # The whole path: the same name in another folder is another document.
        fields = {"text": _words(path), "source": str(path.resolve()), **fields}
    kept = with_memory(
        settings,
        lambda memory: memory.remember(kind, fields, session_id=session_id, agent_id=agent_id, editor=this_person()),
    )
    tell([remembered_line(kind, kept), *([f"in a new memory, {settings.database}"] if is_new else [])])
    if kinds := dict.fromkeys(redact(fields["text"]).kinds):
        tell([f"taken out of the text, and not kept: {', '.join(kinds).replace('_', ' ')}"])


@click.command()
@click.argument("words", nargs=-1, required=True)
@click.option(
    "--type",
    "types",
    multiple=True,
    type=click.Choice([str(one) for one in RecordType]),
    help="Only records of this type; may be given several times. Thoughts are found only so.",
)
@with_session
@with_agent
@click.option("--limit", type=click.IntRange(1, 100), default=10, show_default=True, help="How many at the most.")
@click.option("--json", "is_json", is_flag=True, help="JSON, one object a line, for programs.")
@with_settings
def search(
    database: Path | None,
    config: Path | None,
    words: tuple[str, ...],
    types: tuple[str, ...],
    session_id: str | None,
    agent_id: str | None,
    limit: int,
    is_json: bool,
) -> None:
    """Find records that hold WORDS, best first, one a line. What is found counts as used, as in any search."""
    filters = SearchFilters(types=frozenset(map(RecordType, types)))
    request = SearchRequest(query=" ".join(words), k=limit, filters=filters)
    page = with_memory(
        settings_of_one_that_exists(database, config),
        lambda memory: memory.search_memory(request, session_id=session_id, agent_id=agent_id),
    )
    if is_json:
        tell_json(hit.to_dict() for hit in page.hits)
    else:
        tell(map(hit_line, page.hits) if page.hits else ["nothing found"])


def _words(path: Path) -> str:
    """What the file says, without a byte order mark."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidInput(f"{path} is not UTF-8; nothing was written. Convert it to a text first") from None
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}; nothing was written") from None
