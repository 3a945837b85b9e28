"""Words of other languages are asked for by their beginnings."""

import pytest

from kalito_mcp.retrieval.word_forms import prefixes, prefixes_of, word_forms
from kalito_mcp.storage.sqlite.database import SqliteStore
from tests.retrieval.stored_memories import remember, search

pytestmark = pytest.mark.anyio


def test_the_beginning_of_a_word() -> None:
    for term, expected in (
        ("lernt", ("lern",)),
        ("wohnungen", ("wohnu", "wohnungen")),
        ("работает", ("работ", "работает")),
        ("कमरे", ("कमर",)),
        ("zug", ()),
        ("2026", ()),
        ("a1b2c3", ()),
    ):
        assert prefixes(term) == expected


def test_an_arabic_word_is_asked_for_with_and_without_its_article_and_particles() -> None:
    assert {"كتا", "الكتا", "بالكتا", "وكتا"} <= set(prefixes("الكتاب"))
    assert {"كتا", "الكتا", "وكتا"} <= set(prefixes("كتاب"))
    assert prefixes("من") == ()


def test_the_first_prefixes_of_every_word_come_first_and_their_number_is_bounded() -> None:
    asked = ["كتاب", "مدرسة", "مدينة", "سيارة", "طبيب", "موعد", "حليب"]
    found = prefixes_of(asked)
    assert found[: len(asked)] == [prefixes(word)[0] for word in asked]
    assert len(found) == len(set(found)) == 64
    assert prefixes_of(["zug"]) == []


def test_the_forms_are_those_of_the_nearest_length_without_the_term_itself() -> None:
    found = {"lern": ["lern", "lernen", "lernt", "lernmaterialien"]}
    assert word_forms(["lernt", "zug"], found) == {"lernt": ["lern", "lernen", "lernmaterialien"]}


async def test_another_form_is_found_in_another_language(store: SqliteStore) -> None:
    key, _ = await remember(store, "Meine Schwester spielt Geige.", "Der Zug war pünktlich.")
    hits = await search(store, "Wer spielte von den Schwestern auf Geigen?")
    assert hits[0].record_id == f"msg_{key}"


async def test_a_word_is_found_in_its_forms_and_without_the_marks_of_its_letters(store: SqliteStore) -> None:
    asked = {
        "kadikoy": "Ofisimiz Kadıköy'de, ızgara yakın.",
        "diyarbakir": "Diyarbakır'a uçak sabah kalkıyor.",
        "lodz": "Spotkanie jest w Łodzi, potem Łódź Fabryczna.",
        "da nang": "Chúng tôi bay đến Đà Nẵng.",
        "smorrebrod": "Vi spiser smørrebrød.",
        "قطة": "اسم قطتي مشمش.",
        "مدرستي": "المدرسة بعيدة عن البيت.",
        "سيارة": "سيارتنا حمراء.",
        "लडका": "वह लड़का बीमार है।",
        "Wärmepumpe": "Mein Nachbar baut eine Wärmepumpenheizung ein.",
        "Versicherung": "Die Versicherungsnummer steht im Ordner.",
    }
    await remember(store, *asked.values())
    for query, found in asked.items():
        assert next((hit.text for hit in await search(store, query)), None) == found, query


async def test_a_language_without_a_table_finds_other_forms_of_its_words(store: SqliteStore) -> None:
    asked = {
        "Mille siskollani on allergia?": "Siskoni on allerginen maapähkinälle.",
        "Mistä pyöräni varastivat?": "Pyörä varastettiin kirjaston edestä.",
        "Πού βρήκαμε τις γάτες;": "Η γάτα μας χάθηκε και βρέθηκε στον γείτονα.",
        "Hol találtuk a macskákat?": "A macskánk elszökött, és a szomszédnál volt.",
    }
    await remember(store, *asked.values(), "The ferry to Oslo leaves at nine.")
    for query, found in {**asked, "What do the pyrenees cost?": None, "mailman": None}.items():
        assert next((hit.text for hit in await search(store, query)), None) == found, query


async def test_in_an_english_memory_an_absent_word_is_not_taken_for_one_that_begins_alike(store: SqliteStore) -> None:
    alike = {
        "ansible": "The answers of the carrier are cached.",
        "kafka streams": "Two strings are compared.",
        "stress-ng": "The strict mode is on.",
        "oauth login": "The logs of the poller go to Loki.",
        "who translates portuguese": "The transit time is three days.",
    }
    await remember(store, *alike.values())
    for query in alike:
        assert await search(store, query) == (), query
