"""`ports.text_index`: which records contain a term, newest first, with work bounded by the cap."""

from collections.abc import Mapping, Sequence

import pytest

from kalito_mcp.domain.memory_records import DELETED_AT, EditType
from kalito_mcp.domain.records import RecordType
from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.search import Posting, SearchFilters
from kalito_mcp.ports.store import Store
from kalito_mcp.text.analysis import index_terms
from tests import drafts
from tests.scripted import START_MS

pytestmark = pytest.mark.anyio
EVERY_TYPE: frozenset[RecordType] = frozenset()


async def append(store: Store, scope: Scope, *texts: str) -> list[int]:
    async with store.write() as transaction:
        session = await transaction.sessions.ensure(scope, now_ms=START_MS)
        batch = [drafts.message(text) for text in texts]
        appended = await transaction.conversations.append_messages(session, batch, now_ms=START_MS)
        return [one.id for one in appended]


async def postings(
    store: Store, scope: Scope, *terms: str, types: frozenset[RecordType] = EVERY_TYPE, cap: int = 100
) -> Sequence[Posting]:
    async with store.read() as view:
        return await view.text.postings(scope, [[term] for term in terms], types=types, cap=cap)


async def holding(
    store: Store, scope: Scope, term: str, *, types: frozenset[RecordType] = EVERY_TYPE, cap: int = 100
) -> list[int]:
    """The records of the scope that a posting leads to, newest first."""
    async with store.read() as view:
        keys = [
            key for posting in await view.text.postings(scope, [[term]], types=types, cap=cap) for key in posting.keys
        ]
        found = await view.search.candidates(scope, keys, SearchFilters(types=types))
    return sorted((candidate.key for candidate in found), reverse=True)


async def test_a_posting_holds_the_records_of_its_term_newest_first(store: Store) -> None:
    keys = await append(store, Scope(session="trip"), "apple pear", "pear", "apple", "plum")
    [apple, pear, none] = await postings(store, Scope(), "apple", "pear", "quince")
    assert (apple.term, apple.keys, apple.is_complete) == ("apple", (keys[2], keys[0]), True)
    assert (pear.term, pear.keys) == ("pear", (keys[1], keys[0]))
    assert (none.term, none.keys, none.is_complete) == ("quince", (), True)


async def test_terms_that_are_asked_for_as_one_share_a_posting(store: Store) -> None:
    keys = await append(store, Scope(session="trip"), "pear", "plum", "pear plum", "fig")
    async with store.read() as view:
        asked = [["plum", "pear"], ["quince", "fig"]]
        [fruit, other] = await view.text.postings(Scope(), asked, types=EVERY_TYPE, cap=9)
    assert (fruit.term, fruit.keys) == ("plum", tuple(reversed(keys[:3])))
    assert (other.term, other.keys) == ("quince", (keys[3],))


async def test_a_record_that_holds_several_alternatives_is_in_their_posting_once(store: Store) -> None:
    keys = await append(store, Scope(session="trip"), "pear plum", "plum", "fig")
    async with store.read() as view:
        [fruit, fig] = await view.text.postings(Scope(), [["pear", "plum", "pear"], ["fig"]], types=EVERY_TYPE, cap=9)
    assert (fruit.term, fruit.keys, fruit.is_complete) == ("pear", (keys[1], keys[0]), True)
    assert fig.keys == (keys[2],)


@pytest.mark.parametrize("session", ["few", "many"])
async def test_alternatives_are_cut_together_at_the_cap_and_within_the_session(store: Store, session: str) -> None:
    few = await append(store, Scope(session="few"), "pear", "plum")
    many = await append(store, Scope(session="many"), *["pear", "plum"] * 10)
    await append(store, Scope(agent="coach", session="gym"), *["pear"] * 9)
    scope = Scope(session=session)
    own = {"few": few, "many": many}[session]
    for cap in (1, 2, 50):
        async with store.read() as view:
            [fruit] = await view.text.postings(scope, [["plum", "pear"]], types=EVERY_TYPE, cap=cap)
            kept = [key for key in fruit.keys if key in own]
        assert list(fruit.keys) == sorted(fruit.keys, reverse=True)
        assert kept[:cap] == list(reversed(own))[:cap]
        assert fruit.is_complete == (len(fruit.keys) < cap or cap >= len(own))


async def test_a_narrowing_by_type_holds_for_every_alternative(store: Store) -> None:
    await append(store, Scope(session="trip"), "pear", "plum")
    async with store.write() as transaction:
        session = await transaction.sessions.ensure(Scope(session="trip"), now_ms=START_MS)
        await transaction.conversations.add_pins(session, [drafts.pin("plum pin"), drafts.pin("fig pin")])
    pins = frozenset({RecordType.PIN})
    async with store.read() as view:
        for scope in (Scope(), Scope(session="trip")):
            [fruit] = await view.text.postings(scope, [["pear", "plum"]], types=pins, cap=9)
            found = await view.search.candidates(scope, fruit.keys, SearchFilters(types=pins))
            assert [candidate.text for candidate in found] == ["plum pin"]


async def test_a_transaction_sees_in_the_index_what_it_has_just_written(store: Store) -> None:
    async with store.write() as transaction:
        assert await transaction.text.record_count(Scope()) == 0
        session = await transaction.sessions.ensure(Scope(session="trip"), now_ms=START_MS)
        batch = [drafts.message("pear")]
        [one] = await transaction.conversations.append_messages(session, batch, now_ms=START_MS)
        assert await transaction.text.record_count(Scope()) == 1
        [posting] = await transaction.text.postings(Scope(), [["pear"]], types=EVERY_TYPE, cap=9)
        assert posting.keys == (one.id,)


@pytest.mark.parametrize("cap", [1, 2, 9])
async def test_up_to_a_key_they_are_the_newest_of_those(store: Store, cap: int) -> None:
    keys = await append(store, Scope(session="trip"), *["pear"] * 6)
    async with store.read() as view:
        for place, last in enumerate(keys, 1):
            [found] = await view.text.postings(Scope(), [["pear"]], types=EVERY_TYPE, cap=cap, up_to=last)
            assert list(found.keys) == keys[:place][::-1][:cap]
            assert found.is_complete == (place <= cap)


async def test_no_terms_have_no_postings(store: Store) -> None:
    await append(store, Scope(session="trip"), "apple")
    assert list(await postings(store, Scope())) == []


async def test_an_agent_or_a_session_that_nobody_has_holds_nothing(store: Store) -> None:
    await append(store, Scope(session="trip"), "pear")
    for scope in (Scope(owner="bob"), Scope(agent="coach"), Scope(session="gym"), Scope(agent="coach", session="trip")):
        assert all(posting.keys == () for posting in await postings(store, scope, "pear")), scope
        assert await holding(store, scope, "pear") == []


@pytest.mark.parametrize(("cap", "is_complete"), [(1, False), (4, False), (5, True), (6, True)])
async def test_a_posting_is_cut_at_the_cap_to_the_newest_and_says_so(store: Store, cap: int, is_complete: bool) -> None:
    keys = await append(store, Scope(session="trip"), *["pear"] * 5)
    [posting] = await postings(store, Scope(), "pear", cap=cap)
    assert posting.keys == tuple(reversed(keys))[:cap]
    assert posting.is_complete is is_complete


async def test_a_term_is_held_once_however_often_the_text_has_it(store: Store) -> None:
    [key] = await append(store, Scope(session="trip"), "pear pear PEARS pear")
    [posting] = await postings(store, Scope(), "pear")
    assert posting.keys == (key,)


async def test_the_speaker_is_found_too(store: Store) -> None:
    async with store.write() as transaction:
        session = await transaction.sessions.ensure(Scope(session="trip"), now_ms=START_MS)
        batch = [drafts.message("hello", name="Zoë")]
        [appended] = await transaction.conversations.append_messages(session, batch, now_ms=START_MS)
    assert await holding(store, Scope(), "zoe") == [appended.id]


async def test_a_session_finds_its_own_few_records_among_many_others(store: Store) -> None:
    few = await append(store, Scope(session="few"), "pear", "plum")
    many = await append(store, Scope(session="many"), *["pear"] * 40)
    assert await holding(store, Scope(session="few"), "pear", cap=5) == few[:1]
    assert await holding(store, Scope(session="many"), "pear", cap=100) == list(reversed(many))


async def test_a_large_session_is_not_hidden_by_newer_records_of_another(store: Store) -> None:
    old = await append(store, Scope(session="old"), *["pear"] * 20)
    await append(store, Scope(session="new"), *["pear"] * 20)
    assert await holding(store, Scope(session="old"), "pear", cap=5) == list(reversed(old))[:5]


async def test_pins_are_found_among_many_messages_when_the_types_are_narrowed(store: Store) -> None:
    await append(store, Scope(session="trip"), "first")
    async with store.write() as transaction:
        session = await transaction.sessions.ensure(Scope(session="trip"), now_ms=START_MS)
        await transaction.conversations.add_pins(session, [drafts.pin("pear pin")])
        await transaction.conversations.add_summary(session, drafts.summary(1, 1, text="pear summary"))
    await append(store, Scope(session="trip"), *["pear message"] * 30)
    pins = frozenset({RecordType.PIN})
    derived = frozenset({RecordType.PIN, RecordType.SUMMARY})
    for scope in (Scope(), Scope(session="trip")):
        assert len(await holding(store, scope, "pear", types=pins, cap=3)) == 1
        assert len(await holding(store, scope, "pear", types=derived, cap=3)) == 2


@pytest.mark.parametrize(
    "text",
    [
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
        "s:1 1:t:message t:pin",
    ],
)
async def test_every_term_of_a_text_leads_to_it(store: Store, text: str) -> None:
    [key] = await append(store, Scope(session="trip"), text)
    await append(store, Scope(session="trip"), "nothing of the sort")
    found = index_terms(text)
    assert found
    for term in found:
        assert await holding(store, Scope(), term) == [key], term


@pytest.mark.parametrize("term", ["t", "s", "1", "message", "pin", "summari"])
async def test_the_index_returns_no_internal_entry_as_a_term(store: Store, term: str) -> None:
    await append(store, Scope(session="trip"), "pear")
    assert await holding(store, Scope(), term) == []


async def test_records_without_a_single_term_are_counted_and_never_found(store: Store) -> None:
    await append(store, Scope(session="trip"), "!!!", "👍", "…")
    async with store.read() as view:
        assert await view.text.record_count(Scope()) == 3


async def test_the_record_count_is_that_of_the_agent_whose_session_it_is(store: Store) -> None:
    await append(store, Scope(session="home"), "a", "b")
    await append(store, Scope(agent="coach", session="gym"), "a", "b", "c")
    await append(store, Scope(owner="ann", session="home"), "a")
    async with store.read() as view:
        for scope, expected in [
            (Scope(), 2),
            (Scope(agent="coach"), 3),
            (Scope(session="home"), 2),
            (Scope(session="gym"), 3),
            (Scope(agent="coach", session="gym"), 3),
            (Scope(owner="ann"), 1),
            (Scope(owner="bob"), 0),
        ]:
            assert await view.text.record_count(scope) == expected, scope


async def similar(store: Store, scope: Scope, *asked: str, limit: int = 3) -> Mapping[str, Sequence[tuple[str, int]]]:
    async with store.read() as view:
        return await view.text.similar_terms(scope, asked, limit=limit)


async def test_a_mistyped_word_finds_similar_terms_and_how_many_records_contain_them(store: Store) -> None:
    await append(store, Scope(session="trip"), "painting", "they painted pears", "a pain", "the recipe", "ferries")
    found = await similar(store, Scope(), "paintnig", "apinting", "recpie", "freries", "ferires", "xylophone")
    assert found == {
        "paintnig": [("paint", 2)],
        "apinting": [("paint", 2)],
        "recpie": [("recip", 1)],
        "freries": [("ferry", 1)],
        "ferires": [("ferry", 1)],
    }


@pytest.mark.parametrize("word", ["ererything", "veerything", "eberything", "everythign", "everythingg", "verything"])
async def test_a_mistake_is_undone_wherever_it_stands(store: Store, word: str) -> None:
    await append(store, Scope(session="trip"), "everything")
    assert await similar(store, Scope(), word) == {word: [("everyth", 1)]}


async def test_the_likeliest_terms_come_first_and_no_more_than_asked_for(store: Store) -> None:
    await append(store, Scope(session="trip"), "boat", *["beat"] * 3, "brat", "boast")
    assert await similar(store, Scope(), "bxat", limit=2) == {"bxat": [("beat", 3), ("boat", 1)]}


async def test_similar_terms_are_those_of_the_agent_whose_session_it_is(store: Store) -> None:
    await append(store, Scope(session="home"), "garden")
    await append(store, Scope(agent="coach", session="gym"), "warden", "garden")
    for scope, expected in [
        (Scope(), [("garden", 1)]),
        (Scope(session="home"), [("garden", 1)]),
        (Scope(session="gym"), [("garden", 1), ("warden", 1)]),
        (Scope(agent="coach"), [("garden", 1), ("warden", 1)]),
    ]:
        assert await similar(store, scope, "garrden", "farden") == {
            "garrden": expected[:1],
            "farden": expected,
        }, scope
    for scope in (Scope(owner="bob"), Scope(session="bus"), Scope(agent="coach", session="home")):
        assert await similar(store, scope, "garrden") == {}, scope


@pytest.mark.parametrize("word", ["t", "ga", "garden", "g4rden", "message", "тест", "猫", "", "a" * 1000, "\x00", '"'])
async def test_what_cannot_be_mistyped_or_is_like_nothing_has_no_similar_terms(store: Store, word: str) -> None:
    await append(store, Scope(session="trip"), "garden", "messages")
    assert await similar(store, Scope(), word) == {}


async def test_similar_terms_are_found_in_other_scripts(store: Store) -> None:
    await append(store, Scope(session="trip"), "рецепт борща", "Θεσσαλονίκη", "מתכון", "Überraschung")
    asked = ("рецпет", "ерцепт", "θεσαλονικη", "מתוכן", "ubberraschung")
    assert {word: terms[0][0] for word, terms in (await similar(store, Scope(), *asked)).items()} == {
        "рецпет": "рецепт",
        "ерцепт": "рецепт",
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
    async with store.write() as transaction:
        assert await transaction.text.similar_terms(Scope(), ["gadren"], limit=3) == {"gadren": [("garden", 1)]}
        record = await transaction.records.record(Scope(), f"msg_{key}")
        assert record is not None
        await transaction.records.change(
            record, drafts.edit(record, {DELETED_AT: START_MS + 1}, edit_type=EditType.DELETE)
        )
        assert await transaction.text.similar_terms(Scope(), ["gadren"], limit=3) == {}


async def test_terms_are_found_by_their_beginning_in_their_own_agent(store: Store) -> None:
    await append(store, Scope(session="trip"), "lernt lernen lernmaterialsammlung", "leer")
    await append(store, Scope(agent="coach", session="gym"), "lernte")
    async with store.read() as view:
        found = await view.text.terms_with_prefixes(Scope(), ["lern", "zug"])
        assert {prefix: list(terms) for prefix, terms in found.items()} == {"lern": ["lernen", "lernt"]}
        assert await view.text.terms_with_prefixes(Scope(owner="bob"), ["lern"]) == {}
        assert await view.text.terms_with_prefixes(Scope(), []) == {}
