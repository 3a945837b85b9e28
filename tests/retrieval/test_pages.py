"""Pages join to one ranking. A request that cannot be answered is refused with what is possible."""

from dataclasses import replace

import pytest

from kalito_mcp.domain.records import Role
from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.search import SearchFilters, SearchRequest
from kalito_mcp.errors import InvalidInput
from kalito_mcp.retrieval.policy import SearchPolicy
from kalito_mcp.retrieval.search import Searcher
from kalito_mcp.storage.sqlite.database import SqliteStore
from tests.retrieval.stored_memories import ANYTHING, TRIP, pages, remember, search
from tests.scripted import ScriptedClock

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("k", [7, 100])
async def test_pages_join_to_the_whole_ranking_without_repeats(store: SqliteStore, k: int) -> None:
    texts = [f"ferry {'moss ' * (n % 3)}{'filler ' * (n * 7 % 13)}number{n}" for n in range(130)]
    keys = await remember(store, *texts)
    joined = [hit.record_id for page in await pages(store, SearchRequest("ferry moss", k)) for hit in page]
    assert len(joined) == len(set(joined)) == 130
    assert set(joined) == {f"msg_{key}" for key in keys}
    first = [hit.record_id for hit in (await pages(store, SearchRequest("ferry moss", 100)))[0]]
    assert joined[:100] == first


@pytest.mark.campaign
async def test_pages_far_beyond_the_texts_that_one_page_compares_repeat_nothing(store: SqliteStore) -> None:
    texts = [f"ferry {'filler ' * ((n * 37) % 29)}number{n}" for n in range(300)]
    keys = await remember(store, *texts)
    policy = SearchPolicy(read=15)
    for filters in (SearchFilters(), SearchFilters(roles=frozenset({Role.USER}))):
        all_pages = await pages(store, SearchRequest("ferry", 9, filters), policy)
        joined = [hit.record_id for page in all_pages for hit in page]
        assert len(joined) == len(set(joined))
        assert set(joined) == {f"msg_{key}" for key in keys}
        few = replace(policy, candidates=60)
        bounded = [
            hit.record_id for page in await pages(store, SearchRequest("ferry", 9, filters), few) for hit in page
        ]
        assert len(bounded) == len(set(bounded)) == 60


async def test_the_last_page_has_no_cursor_and_a_full_one_before_nothing_has_none_either(store: SqliteStore) -> None:
    await remember(store, *(f"ferry {tree}" for tree in ("ash", "elm", "fir", "oak")))
    assert [len(page) for page in await pages(store, SearchRequest("ferry", 2))] == [2, 2]
    assert [len(page) for page in await pages(store, SearchRequest("ferry", 3))] == [3, 1]
    assert [len(page) for page in await pages(store, SearchRequest("ferry", 4))] == [4]
    assert [len(page) for page in await pages(store, SearchRequest("quince", 4))] == [0]


async def test_a_cursor_of_another_search_is_refused(store: SqliteStore) -> None:
    await remember(store, *(f"ferry moss {tree}" for tree in ("ash", "elm", "fir", "oak", "yew")))
    searcher = Searcher(store, ANYTHING, ScriptedClock())
    request = SearchRequest("ferry", 2)
    cursor = (await searcher.search(Scope(), request)).next_cursor
    assert cursor is not None
    others = [
        (Scope(), replace(request, query="moss")),
        (Scope(), replace(request, filters=SearchFilters(since=1))),
        (Scope(), replace(request, filters=SearchFilters(roles=frozenset({Role.USER})))),
        (TRIP, request),
        (Scope(agent="default"), request),
    ]
    for scope, other in others:
        with pytest.raises(InvalidInput, match="cursor"):
            await searcher.search(scope, replace(other, cursor=cursor))
    fingerprint = cursor.partition("-")[2]
    for forged in (
        "",
        "-",
        "2",
        "x",
        f"-1-{fingerprint}",
        f"x-{fingerprint}",
        f"٣-{fingerprint}",
        f"{10**9}-{fingerprint}",
    ):
        with pytest.raises(InvalidInput, match="cursor"):
            await searcher.search(Scope(), replace(request, cursor=forged))
    assert (await searcher.search(Scope(), replace(request, cursor=cursor, k=1))).hits != ()


async def test_an_empty_query_a_k_out_of_range_and_a_time_span_turned_around_are_refused(store: SqliteStore) -> None:
    for query in ("", " ", "\n\t", "\u3000"):
        with pytest.raises(InvalidInput, match="empty"):
            await search(store, query)
    for k in (0, -1, 101, 10**9):
        with pytest.raises(InvalidInput, match="1 to 100"):
            await search(store, "ferry", k=k)
    with pytest.raises(InvalidInput, match="swap"):
        await search(store, "ferry", filters=SearchFilters(since=2, until=1))


async def test_a_query_longer_than_the_policy_takes_is_refused_by_its_length(store: SqliteStore) -> None:
    with pytest.raises(InvalidInput, match="100,000"):
        await search(store, "ferry " * 20_000)
    with pytest.raises(InvalidInput, match="the limit is 10"):
        await search(store, "eleven chars"[:11], policy=SearchPolicy(max_query_chars=10))
