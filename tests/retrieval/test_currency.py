"""A search tells what is true now before what was true once, and the older first if it is asked for."""

import random

import pytest

from kalito_mcp.domain.records import RecordType
from kalito_mcp.domain.search import Hit, SearchFilters, SearchRequest
from kalito_mcp.retrieval import currency
from kalito_mcp.retrieval.policy import SearchPolicy
from kalito_mcp.storage.sqlite.database import SqliteStore
from tests import drafts
from tests.retrieval.stored_memories import page_of, pages, remember

pytestmark = pytest.mark.anyio
BOSS = ("My boss is Hanna.", "The soup was good.", "My new boss is Igor.")


async def hits(store: SqliteStore, query: str, **filters: object) -> list[Hit]:
    request = SearchRequest(query=query, filters=SearchFilters(**filters))  # type: ignore[arg-type]
    return list((await page_of(store, request, policy=SearchPolicy())).hits)


async def test_the_current_one_comes_first_and_the_older_one_is_labelled(store: SqliteStore) -> None:
    first, _, second = await remember(store, *BOSS)
    newer, older = await hits(store, "Who is my boss?")
    assert (newer.key, older.key) == (second, first)
    assert newer.superseded_by is None
    assert older.superseded_by == newer.record_id
    assert older.valid_until == newer.created_at
    assert [one.text for one in older.outdated] == ["My boss is Hanna"]
    assert newer.score >= older.score


@pytest.mark.parametrize("query", ["Who was my previous boss?", "Who was my boss before?", "Who used to be my boss?"])
async def test_a_question_about_the_past_gets_the_older_one_first(store: SqliteStore, query: str) -> None:
    first, _, _ = await remember(store, *BOSS)
    assert (await hits(store, query))[0].key == first


PORT = ("The api of the shop listens on port 4010.", "The soup was good.", "I put the api of the shop behind 4310.")


@pytest.mark.parametrize("query", ["Where is the api of the shop?", "Which api does the shop have now?"])
async def test_of_hits_that_match_alike_the_newest_answers_what_is_so(store: SqliteStore, query: str) -> None:
    older, _, newer = await remember(store, *PORT)
    found = await hits(store, query)
    assert [one.key for one in found[:2]] == [newer, older]
    assert found[0].score >= found[1].score


async def test_a_question_about_what_happened_gets_the_best_match_first(store: SqliteStore) -> None:
    older, *_ = await remember(store, *PORT)
    assert (await hits(store, "Where did the api of the shop listen?"))[0].key == older


async def test_what_has_none_of_the_words_is_brought_in(store: SqliteStore) -> None:
    _, second = await remember(store, "Nora's favorite color is ochre.", "Nora switched to teal.")
    found = await hits(store, "What is Nora's favorite color?")
    assert found[0].key == second


async def test_what_is_brought_in_passes_the_filters(store: SqliteStore) -> None:
    first, _, second = await remember(store, *BOSS)
    assert second not in {one.key for one in await hits(store, "my boss", names=frozenset({"Nobody"}))}
    assert await hits(store, "my boss", types=frozenset({RecordType.TASK})) == []
    assert first in {one.key for one in await hits(store, "my boss", types=frozenset({RecordType.MESSAGE}))}


async def test_a_question_about_the_rest_of_a_record_leaves_it_where_it_is(store: SqliteStore) -> None:
    both, _ = await remember(store, "I live in Porto and work at Globex.", "I moved to Graz.")
    [best, *_] = await hits(store, "Where do I work?")
    assert best.key == both
    assert best.superseded_by is None
    assert [one.text for one in best.outdated] == ["I live in Porto"]


async def test_a_contradiction_is_shown_as_a_conflict(store: SqliteStore) -> None:
    await remember(store, "I work at Globex.", "I work at Initech.")
    found = {one.text: one for one in await hits(store, "Where do I work?")}
    older, newer = found["I work at Globex."], found["I work at Initech."]
    assert older.superseded_by is None
    assert older.conflicts_with == newer.record_id


async def test_a_named_record_is_superseded_as_a_whole(store: SqliteStore) -> None:
    [first] = await remember(store, "The mug on the left shelf is Petra's.")
    named = drafts.message("All the mugs on the shelf were broken.", details={"supersedes": [f"msg_{first}"]})
    [second] = await remember(store, named)
    newer, older = await hits(store, "the mug on the shelf")
    assert (newer.key, older.superseded_by) == (second, newer.record_id)


async def test_pages_have_every_hit_once(store: SqliteStore) -> None:
    said = [f"I live in Porto{place}." for place in range(12)]
    keys = await remember(store, *said)
    found = [one.key for page in await pages(store, SearchRequest(query="Where do I live?", k=5)) for one in page]
    assert found[0] == keys[-1]
    assert sorted(found) == sorted(set(found))
    assert set(found) == set(keys)


def test_a_long_text_says_no_more_than_all_its_words(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = random.Random(0)
    parts = ["and ", "so", " ", "…", "'s", "你好", "é", "\u0301", "a-b "]
    texts = ["".join(drawn.choices(parts, k=drawn.randrange(12))) for _ in range(2_000)]
    whole = [currency._is_nothing_left(text, [(0, 2)]) for text in texts]
    assert 200 < sum(whole) < 1_800
    monkeypatch.setattr(currency, "_LOOKED_AT", 5)
    assert [currency._is_nothing_left(text, [(0, 2)]) for text in texts] == whole


def test_of_a_long_text_only_the_beginning_is_read_for_what_else_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    monkeypatch.setattr(currency, "words", lambda text: read.append(text) or text.split())
    assert not currency._is_nothing_left("I moved to Porto. " * 10_000, [(0, 18)])
    assert [len(one) for one in read] == [currency._LOOKED_AT]
