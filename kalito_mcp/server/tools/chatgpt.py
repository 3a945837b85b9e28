"""The tools `search` and `fetch`, in the shapes that ChatGPT's connectors and deep research ask for.

They find and show what `search_memory` and `memory_history` do, and exist because that host calls only these names.
"""

from collections.abc import Sequence
from typing import Annotated, Any, Final
from urllib.parse import quote

from mcp.types import CallToolResult
from pydantic import BaseModel, Field

from kalito_mcp.domain.memory_records import MemoryRecord
from kalito_mcp.domain.search import SearchRequest
from kalito_mcp.domain.time import to_iso
from kalito_mcp.errors import RecordNotFound
from kalito_mcp.memory.verbs.shapes import Input, RecordName
from kalito_mcp.safety.escaping import escape_json, json_text
from kalito_mcp.server.tools.answers import text_answer
from kalito_mcp.server.tools.serving import Serving, ToolContext, caller_of, serving
from kalito_mcp.server.tools.shapes import Output

_HITS: Final = 10
_TITLE_CHARS: Final = 80


class FoundResult(Output):
    """One record. ChatGPT shows `title`, cites `url`, and fetches by `id`."""

    id: str
    title: str
    url: str
    text: str


class FoundResults(Output):
    """What search found."""

    results: list[FoundResult]


class FetchedRecord(Output):
    """One record in full."""

    id: str
    title: str
    text: str
    url: str
    metadata: dict[str, str]


class Query(Input):
    """The arguments of search."""

    query: Annotated[str, Field(description="What to look for, in any words.", min_length=1)]


class Fetch(Input):
    """The arguments of fetch."""

    id: Annotated[RecordName, Field(description="An id that search returned.")]


async def search(context: ToolContext, sent: Query) -> Annotated[CallToolResult, FoundResults]:
    """Find what is remembered: messages, documents, tasks, pins and summaries, best first. Returns ids; fetch
    returns one in full."""
    server = serving(context)
    memory, request = await server.opened.memory_asked(None), SearchRequest(query=sent.query, k=_HITS)
    page = await memory.search_memory(request, client=caller_of(context, memory).editor.id)
    results = [
        FoundResult(
            id=hit.record_id,
            title=_title(str(hit.type), hit.text, hit.created_at),
            url=_url(server, hit.record_id),
            text=hit.text,
        )
        for hit in page.hits
    ]
    return _answer(FoundResults(results=results))


async def fetch(context: ToolContext, sent: Fetch) -> Annotated[CallToolResult, FetchedRecord]:
    """Return one remembered record in full, with where and when it is from."""
    server = serving(context)
    memory = await server.opened.memory()
    shown = [one for one in await memory.records.get_all(sent.id) if not one.is_deleted]
    if not shown:
        raise RecordNotFound(f"{sent.id} was forgotten; restore brings it back")
    first = shown[0]
    return _answer(
        FetchedRecord(
            id=sent.id,
            title=str(first.content.get("title") or _title(str(first.type), first.text, first.created_at)),
            text="\n\n".join(one.text for one in shown),
            url=_url(server, sent.id),
            metadata=_metadata(shown),
        )
    )


def _url(server: Serving, record_id: str) -> str:
    """Where the record is, for who reads the answer: below the server's URL, or else its resource."""
    name = quote(record_id, safe="")
    return f"{server.public_url}/api/records/{name}" if server.public_url else f"memory://records/{name}"


def _metadata(records: Sequence[MemoryRecord]) -> dict[str, str]:
    first = records[0]
    known = {
        "type": str(first.type),
        "said_at": to_iso(first.created_at),
        "origin": str(first.origin),
        "role": first.role and str(first.role),
        "session_id": first.session_id,
        "project": first.project,
        "source": first.content.get("source"),
        "tags": ", ".join(first.content.get("tags") or []) or None,
        "revision": str(first.revision),
    }
    return {name: str(value) for name, value in known.items() if value is not None}


def _title(kind: str, text: str, said_at: int) -> str:
    """What a record is, when it was said, and its first words."""
    words = " ".join(text.split())
    shown = words if len(words) <= _TITLE_CHARS else f"{words[:_TITLE_CHARS].rstrip()}..."
    return f"{kind} of {to_iso(said_at)[:10]}: {shown}"


def _answer(found: BaseModel) -> CallToolResult:
    """The same JSON as text and as structured content: that host reads either."""
    content: dict[str, Any] = escape_json(found.model_dump(mode="json"))
    return text_answer(json_text(content), content)
