"""Write records to a real database and search them, for the tests of the search."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from kalito_mcp.domain.records import Role
from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.search import Hit, SearchFilters, SearchPage, SearchRequest
from kalito_mcp.ports.conversations import MessageDraft
from kalito_mcp.ports.embedder import Embedder
from kalito_mcp.records.sessions import ensure_session
from kalito_mcp.retrieval.policy import SearchPolicy
from kalito_mcp.retrieval.search import Searcher
from kalito_mcp.storage.sqlite.database import SqliteStore
from tests import drafts
from tests.scripted import START_MS, ScriptedClock

TRIP = Scope(session="trip")
ANYTHING = SearchPolicy()


async def remember(store: SqliteStore, *said: str | MessageDraft, scope: Scope = TRIP) -> list[int]:
    """Append to a session. Returns the keys of the records."""
    batch = [drafts.message(one) if isinstance(one, str) else one for one in said]
    async with store.transaction() as transaction:
        session = await ensure_session(transaction.sessions, scope, now_ms=START_MS)
        return [one.id for one in await transaction.conversations.append_messages(session, batch, now_ms=START_MS)]


async def remember_apart(store: SqliteStore, *said: str | MessageDraft) -> list[int]:
    """Append each to a session of its own, so that none is shown beside another. Returns the keys of the records."""
    return [key for n, one in enumerate(said) for key in await remember(store, one, scope=Scope(session=f"s{n}"))]


async def embed(store: SqliteStore, embedder: Embedder) -> None:
    """Give every record its vector."""
    async with store.transaction() as transaction:
        owed = await transaction.vectors.owed(embedder.fingerprint, limit=1_000)
        vectors = await embedder.embed([one.text for one in owed])
        await transaction.vectors.open_index(embedder.fingerprint, vectors.shape[1])
        await transaction.vectors.put(embedder.fingerprint, owed, vectors)


async def page_of(
    store: SqliteStore,
    request: SearchRequest,
    *,
    scope: Scope | None = None,
    policy: SearchPolicy = ANYTHING,
    embedder: Embedder | None = None,
    clock: ScriptedClock | None = None,
) -> SearchPage:
    searcher = Searcher(store, policy, clock or ScriptedClock(), embedder=embedder)
    return await searcher.search(scope or Scope(), request)


async def pages(store: SqliteStore, request: SearchRequest, policy: SearchPolicy = ANYTHING) -> list[list[Hit]]:
    """The hits of every page, up to the last."""
    found: list[list[Hit]] = []
    while True:
        page = await page_of(store, request, policy=policy)
        found.append(list(page.hits))
        if page.next_cursor is None:
            return found
        request = replace(request, cursor=page.next_cursor)


async def search(
    store: SqliteStore,
    query: str,
    *,
    scope: Scope | None = None,
    k: int = 10,
    filters: SearchFilters | None = None,
    policy: SearchPolicy = ANYTHING,
) -> Sequence[Hit]:
    """The first page."""
    request = SearchRequest(query, k, filters or SearchFilters())
    return (await page_of(store, request, scope=scope, policy=policy)).hits


async def hits(
    store: SqliteStore, query: str, *, scope: Scope | None = None, filters: SearchFilters | None = None, k: int = 100
) -> Sequence[Hit]:
    """Every hit with its reasons, whatever its score."""
    request = SearchRequest(query, k=k, filters=filters or SearchFilters(), explain=True)
    return (await page_of(store, request, scope=scope)).hits


async def texts(store: SqliteStore, query: str, *, filters: SearchFilters | None = None) -> list[str]:
    return [hit.text for hit in await hits(store, query, filters=filters)]


async def parts(
    store: SqliteStore, query: str, *, scope: Scope | None = None, filters: SearchFilters | None = None
) -> Mapping[str, Mapping[str, float]]:
    """The parts of the score of each hit, by its text."""
    return {hit.text: hit.parts for hit in await hits(store, query, scope=scope, filters=filters)}


def said_by(name: str | None, text: str, *, role: Role = Role.USER) -> MessageDraft:
    return drafts.message(text, name=name, role=role)
