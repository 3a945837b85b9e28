"""What a search returns: each text once, page by page, with reasons, or a plain statement that there is nothing."""

from collections.abc import Sequence
from dataclasses import replace

import anyio
import pytest

from kalito_mcp.domain.records import RecordType, Role
from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.search import SearchFilters, SearchRequest
from kalito_mcp.errors import ModelUnavailable
from kalito_mcp.retrieval.policy import SearchPolicy
from kalito_mcp.retrieval.search import Searcher
from kalito_mcp.retrieval.weights import FEATURES
from kalito_mcp.storage.sqlite.database import SqliteStore
from tests import drafts
from tests.retrieval.stored_memories import ANYTHING, TRIP, embed, hits, page_of, pages, remember, said_by
from tests.scripted import START_MS, ScriptedClock
from tests.scripted_embedder import ScriptedEmbedder

pytestmark = pytest.mark.anyio
DAY_MS = 86_400_000
PLACES = "Moss Oslo Bergen Horten Larvik Molde Narvik Alta Hamar Halden Skien Voss".split()


async def pin(store: SqliteStore, *contents: str) -> None:
    async with store.write() as transaction:
        session = await transaction.sessions.ensure(TRIP, now_ms=START_MS)
        await transaction.conversations.add_pins(session, [drafts.pin(content) for content in contents])


async def test_equal_texts_are_one_hit_with_the_ids_of_the_others(store: SqliteStore) -> None:
    keys = await remember(
        store, "The ferry leaves at seven.", "the FERRY leaves, at seven", "The ferry!", "seven: the ferry leaves at"
    )
    found = await hits(store, "ferry leaves seven")
    assert len(found) == 2
    told = next(hit for hit in found if hit.key != keys[2])
    assert {told.record_id, *told.same} == {f"msg_{key}" for key in (keys[0], keys[1], keys[3])}
    assert next(hit for hit in found if hit.key == keys[2]).same == ()


async def test_one_word_that_differs_in_a_short_text_is_something_new(store: SqliteStore) -> None:
    await remember(store, "The ferry leaves at seven.", "The ferry leaves at eight.")
    assert [hit.same for hit in await hits(store, "ferry")] == [(), ()]


async def test_the_same_words_of_another_speaker_are_something_new(store: SqliteStore) -> None:
    await remember(store, *(drafts.message("I take the ferry.", name=name) for name in ("Ann", "Bob", None)))
    assert sorted(hit.name or "" for hit in await hits(store, "Who takes the ferry?")) == ["", "Ann", "Bob"]


async def test_of_a_message_and_its_pin_the_message_is_the_hit(store: SqliteStore) -> None:
    said = ("My ferry leaves Moss at seven.", "Ann's ferry to Oslo leaves at eight.")
    keys = await remember(store, drafts.message(said[0]), drafts.message(said[1], name="Ann"), "No ferry at nine.")
    await pin(store, *said, "The ferry is late.")
    found = {hit.text: hit for hit in await hits(store, "ferry")}
    assert [found[text].record_id for text in said] == [f"msg_{key}" for key in keys[:2]]
    assert [found[text].same for text in said] == [(f"pin_{text}",) for text in said]
    assert found["The ferry is late."].record_id == "pin_The ferry is late."
    assert len(found) == 4


async def test_a_pin_is_the_hit_if_its_message_matches_less_or_is_filtered_out(
    store: SqliteStore,
) -> None:
    words = " ".join(f"word{n}" for n in range(20))
    await remember(store, f"{words} ferry")
    await pin(store, f"{words} ferry Moss")
    assert f"{words} ferry Moss" in {hit.text for hit in await hits(store, "ferry Moss")}
    pins = SearchFilters(types=frozenset({RecordType.PIN}))
    [found] = (await page_of(store, SearchRequest("ferry", filters=pins))).hits
    assert found.text == f"{words} ferry Moss"


async def test_a_pin_of_a_repeated_message_is_among_the_ids_of_the_hit(
    store: SqliteStore,
) -> None:
    keys = await remember(store, "The ferry leaves at seven.", "the ferry leaves at SEVEN")
    await pin(store, "The ferry leaves at seven!")
    [told] = await hits(store, "ferry leaves seven")
    assert {told.record_id, *told.same} == {f"msg_{keys[0]}", f"msg_{keys[1]}", "pin_The ferry leaves at seven!"}
    assert told.record_id.startswith("msg_")


async def test_a_page_of_ten_has_ten_answers_and_no_repeat_by_pins_and_summaries(store: SqliteStore) -> None:
    facts = [f"The ferry to {place} costs {number} crowns." for number, place in enumerate(PLACES)]
    await remember(store, *(f"I asked at the harbour. {fact} After that we walked home in the rain." for fact in facts))
    await pin(store, *facts)
    async with store.write() as transaction:
        session = await transaction.sessions.ensure(TRIP, now_ms=START_MS)
        await transaction.conversations.add_summary(session, drafts.summary(1, 12, text=" ".join(facts)))
    found = await hits(store, "What does the ferry cost?", k=10)
    assert [hit.type for hit in found] == [RecordType.MESSAGE] * 10
    assert len({hit.text for hit in found}) == 10


async def test_a_summary_is_a_hit_if_the_messages_do_not_have_what_it_has_of_the_query(store: SqliteStore) -> None:
    await remember(store, "We take the boat.")
    async with store.write() as transaction:
        session = await transaction.sessions.ensure(TRIP, now_ms=START_MS)
        await transaction.conversations.add_summary(session, drafts.summary(1, 1, text="They go by ferry, a boat."))
    assert {hit.type for hit in await hits(store, "ferry boat")} == {RecordType.MESSAGE, RecordType.SUMMARY}


async def test_texts_without_a_word_are_not_the_same_for_that(store: SqliteStore) -> None:
    await remember(store, *(drafts.message(text, name="Ann") for text in ("👍", "😀")))
    assert {hit.text for hit in await hits(store, "Ann")} == {"👍", "😀"}


async def test_what_says_the_same_is_on_no_later_page_either(store: SqliteStore) -> None:
    await remember(store, *["The ferry leaves at seven."] * 5, *(f"ferry {tree}" for tree in ("ash", "elm", "fir")))
    found = [hit.text for page in await pages(store, SearchRequest("ferry", k=1)) for hit in page]
    assert len(found) == len(set(found)) == 4


@pytest.mark.parametrize("k", [1, 3, 10])
async def test_pages_neither_repeat_nor_move_nor_miss_what_one_page_would_have(store: SqliteStore, k: int) -> None:
    said = [f"{'ferry ' * (n % 3)}{'moss ' * (n % 4)}{'filler ' * (n * 7 % 11)}number{n}" for n in range(60)]
    await remember(store, *said)
    policy = replace(ANYTHING, read=3)
    request = SearchRequest("ferry moss", k=100)
    whole = [(hit.key, hit.score) for hit in (await page_of(store, request, policy=policy)).hits]
    paged = await pages(store, replace(request, k=k), policy)
    joined = [(hit.key, hit.score) for page in paged for hit in page]
    assert joined == whole
    assert len({key for key, _ in joined}) == len(joined) == sum("ferry" in text or "moss" in text for text in said)
    assert all(len(page) == k for page in paged[:-1])


async def test_explaining_adds_parts_and_words_and_changes_nothing_else(store: SqliteStore) -> None:
    await remember(store, "I took the ferry to Moss.", "my puppy came along", "Which ferry?")
    request = SearchRequest("Which pets took the ferry?")
    plain, explained = await page_of(store, request), await page_of(store, replace(request, explain=True))
    assert [replace(hit, parts={}, why=None) for hit in explained.hits] == list(plain.hits)
    for hit in explained.hits:
        assert hit.why
        assert hit.parts.keys() <= set(FEATURES)
        assert hit.score <= sum(hit.parts.values()) + 0.0001  # age takes some of it
    assert all((hit.parts, hit.why) == ({}, None) for hit in plain.hits)


async def test_a_search_as_of_a_moment_is_the_same_whenever_it_is_made(store: SqliteStore) -> None:
    old = drafts.message("the ferry then", created_at=START_MS - 400 * DAY_MS)
    await remember(store, old, "the ferry now", drafts.message("the ferry last week", created_at=START_MS - 7 * DAY_MS))
    clock = ScriptedClock()
    request = SearchRequest("the ferry last week", now_ms=START_MS, explain=True)
    first = await page_of(store, request, clock=clock)
    clock.advance(1_000 * 86_400)
    assert await page_of(store, request, clock=clock) == first
    by_the_clock = await page_of(store, replace(request, now_ms=None), clock=clock)
    assert [hit.score for hit in by_the_clock.hits] != [hit.score for hit in first.hits]
    clock.wall_ms = START_MS
    assert await page_of(store, replace(request, now_ms=None), clock=clock) == first


async def test_age_takes_a_tenth_of_a_score_at_most(store: SqliteStore) -> None:
    await remember(store, "the ferry")
    [fresh] = (await page_of(store, SearchRequest("ferry", now_ms=START_MS))).hits
    [aged] = (await page_of(store, SearchRequest("ferry", now_ms=START_MS + 20_000 * DAY_MS))).hits
    assert 0.9 * fresh.score - 0.0001 <= aged.score < fresh.score


async def test_if_no_hit_reaches_the_least_score_none_is_returned_and_a_note_says_so(store: SqliteStore) -> None:
    await remember(store, "the ferry and the quince", "a ferry of them")
    request = SearchRequest("ferry moss oslo tickets harbour crossing")
    found = await page_of(store, request)
    assert found.hits
    assert found.note is None
    none = await page_of(store, request, policy=SearchPolicy(min_score=0.99))
    assert (none.hits, none.next_cursor) == ((), None)
    words = '"moss", "oslo", "tickets", "harbour", "crossing"'
    assert none.note == f"nothing matches this query; not found: {words}"


async def test_if_the_best_hit_reaches_the_least_score_the_others_are_returned_too(store: SqliteStore) -> None:
    await remember(store, "the ferry to Moss at seven", "a ferry " + "filler " * 40)
    both = (await page_of(store, SearchRequest("ferry Moss seven"))).hits
    policy = SearchPolicy(min_score=(both[0].score + both[1].score) / 2)
    page = await page_of(store, SearchRequest("ferry Moss seven"), policy=policy)
    assert page.hits == both
    assert page.note is None


async def test_of_what_is_not_there_at_all_the_note_names_the_words(store: SqliteStore) -> None:
    await remember(store, "the ferry")
    asked = SearchRequest("quince or medlar?")
    assert (await page_of(store, asked)).note == 'nothing matches this query; not found: "quince", "medlar"'
    # Others than those that the filters admit may say them.
    assert (await page_of(store, replace(asked, filters=SearchFilters(since=1)))).note is None
    assert (await page_of(store, SearchRequest("!?"))).note == "the query has no word to look for"


async def test_a_note_says_only_what_is_so(store: SqliteStore) -> None:
    await remember(store, "my salary is in the moss file")
    await remember(store, said_by("Ben", "it rained all day"), scope=Scope(session="elsewhere"))
    for asked in (
        SearchRequest("What is Ben's salary? -moss", now_ms=START_MS + DAY_MS),
        SearchRequest("What happened yesterday? -moss -rained", now_ms=START_MS + DAY_MS),
    ):
        page = await page_of(store, asked, policy=SearchPolicy())
        assert page.hits == ()
        assert (page.note or "").startswith('your "-word" excluded ')
    ann = SearchFilters(names=frozenset({"Ann"}))
    page = await page_of(store, SearchRequest("yesterday", filters=ann, now_ms=START_MS + DAY_MS))
    assert (page.hits, page.note) == ((), None)


async def test_a_note_names_no_parts_of_words_of_a_script_without_spaces(store: SqliteStore) -> None:
    await remember(store, "the harmonium")
    assert (await page_of(store, SearchRequest("渡船几点出发"))).note == "nothing matches this query"


async def test_a_pin_lifts_the_message_that_it_copies_to_its_place(store: SqliteStore) -> None:
    text = "The cabin key hangs behind the blue door."
    for number in range(3):
        await remember(store, f"I looked for the cabin key {'x' * number}", scope=Scope(session=f"s{number}"))
    old = drafts.message(text, role=Role.ASSISTANT, created_at=START_MS - 900 * DAY_MS)
    [key] = await remember(store, old, scope=Scope(session="old"))
    async with store.write() as transaction:
        session = await transaction.sessions.ensure(Scope(session="old"), now_ms=START_MS)
        await transaction.conversations.add_pins(session, [drafts.pin(text)])
    request = SearchRequest("Where is the cabin key?", k=10)
    found = (await page_of(store, request)).hits
    told = next(hit for hit in found if hit.text == text)
    assert (told.key, told.type, len(told.same)) == (key, RecordType.MESSAGE, 1)
    assert [hit.score for hit in found] == sorted((hit.score for hit in found), reverse=True)


async def test_what_only_an_exclusion_takes_away_is_said_to_be_left_out(store: SqliteStore) -> None:
    await remember(store, "a boat trip with my mother", "the boat costs 640 euros")
    page = await page_of(store, SearchRequest('"boat trip" -mother'))
    assert (page.hits, page.note) == ((), 'your "-word" excluded 1 record; search without it to see more')
    assert [hit.text for hit in (await page_of(store, SearchRequest("boat -mother"))).hits] == [
        "the boat costs 640 euros"
    ]


@pytest.mark.parametrize(
    "query",
    [
        "ferry",
        "Which ferry leaves for Moss at seven?",
        "ferries to Moss",
        "what did I say about the ferry?",
    ],
)
async def test_a_question_about_what_was_said_is_answered_under_the_policy_as_it_is(
    store: SqliteStore, query: str
) -> None:
    await remember(store, "hello", "The ferry to Moss leaves at seven.", "the weather is fine")
    page = await page_of(store, SearchRequest(query), policy=SearchPolicy())
    assert page.hits[0].text == "The ferry to Moss leaves at seven."


@pytest.mark.parametrize(
    "query",
    [
        "ferry " + " ".join(f"word{n}x" for n in range(10_000)),
        "ferry " * 10_000,
        "f",
        "ferry 😀 👩\u200d👩\u200d👧 !!!",
        "😀",
        "フ",
    ],
    ids=["ten thousand words", "one word ten thousand times", "one letter", "emoji", "emoji alone", "one kana"],
)
async def test_a_query_of_any_length_has_an_answer(store: SqliteStore, query: str) -> None:
    await remember(store, "the ferry to Moss", "f as in ferry", "フ", "😀 😀")
    page = await page_of(store, SearchRequest(query, explain=True))
    assert all(0 < hit.score <= 1 and hit.why is not None for hit in page.hits)
    assert bool(page.hits) == any(word in query for word in ("ferry", "f", "フ", "😀"))


async def test_an_embedder_that_fails_or_does_not_answer_leaves_a_search_by_words_and_a_note(
    store: SqliteStore,
) -> None:
    def fail(texts: Sequence[str]) -> None:
        raise ModelUnavailable("the model is away")

    await remember(store, "the ferry")
    page = await page_of(store, SearchRequest("ferry"), embedder=ScriptedEmbedder(before=fail))
    assert [hit.text for hit in page.hits] == ["the ferry"]
    assert "by words only: the model is away" in (page.note or "")

    class Silent(ScriptedEmbedder):
        async def embed(self, texts: Sequence[str], *, is_query: bool = False):  # type: ignore[no-untyped-def]
            await anyio.sleep_forever()

    policy = replace(ANYTHING, embedding_timeout_s=0.0)
    page = await page_of(store, SearchRequest("ferry"), policy=policy, embedder=Silent())
    assert [hit.text for hit in page.hits] == ["the ferry"]
    assert "by words only" in (page.note or "")


async def test_an_urgent_search_is_by_words_until_the_model_is_loaded_and_by_meaning_then(store: SqliteStore) -> None:
    await remember(store, "the ferry", "the tram")
    asked: list[str] = []
    embedder = ScriptedEmbedder(before=asked.extend)
    await embed(store, embedder)
    asked.clear()
    searcher = Searcher(store, ANYTHING, ScriptedClock(), embedder=embedder)
    request = SearchRequest("ferry", is_urgent=True)
    page = await searcher.search(Scope(), request)
    assert ([hit.text for hit in page.hits], page.note, asked) == (["the ferry"], None, [])
    await searcher.warm_up(Scope())
    asked.clear()
    assert (await searcher.search(Scope(), request)).hits[0].text == "the ferry"
    assert asked == ["ferry"]
    # An ordinary search loads the model, too.
    other = Searcher(store, ANYTHING, ScriptedClock(), embedder=embedder)
    await other.search(Scope(), SearchRequest("ferry"))
    asked.clear()
    await other.search(Scope(), request)
    assert asked == ["ferry"]


async def test_vectors_of_another_embedder_are_not_compared_and_the_note_says_what_to_do(store: SqliteStore) -> None:
    await remember(store, "the ferry")
    async with store.write() as transaction:
        await transaction.vectors.open_index("another", 64)
    page = await page_of(store, SearchRequest("ferry"), embedder=ScriptedEmbedder())
    assert [hit.text for hit in page.hits] == ["the ferry"]
    assert "reindex" in (page.note or "")


async def test_a_phrase_that_the_best_texts_have_stays_required_on_later_pages(store: SqliteStore) -> None:
    await remember(store, *(f"ferry number {n} in the night" for n in range(90)), "the night ferry leaves at seven")
    page = await page_of(store, SearchRequest('"night ferry"', k=100))
    assert [hit.text for hit in page.hits] == ["the night ferry leaves at seven"]
    assert page.note is None
