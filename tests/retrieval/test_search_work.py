"""The work of one search is bounded, however common the words and however many the records."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest

from kalito_mcp.domain.records import Role
from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.search import Candidate, CandidateStub, SearchFilters
from kalito_mcp.retrieval.policy import SearchPolicy
from kalito_mcp.storage.sqlite.database import SqliteStore
from kalito_mcp.storage.sqlite.search import SearchQueries
from tests import drafts
from tests.retrieval.stored_memories import ANYTHING, remember, search
from tests.scripted import START_MS

pytestmark = pytest.mark.anyio
DAY_MS = 86_400_000


@dataclass
class Looked:
    """What one search read."""

    keys: int = 0
    candidates: int = 0


@pytest.fixture
def looked(monkeypatch: pytest.MonkeyPatch) -> Looked:
    """Counts the places that are weighed and the texts that are read, at the store's own methods."""
    counts = Looked()
    original, standing = SearchQueries.candidates, SearchQueries.candidate_stubs

    async def placing(
        self: SearchQueries,
        scope: Scope,
        keys: Sequence[int],
        centres: Sequence[int],
        *,
        reach: int,
        filters: SearchFilters,
    ) -> Sequence[CandidateStub]:
        counts.keys += len(keys)
        return await standing(self, scope, keys, centres, reach=reach, filters=filters)

    async def counting(
        self: SearchQueries, scope: Scope, keys: Sequence[int], filters: SearchFilters
    ) -> Sequence[Candidate]:
        answer = await original(self, scope, keys, filters)
        counts.candidates += len(answer)
        return answer

    monkeypatch.setattr(SearchQueries, "candidate_stubs", placing)
    monkeypatch.setattr(SearchQueries, "candidates", counting)
    return counts


async def test_a_common_word_among_many_records_costs_no_more_than_the_policy_allows(
    store: SqliteStore, looked: Looked
) -> None:
    for part in range(4):
        await remember(store, *(f"the data of today {part}x{n}" for n in range(5_000)))
    policy = ANYTHING
    assert len(await search(store, "data today", k=10)) == 10
    assert looked.candidates <= policy.most_read
    looked.keys = 0
    none = SearchFilters(roles=frozenset({Role.SYSTEM}))
    assert await search(store, "data today", filters=none) == ()
    assert 0 < looked.keys <= policy.filtered_candidates


async def test_the_first_texts_read_are_those_that_may_score_nearly_as_high_as_the_tenth(
    store: SqliteStore, looked: Looked
) -> None:
    both, one = [f"ferry moss x{n}" for n in range(30)], [f"ferry y{n}" for n in range(60)]
    for number, text in enumerate(both + one):
        await remember(store, text, scope=Scope(session=f"s{number}"))
    assert len(await search(store, "ferry moss")) == 10
    assert looked.candidates == len(both)
    looked.candidates = 0
    assert len(await search(store, "ferry moss", k=40)) == 40
    assert looked.candidates == len(both + one)
    looked.candidates = 0
    await search(store, "ferry moss", policy=replace(ANYTHING, read=50))
    assert looked.candidates == 50
    looked.candidates = 0
    await search(store, "ferry moss", policy=replace(ANYTHING, worth_reading=0.0))
    assert looked.candidates == len(both + one)


async def test_a_session_is_searched_behind_newer_records_of_others(store: SqliteStore) -> None:
    old = await remember(store, *(f"ferry x{n}" for n in range(30)), scope=Scope(session="old"))
    await remember(store, *["ferry"] * 60, scope=Scope(session="new"))
    policy = SearchPolicy(min_score=0, postings=10)
    hits = await search(store, "ferry", scope=Scope(session="old"), policy=policy)
    assert {hit.key for hit in hits} <= set(old)
    assert len(hits) == 10


async def test_common_words_before_a_time_are_found_behind_newer_records(store: SqliteStore) -> None:
    for day in range(4):
        said = [drafts.message(f"the data of {day}x{n}", created_at=START_MS + day * DAY_MS + n) for n in range(30)]
        await remember(store, *said, scope=Scope(session=f"day{day}"))
    policy = SearchPolicy(min_score=0, postings=10)
    for until in (START_MS + DAY_MS + 40, START_MS + 40):
        hits = await search(store, "data", filters=SearchFilters(until=until), policy=policy, k=5)
        assert len(hits) == 5
        assert max(hit.created_at for hit in hits) <= until
    assert await search(store, "data", filters=SearchFilters(until=START_MS - 1), policy=policy) == ()


async def test_a_rare_old_record_is_found_among_many_newer_ones(store: SqliteStore) -> None:
    [key] = await remember(store, "the heron took the ferry")
    await remember(store, *["the ferry left"] * 3_000)
    assert (await search(store, "heron ferry"))[0].key == key


async def test_common_words_that_only_an_old_record_joins_are_found_behind_thousands_of_newer_ones(
    store: SqliteStore,
) -> None:
    [key] = await remember(store, "the heron took the ferry")
    for word in ("heron", "ferry"):
        await remember(store, *(f"a {word} x{n}" for n in range(4_000)), scope=Scope(session=word))
    assert (await search(store, "heron ferry"))[0].key == key
