"""The candidate generator on a real store: what makes a record a candidate, and its context."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kalito_mcp.domain.records import Origin, RecordType, Role
from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.search import SearchFilters, SearchRequest
from kalito_mcp.retrieval.candidate_generator import highest
from kalito_mcp.retrieval.policy import SearchPolicy
from kalito_mcp.storage.sqlite.database import SqliteStore
from tests import drafts
from tests.retrieval.stored_memories import embed, hits, page_of, pages, parts, remember, remember_apart, said_by, texts
from tests.scripted import START_MS
from tests.scripted_embedder import ScriptedEmbedder

pytestmark = pytest.mark.anyio
HOME = Scope(session="home")


async def test_a_mistyped_word_finds_what_was_meant_and_says_so(store: SqliteStore) -> None:
    await remember(store, "She took up painting.", "nothing of that sort", "the recipe for bread")
    [hit] = await hits(store, "paintnig")
    assert hit.text == "She took up painting."
    assert '"painting" for "paintnig"' in (hit.why or "")
    assert await texts(store, "xqzvw") == []


async def test_a_mistake_in_a_form_whose_base_ends_in_e_is_undone(store: SqliteStore) -> None:
    mistyped = {"hikign": "They went hiking.", "mkaing": "She is making bread.", "liekd": "They liked it."}
    await remember(store, *mistyped.values(), "nothing of that sort")
    for query, said in mistyped.items():
        assert await texts(store, query) == [said]


async def test_another_form_of_a_word_is_found(store: SqliteStore) -> None:
    forms = {"hiking": "a hike", "Who moved?": "we are moving", "bake": "baking"}
    await remember(store, *forms.values(), "nothing of that sort")
    for query, said in forms.items():
        [hit] = await hits(store, query)
        assert hit.text == said
        assert "(for" not in (hit.why or "")


async def test_a_word_that_something_holds_is_never_taken_for_another(store: SqliteStore) -> None:
    await remember(store, "a garden", "a warden")
    assert await texts(store, "warden") == ["a warden"]


async def test_a_mistyped_word_is_worth_less_than_the_same_word_written_well(store: SqliteStore) -> None:
    await remember(store, "She took up painting.")
    [well], [ill] = await hits(store, "painting"), await hits(store, "paintnig")
    assert well.score > ill.score > 0


async def test_a_phrase_is_required_where_some_text_has_it(store: SqliteStore) -> None:
    await remember(store, "It leaves at seven.", "Seven of them, at last, and it leaves.", "seven leaves")
    assert await texts(store, '"leaves at seven"') == ["It leaves at seven."]
    assert await texts(store, 'seven "leaves at seven"') == ["It leaves at seven."]


async def test_the_words_of_a_phrase_that_no_text_has_still_count(store: SqliteStore) -> None:
    await remember(store, "Seven of them, at last, and it leaves.", "nothing")
    assert await texts(store, '"leaves at seven"') == ["Seven of them, at last, and it leaves."]
    assert await texts(store, '"leaves at seven" -last') == []


async def test_what_is_excluded_is_no_hit_in_any_of_its_forms(store: SqliteStore) -> None:
    await remember(store, "the ferry to Moss", "the ferry to Oslo", "ferries by night trains", "the night ferry")
    assert set(await texts(store, "ferry -moss")) == {"the ferry to Oslo", "ferries by night trains", "the night ferry"}
    assert set(await texts(store, "night -ferries")) == set()
    assert await texts(store, 'night -"night trains"') == ["the night ferry"]


async def test_filters_admit_by_name_tag_origin_importance_and_moment(store: SqliteStore) -> None:
    await remember(
        store,
        drafts.message("ferry ann", name="Ann", importance=0.9, details={"tags": ["trip"]}),
        drafts.message("ferry bob", name="Bob", importance=0.2, created_at=START_MS - 10),
        drafts.message("ferry tool", origin=Origin.TOOL, created_at=START_MS + 10),
    )
    for filters, expected in [
        (SearchFilters(names=frozenset({"ANN"})), {"ferry ann"}),
        (SearchFilters(names=frozenset({"ann", "bob"})), {"ferry ann", "ferry bob"}),
        (SearchFilters(tags=frozenset({"trip", "none"})), {"ferry ann"}),
        (SearchFilters(origins=frozenset({Origin.TOOL})), {"ferry tool"}),
        (SearchFilters(min_importance=0.9), {"ferry ann"}),
        (SearchFilters(since=START_MS), {"ferry ann", "ferry tool"}),
        (SearchFilters(until=START_MS), {"ferry ann", "ferry bob"}),
        (SearchFilters(since=START_MS, until=START_MS), {"ferry ann"}),
        (SearchFilters(names=frozenset({"ann"}), origins=frozenset({Origin.TOOL})), set()),
    ]:
        assert set(await texts(store, "ferry", filters=filters)) == expected, filters


async def test_what_is_filtered_out_is_no_hit_but_still_what_was_said_around_it(store: SqliteStore) -> None:
    asked = drafts.message("When does the ferry to Moss leave?", role=Role.ASSISTANT)
    await remember(store, asked, "At seven, by the ferry.")
    await remember(store, "At eight, by the ferry.", scope=HOME)
    found = await parts(store, "ferry Moss", filters=SearchFilters(roles=frozenset({Role.USER})))
    assert list(found) == ["At seven, by the ferry.", "At eight, by the ferry."]
    assert found["At seven, by the ferry."]["words"] > found["At eight, by the ferry."]["words"]
    assert await texts(store, "ferry Moss", filters=SearchFilters(types=frozenset({RecordType.PIN}))) == []


async def test_the_end_of_one_session_is_no_context_of_the_beginning_of_the_next(store: SqliteStore) -> None:
    await remember(store, "hello", "the train to Moss")
    await remember(store, "the ferry", "hello again", scope=HOME)
    [train] = [hit for hit in await hits(store, "ferry Moss") if hit.text == "the train to Moss"]
    assert "just before or after" not in (train.why or "")
    await remember(store, "the ferry it is")
    [train] = [hit for hit in await hits(store, "ferry Moss") if hit.text == "the train to Moss"]
    assert '"ferry" said just before or after' in (train.why or "")


async def test_two_hosts_that_write_by_turns_leave_each_others_context_alone(store: SqliteStore) -> None:
    mine = ["Which ferry?", "The one to Moss.", "It leaves at seven.", "Fine."]
    for text in mine:
        await remember(store, text, scope=Scope(session="mine"))
        await remember(store, f"quince {text[:2]}", "rhubarb rhubarb", scope=Scope(session="theirs"))
    interleaved = await parts(store, "ferry Moss seven", scope=Scope(session="mine"))
    await remember(store, *mine, scope=Scope(session="alone"))
    alone = await parts(store, "ferry Moss seven", scope=Scope(session="alone"))
    assert interleaved.keys() == alone.keys() == set(mine) - {"Fine."}
    for text, found in interleaved.items():
        # How rare a word is, is counted over the whole memory: the second time it is less so.
        assert found["words"] == pytest.approx(alone[text]["words"], abs=0.05)


async def test_who_is_named_in_the_query_speaks_for_what_they_said(store: SqliteStore) -> None:
    await remember(store, said_by("Bob", "I took the ferry."), said_by("Ann", "I took the ferry too."))
    found = await parts(store, "Did Ann take the ferry?")
    assert "speaker" in found["I took the ferry too."]
    assert "speaker" not in found["I took the ferry."]


async def test_the_time_that_is_named_speaks_for_what_was_said_then(store: SqliteStore) -> None:
    month_ms = 30 * 86_400_000
    old, new = drafts.message("ferry then", created_at=START_MS - 4 * month_ms), drafts.message("ferry now")
    await remember_apart(store, old, new)
    found = await parts(store, "the ferry in March 2026")
    assert found["ferry now"].get("time", 0) > found["ferry then"].get("time", 0)


async def test_a_vector_finds_what_shares_no_word_and_a_filter_still_holds(store: SqliteStore) -> None:
    embedder = ScriptedEmbedder()
    keys = await remember(store, "unbelievableness", "quince jam", "rhubarb", "the slow boat")
    await embed(store, embedder)
    page = await page_of(store, SearchRequest("believable", explain=True), embedder=embedder)
    assert page.hits[0].record_id == f"msg_{keys[0]}"
    assert "meaning" in page.hits[0].parts
    assert page.note is None
    assistants = SearchRequest("believable", filters=SearchFilters(roles=frozenset({Role.ASSISTANT})))
    assert (await page_of(store, assistants, embedder=embedder)).hits == ()


async def test_a_turn_next_to_a_candidate_is_compared_though_it_is_none_itself(store: SqliteStore) -> None:
    embedder = ScriptedEmbedder()
    await remember(store, "unbelievableness", "the ferry", "quince jam", "rhubarb")
    await embed(store, embedder)
    request, policy = SearchRequest("the ferry believable", explain=True), SearchPolicy(nearest=1)
    page = await page_of(store, request, policy=policy, embedder=embedder)
    assert next(hit for hit in page.hits if hit.text == "the ferry").parts["nearby"] > 0


async def test_a_memory_of_few_records_is_searched_by_meaning_too(store: SqliteStore) -> None:
    embedder = ScriptedEmbedder()
    for said in ("unbelievableness", "Unbelievableness!"):
        await remember(store, said)
        await embed(store, embedder)
        assert (await page_of(store, SearchRequest("believable"), embedder=embedder)).hits


async def test_a_session_is_searched_alone(store: SqliteStore) -> None:
    await remember(store, "the ferry")
    await remember(store, "the ferry home", scope=HOME)
    assert [hit.text for hit in await hits(store, "ferry", scope=HOME)] == ["the ferry home"]
    assert await hits(store, "ferry", scope=Scope(session="none")) == ()


async def test_with_vectors_the_nearest_records_are_found_however_far_they_are(store: SqliteStore) -> None:
    embedder = ScriptedEmbedder()
    await remember(store, *(f"{fruit} jam" for fruit in ("quince", "plum", "fig")))
    await embed(store, embedder)
    page = await page_of(store, SearchRequest("believable"), embedder=embedder)
    assert page.hits
    assert page.note is None


async def test_other_wordings_find_what_the_query_has_no_word_for(store: SqliteStore) -> None:
    await remember(store, "We pay 900 for the flat.", "Nothing of that sort.")
    assert await texts(store, "rent") == []
    page = await page_of(store, SearchRequest("rent", also=("what the flat costs",)))
    assert [hit.text for hit in page.hits] == ["We pay 900 for the flat."]


async def test_a_phrase_that_no_text_has_changes_no_page(store: SqliteStore) -> None:
    await remember(store, *(f"at {'nine ' * (at % 3)} it leaves, say the {at} of them" for at in range(120)))
    quoted, plain = [
        [[hit.text for hit in page] for page in await pages(store, SearchRequest(query, k=50))]
        for query in ('"it leaves nine"', "it leaves nine")
    ]
    assert quoted == plain
    assert len({text for page in quoted for text in page}) == sum(map(len, quoted)) == 120


@given(
    st.lists(
        st.sampled_from([0.0, 0.1, 0.2, 0.5, 0.9]) | st.integers(0, 10_000).map(lambda part: part / 10_000), max_size=60
    ),
    st.integers(1, 40),
    st.integers(200, 400),
)
def test_the_highest_values_are_those_of_a_sort_and_of_equal_ones_the_last(
    some: list[float], count: int, times: int
) -> None:
    values = np.array([*some * times, *some, 0.3, *[0.0] * count], np.float32)
    wanted = np.lexsort((np.arange(len(values)), values))[-count:]
    assert sorted(highest(values, count).tolist()) == sorted(wanted.tolist())
