"""A search that computes for too long is ended."""

from pathlib import Path

import pytest

from kalito_mcp.config.settings import Settings
from kalito_mcp.domain.scope import DEFAULT_AGENT, Scope
from kalito_mcp.errors import QueryTooLong
from kalito_mcp.ports.storage_policy import StoragePolicy
from kalito_mcp.records.sessions import ensure_session
from kalito_mcp.storage.sqlite import search
from kalito_mcp.storage.sqlite.database import SqliteStore
from tests import drafts
from tests.flows.harness import said, served
from tests.scripted import START_MS

pytestmark = pytest.mark.anyio
ENDLESS = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"


async def test_an_endless_statement_ends_and_the_next_one_takes_as_long_as_it_takes(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path / "memory.db", StoragePolicy(readers=1, query_s=0.02))
    everything = Scope(agent=DEFAULT_AGENT)
    async with store.transaction() as transaction:
        session = await ensure_session(transaction.sessions, Scope(session="trip"), now_ms=START_MS)
        await transaction.conversations.append_messages(session, [drafts.message("ferry")], now_ms=START_MS)
    for reading in (store.view(), store.view()):
        async with reading as view:
            raw = view.connection._conn
            with pytest.raises(QueryTooLong, match=r"ended after 0\.02 s"):
                await view.search.in_index(everything, lambda _, raw=raw: raw.execute(ENDLESS).fetchone())
    async with store.view() as view:
        bounded = ENDLESS.replace("FROM n)", "FROM n WHERE i < 1000000)", 1)
        assert list(await view.connection.execute_fetchall(bounded)) == [(1_000_000,)]
    await store.close()


async def test_a_search_is_refused_and_a_context_says_what_it_lacks(
    era: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "_STEPS", 1)
    settings = Settings(storage=StoragePolicy(query_s=1e-9))
    async with served(tmp_path / "memory.db", era, settings=settings) as harness:
        await harness.call("record_messages", session_id="trip", messages=said("The ferry leaves at seven."))
        refusal = await harness.refusal("search_memory", query="ferry")
        assert refusal == "query_too_long: the search was ended after 1e-09 s: ask with fewer or rarer words"
        asked = {"session_id": "trip", "query": "When does the ferry leave?"}
        assert "The ferry leaves at seven." in await harness.text("build_context", **asked)
        context = await harness.facts("build_context", **asked, format="structured")
        assert context["note"].startswith("the search was ended after")
