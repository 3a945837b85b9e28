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
from kalito_mcp.safety.escaping import escape_json, json_text
from kalito_mcp.server.memory_handle import MemoryHandle
from kalito_mcp.server.tools.answers import text_answer
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


class ChatGptTools:
    """The two tools. `public_url` is where clients reach the server; without it, records have their resource's URI."""

    def __init__(self, opened: MemoryHandle, public_url: str = "") -> None:
        self._opened = opened
        self._public_url = public_url.rstrip("/")

    async def search(
        self, query: Annotated[str, Field(description="What to look for, in any words.", min_length=1)]
    ) -> Annotated[CallToolResult, FoundResults]:
        """Find what is remembered: messages, documents, tasks, pins and summaries, best first. Returns ids; fetch
        returns one in full."""
        memory = await self._opened.memory_asked(None)
        page = await memory.search_memory(SearchRequest(query=query, k=_HITS))
        results = [
            FoundResult(
                id=hit.record_id,
                title=_title(str(hit.type), hit.text, hit.created_at),
                url=self._url(hit.record_id),
                text=hit.text,
            )
            for hit in page.hits
        ]
        return _answer(FoundResults(results=results))

    async def fetch(
        self,
        id: Annotated[str, Field(description="An id that search returned.", min_length=1, max_length=200)],  # noqa: A002 - the name that ChatGPT sends
    ) -> Annotated[CallToolResult, FetchedRecord]:
        """Return one remembered record in full, with where and when it is from."""
        memory = await self._opened.memory()
        shown = [one for one in await memory.records.get_all(id) if not one.is_deleted]
        if not shown:
            raise RecordNotFound(f"{id} was forgotten; restore brings it back")
        first = shown[0]
        return _answer(
            FetchedRecord(
                id=id,
                title=str(first.content.get("title") or _title(str(first.type), first.text, first.created_at)),
                text="\n\n".join(one.text for one in shown),
                url=self._url(id),
                metadata=_metadata(shown),
            )
        )

    def _url(self, record_id: str) -> str:
        name = quote(record_id, safe="")
        return f"{self._public_url}/api/records/{name}" if self._public_url else f"memory://records/{name}"


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
