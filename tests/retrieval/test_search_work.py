"""The work of one search is bounded, however common the words, and no record is left out for its age."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest

from kalito_mcp.domain.records import Role
from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.search import Candidate, SearchFilters
from kalito_mcp.storage.sqlite.database import SqliteStore
from kalito_mcp.storage.sqlite.search_index import SqliteSearchIndex
from tests import drafts
from tests.retrieval.stored_memories import ANYTHING, remember, remember_apart, search
from tests.scripted import START_MS

pytestmark = pytest.mark.anyio
DAY_MS = 86_400_000


@dataclass
class Looked:
    """How many texts the searches read."""

    texts: int = 0


@pytest.fixture
def looked(monkeypatch: pytest.MonkeyPatch) -> Looked:
    """Counts at the store's own method."""
    counts, original = Looked(), SqliteSearchIndex.candidates

    def counting(self: SqliteSearchIndex, keys: Sequence[int]) -> Sequence[Candidate]:
        found = original(self, keys)
        counts.texts += len(found)
        return found

    monkeypatch.setattr(SqliteSearchIndex, "candidates", counting)
    return counts


async def test_a_common_word_among_many_records_costs_no_more_than_the_policy_allows(
    store: SqliteStore, looked: Looked
) -> None:
    for part in range(4):
        await remember(store, *(f"the data of today {part}x{n}" for n in range(5_000)))
    assert len(await search(store, "data today", k=10)) == 10
    assert looked.texts <= ANYTHING.read + 2 * 10  # with the turns around ten hits
    looked.texts = 0
    assert await search(store, "data today", filters=SearchFilters(roles=frozenset({Role.SYSTEM}))) == ()
    assert looked.texts == 0


async def test_more_texts_are_read_only_when_a_page_needs_them(store: SqliteStore, looked: Looked) -> None:
    both, one = [f"ferry moss x{n}" for n in range(30)], [f"ferry y{n}" for n in range(60)]
    for number, text in enumerate(both + one):
        await remember(store, text, scope=Scope(session=f"s{number}"))
    policy = replace(ANYTHING, read=30)
    assert {hit.text for hit in await search(store, "ferry moss", k=10, policy=policy)} <= set(both)
    assert looked.texts == 30
    looked.texts = 0
    assert len(await search(store, "ferry moss", k=90, policy=policy)) == 90
    assert looked.texts == 90


async def test_a_phrase_is_looked_for_in_a_bounded_number_of_texts(store: SqliteStore, looked: Looked) -> None:
    await remember_apart(store, *(f"moss ferry x{n}" for n in range(60)))
    policy = replace(ANYTHING, phrase_texts=20, read=5)
    assert len(await search(store, '"ferry moss"', k=4, policy=policy)) == 4
    assert looked.texts == 20


async def test_no_more_candidates_are_found_than_the_policy_allows(store: SqliteStore) -> None:
    await remember(store, *(f"ferry x{n}" for n in range(60)))
    assert len(await search(store, "ferry", k=100, policy=replace(ANYTHING, candidates=25))) == 25


@pytest.mark.parametrize("candidates", [1, 40])
async def test_the_candidates_are_those_that_match_best_and_of_equal_ones_the_newest(
    store: SqliteStore, candidates: int
) -> None:
    said = ["the ferry to Moss", *[f"ferry {'x ' * 30}"] * 20, *(f"the ferry y{n}" for n in range(20))]
    best, *rest = await remember_apart(store, *said)
    equal = rest[20:]
    hits = await search(store, "ferry Moss", k=100, policy=replace(ANYTHING, candidates=candidates))
    found = {int(one[4:]) for hit in hits for one in (hit.record_id, *hit.same)}
    expected = [best, *reversed(equal)][:candidates]
    assert set(expected) <= found
    assert len(found) == candidates


async def test_a_session_is_searched_behind_newer_records_of_others(store: SqliteStore) -> None:
    old = await remember(store, *(f"ferry x{n}" for n in range(30)), scope=Scope(session="old"))
    await remember(store, *["ferry"] * 60, scope=Scope(session="new"))
    hits = await search(store, "ferry", scope=Scope(session="old"), policy=replace(ANYTHING, candidates=10))
    assert {int(hit.record_id[4:]) for hit in hits} <= set(old)
    assert len(hits) == 10


async def test_common_words_before_a_time_are_found_behind_newer_records(store: SqliteStore) -> None:
    for day in range(4):
        said = [drafts.message(f"the data of {day}x{n}", created_at=START_MS + day * DAY_MS + n) for n in range(30)]
        await remember(store, *said, scope=Scope(session=f"day{day}"))
    policy = replace(ANYTHING, candidates=10)
    for until in (START_MS + DAY_MS + 40, START_MS + 40):
        hits = await search(store, "data", filters=SearchFilters(until=until), policy=policy, k=5)
        assert len(hits) == 5
        assert max(hit.created_at for hit in hits) <= until
    assert await search(store, "data", filters=SearchFilters(until=START_MS - 1), policy=policy) == ()


async def test_common_words_that_only_an_old_record_joins_are_found_behind_thousands_of_newer_ones(
    store: SqliteStore,
) -> None:
    [key] = await remember(store, "the heron took the ferry")
    for word in ("heron", "ferry"):
        await remember(store, *(f"a {word} x{n}" for n in range(4_000)), scope=Scope(session=word))
    assert (await search(store, "heron ferry"))[0].record_id == f"msg_{key}"
