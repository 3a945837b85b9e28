"""`ports.search`: which records contain a term and how often, similar terms, and terms with a prefix."""

from collections.abc import Mapping, Sequence

import pytest

from kalito_mcp.domain.memory_records import DELETED_AT, EditType, MemoryRecord
from kalito_mcp.domain.records import RecordType
from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.search import SearchFilters
from kalito_mcp.ports.search import SearchIndex
from kalito_mcp.ports.store import Store
from kalito_mcp.records.sessions import ensure_session
from kalito_mcp.text.analysis import MANY, SEVERAL, index_text
from tests import drafts, index_reads
from tests.contract.conftest import Backend
from tests.scripted import START_MS

pytestmark = pytest.mark.anyio


async def append(store: Store, scope: Scope, *texts: str) -> list[int]:
    async with store.transaction() as transaction:
        session = await ensure_session(transaction.sessions, scope, now_ms=START_MS)
        batch = [drafts.message(text) for text in texts]
        appended = await transaction.conversations.append_messages(session, batch, now_ms=START_MS)
        return [one.id for one in appended]


async def keys_with(store: Store, scope: Scope, *terms: str) -> list[int]:
    """The records of the scope's agent that contain any of the terms, newest first."""
    async with store.view() as view:
        return await index_reads.keys_with(view, scope, *terms)


async def holding(store: Store, scope: Scope, term: str, *, types: frozenset[RecordType] = frozenset()) -> list[int]:
    """The records that a search of the scope finds by a term, newest first."""
    async with store.view() as view:
        return await index_reads.keys_shown(view, scope, term, filters=SearchFilters(types=types))


async def set_forgotten(store: Store, key: int, *, is_forgotten: bool) -> MemoryRecord:
    async with store.transaction() as transaction:
        record = await transaction.records.record(Scope(), f"msg_{key}")
        assert record is not None
        changes = {DELETED_AT: START_MS + 1 if is_forgotten else None}
        kind = EditType.DELETE if is_forgotten else EditType.RESTORE
        return await transaction.records.change(record, drafts.edit(record, changes, edit_type=kind))


async def test_a_term_has_every_record_that_contains_it_oldest_first(store: Store) -> None:
    keys = await append(store, Scope(session="trip"), "apple pear", "pear", "apple", "plum")

    def read(index: SearchIndex) -> list[list[int]]:
        found = index.places(["apple", "pear", "quince"])
        return [index_reads.all_keys(index)[places].tolist() for places in found.values()]

    async with store.view() as view:
        assert await view.search.in_index(Scope(), read) == [[keys[0], keys[2]], keys[:2], []]


async def test_terms_that_are_asked_for_as_one_share_their_postings(store: Store) -> None:
    keys = await append(store, Scope(session="trip"), "pear", "plum", "pear plum", "fig")
    assert await keys_with(store, Scope(), "plum", "pear") == keys[2::-1]
    assert await keys_with(store, Scope(), "pear", "plum", "pear") == keys[2::-1]
    assert await keys_with(store, Scope(), "quince", "fig") == [keys[3]]


async def test_postings_say_whether_a_record_contains_the_term_once_several_or_many_times(store: Store) -> None:
    repeats = (1, 2, 3, 4, 5, 40)
    keys = await append(store, Scope(session="trip"), *("pear " * times for times in repeats))
    async with store.view() as view:
        found = await index_reads.counts_of(view, Scope(), "pear")
    assert found == list(zip(keys, (1, SEVERAL, SEVERAL, MANY, MANY, MANY), strict=True))


async def test_postings_follow_what_is_written_forgotten_and_restored(store: Store) -> None:
    keys = await append(store, Scope(session="trip"), "pear", "plum pear")
    assert await keys_with(store, Scope(), "pear") == keys[::-1]
    keys += await append(store, Scope(session="home"), "pear")
    assert await keys_with(store, Scope(), "pear") == keys[::-1]
    await set_forgotten(store, keys[1], is_forgotten=True)
    assert await keys_with(store, Scope(), "pear") == [keys[2], keys[0]]
    await set_forgotten(store, keys[1], is_forgotten=False)
    assert await keys_with(store, Scope(), "pear") == keys[::-1]


async def test_an_agent_or_a_session_that_nobody_has_holds_nothing(store: Store) -> None:
    await append(store, Scope(session="trip"), "pear")
    for scope in (Scope(owner="bob"), Scope(agent="coach"), Scope(session="gym"), Scope(agent="coach", session="trip")):
        assert await keys_with(store, scope, "pear") == []
        assert await holding(store, scope, "pear") == []


async def test_an_agent_without_records_has_an_index_without_places(backend: Backend) -> None:
    store = await backend.open()
    async with store.transaction() as transaction:
        await ensure_session(transaction.sessions, Scope(session="trip"), now_ms=START_MS)
    async with store.view() as view:
        assert await view.search.in_index(Scope(), lambda index: index.records.count) == 0
    assert await keys_with(store, Scope(), "pear") == []
    [key] = await append(store, Scope(session="trip"), "pear")
    assert await keys_with(store, Scope(), "pear") == [key]
    assert await keys_with(await backend.open(), Scope(), "pear") == [key]


async def test_the_speaker_is_found_too(store: Store) -> None:
    async with store.transaction() as transaction:
        session = await ensure_session(transaction.sessions, Scope(session="trip"), now_ms=START_MS)
        batch = [drafts.message("hello", name="Zoë")]
        [appended] = await transaction.conversations.append_messages(session, batch, now_ms=START_MS)
    assert await holding(store, Scope(), "zoe") == [appended.id]


async def test_a_session_finds_its_own_records_among_many_others(store: Store) -> None:
    few = await append(store, Scope(session="few"), "pear", "plum")
    many = await append(store, Scope(session="many"), *["pear"] * 40)
    assert await holding(store, Scope(session="few"), "pear") == few[:1]
    assert await holding(store, Scope(session="many"), "pear") == many[::-1]


async def test_pins_are_found_among_many_messages_when_the_types_are_narrowed(store: Store) -> None:
    await append(store, Scope(session="trip"), "first")
    async with store.transaction() as transaction:
        session = await ensure_session(transaction.sessions, Scope(session="trip"), now_ms=START_MS)
        await transaction.conversations.add_pins(session, [drafts.pin("pear pin")])
        await transaction.conversations.add_summaries(session, [drafts.summary(1, 1, text="pear summary")])
    await append(store, Scope(session="trip"), *["pear message"] * 30)
    pins = frozenset({RecordType.PIN})
    derived = frozenset({RecordType.PIN, RecordType.SUMMARY})
    for scope in (Scope(), Scope(session="trip")):
        assert len(await holding(store, scope, "pear", types=pins)) == 1
        assert len(await holding(store, scope, "pear", types=derived)) == 2


async def test_every_term_of_a_text_leads_to_it(store: Store) -> None:
    texts = [
        "日本語の文章",
        "ภาษาไทย",
        "한국어 문장",
        "كتاب",
        "Łódź straße",
        "x86 mp3 2026",
        "I'm O'Brien's",
        "e\u0301te\u0301",
        "中'abc",
        "NEAR AND OR NOT",
        "x2:1:pear x4:1:pear 1:pear",
    ]
    for number, text in enumerate(texts):
        session = Scope(session=f"trip {number}")
        [key, _] = await append(store, session, text, "nothing of the sort")
        found = index_text(text).terms
        assert found
        for term in found:
            assert await holding(store, session, term) == [key], term


async def test_the_index_returns_no_internal_entry_as_a_term(store: Store) -> None:
    await append(store, Scope(session="trip"), "pear pear pear pear")
    for term in ("t", "s", "1", "x2", "x4", "message", "pin", "summari"):
        assert await holding(store, Scope(), term) == [], term


async def test_records_without_a_single_term_are_counted_and_never_found(store: Store) -> None:
    await append(store, Scope(session="trip"), "!!!", "👍", "…")
    async with store.view() as view:
        assert await index_reads.record_count(view, Scope()) == 3


async def test_the_record_count_is_that_of_the_agent_whose_session_it_is(store: Store) -> None:
    await append(store, Scope(session="home"), "a", "b")
    await append(store, Scope(agent="coach", session="gym"), "a", "b", "c")
    await append(store, Scope(owner="ann", session="home"), "a")
    async with store.view() as view:
        for scope, expected in [
            (Scope(), 2),
            (Scope(agent="coach"), 3),
            (Scope(session="home"), 2),
            (Scope(session="gym"), 3),
            (Scope(agent="coach", session="gym"), 3),
            (Scope(owner="ann"), 1),
            (Scope(owner="bob"), 0),
        ]:
            assert await index_reads.record_count(view, scope) == expected, scope


async def similar(store: Store, scope: Scope, *asked: str, limit: int = 3) -> Mapping[str, Sequence[tuple[str, int]]]:
    async with store.view() as view:
        return await index_reads.similar_terms(view, scope, *asked, limit=limit)


async def test_a_mistyped_word_finds_similar_terms_and_how_many_records_contain_them(store: Store) -> None:
    await append(store, Scope(session="trip"), "painting", "they painted pears", "a pain", "the recipe", "ferries")
    found = await similar(store, Scope(), "paintnig", "recpie", "freries", "ferires", "xylophone")
    assert found == {
        "paintnig": [("paint", 2)],
        "recpie": [("recip", 1)],
        "freries": [("ferry", 1)],
        "ferires": [("ferry", 1)],
    }


@pytest.mark.parametrize("word", ["ererything", "eberything", "everythign", "everythingg", "evrything"])
async def test_a_mistake_is_undone_wherever_it_stands(store: Store, word: str) -> None:
    await append(store, Scope(session="trip"), "everything")
    assert await similar(store, Scope(), word) == {word: [("everyth", 1)]}


async def test_the_most_frequent_terms_come_first_and_no_more_than_asked_for(store: Store) -> None:
    await append(store, Scope(session="trip"), "planter", *["planner"] * 3, "planet")
    assert await similar(store, Scope(), "planger", limit=1) == {"planger": [("planner", 3)]}
    assert await similar(store, Scope(), "planger", limit=3) == {"planger": [("planner", 3), ("planter", 1)]}


async def test_similar_terms_are_those_of_the_agent_whose_session_it_is(store: Store) -> None:
    await append(store, Scope(session="home"), "garden")
    await append(store, Scope(agent="coach", session="gym"), "gardens", "gardener")
    for scope, expected in [
        (Scope(), [("garden", 1)]),
        (Scope(session="home"), [("garden", 1)]),
        (Scope(session="gym"), [("garden", 1), ("gardener", 1)]),
        (Scope(agent="coach"), [("garden", 1), ("gardener", 1)]),
    ]:
        found = await similar(store, scope, "garrden", "gadrener")
        assert [term for terms in found.values() for term in terms] == expected, scope
    for scope in (Scope(owner="bob"), Scope(session="bus"), Scope(agent="coach", session="home")):
        assert await similar(store, scope, "garrden") == {}, scope


async def test_what_cannot_be_mistyped_or_is_like_nothing_has_no_similar_terms(store: Store) -> None:
    await append(store, Scope(session="trip"), "garden", "messages")
    for word in ("t", "ga", "garden", "g4rden", "message", "тест", "猫", "", "a" * 1000, "\x00", '"'):
        assert await similar(store, Scope(), word) == {}, word[:9]


async def test_similar_terms_are_found_in_other_scripts(store: Store) -> None:
    await append(store, Scope(session="trip"), "рецепт борща", "Θεσσαλονίκη", "מתכון", "Überraschung")
    asked = ("рецпет", "θεσαλονικη", "מתוכן", "ubberraschung")
    assert {word: terms[0][0] for word, terms in (await similar(store, Scope(), *asked)).items()} == {
        "рецпет": "рецепт",
        "θεσαλονικη": "θεσσαλονικη",
        "מתוכן": "מתכון",
        "ubberraschung": "uberraschung",
    }


async def test_similar_terms_are_looked_up_for_a_bounded_number_of_words(store: Store) -> None:
    await append(store, Scope(session="trip"), "garden")
    many = [f"garden{letters}" for letters in "xyzvwqjk"]
    assert list(await similar(store, Scope(), *many * 2)) == many
    assert await similar(store, Scope(), *(f"xylophone{letter}" for letter in "abcdefgh"), "gadren") == {}


async def test_a_term_is_similar_as_soon_as_it_is_written_and_until_it_is_forgotten(store: Store) -> None:
    [key] = await append(store, Scope(session="trip"), "garden")
    assert await similar(store, Scope(), "gadren") == {"gadren": [("garden", 1)]}
    await set_forgotten(store, key, is_forgotten=True)
    assert await similar(store, Scope(), "gadren") == {}


async def test_terms_are_found_by_their_beginning_in_their_own_agent(store: Store) -> None:
    await append(store, Scope(session="trip"), "lernt lernen lernmaterialsammlung", "leer")
    await append(store, Scope(agent="coach", session="gym"), "lernte")
    async with store.view() as view:
        found = await index_reads.terms_with_prefixes(view, Scope(), "lern", "zug")
        assert {prefix: list(terms) for prefix, terms in found.items()} == {"lern": ["lernen", "lernt"]}
        assert await index_reads.terms_with_prefixes(view, Scope(owner="bob"), "lern") == {}
        assert await index_reads.terms_with_prefixes(view, Scope()) == {}
