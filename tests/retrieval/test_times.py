"""A query that names a time finds what was said then, whatever its words."""

from pathlib import Path

import pytest

from kalito_mcp.config.settings import Settings
from kalito_mcp.domain.search import SearchRequest
from kalito_mcp.domain.time import from_iso
from kalito_mcp.retrieval.policy import SearchPolicy
from kalito_mcp.storage.sqlite.database import SqliteStore
from kalito_mcp.wiring import open_memory
from tests import drafts
from tests.retrieval.stored_memories import page_of, remember, remember_apart

pytestmark = pytest.mark.anyio
NOW_MS = from_iso("2026-11-21T10:00:00Z")
SAID = {
    "The audit will be in october, in some weeks.": "2026-08-12",
    "We visited my niece in Bergen.": "2026-10-14",
    "The rye bread failed again.": "2026-10-18",
    "The plumber fixed the sink.": "2026-11-10",
}


@pytest.fixture
async def diary(store: SqliteStore) -> SqliteStore:
    messages = [drafts.message(text, created_at=from_iso(day)) for text, day in SAID.items()]
    await remember(store, *messages)
    return store


async def test_a_query_of_a_time_only_finds_what_was_said_then_and_then_mentions_of_it(diary: SqliteStore) -> None:
    for query, days, telling in (
        ("what happened last week?", ["2026-11-10"], []),
        ("what happened in October?", ["2026-10-14", "2026-10-18"], ["2026-08-12"]),
        ("on October 18", ["2026-10-18"], ["2026-08-12"]),
        ("yesterday", [], []),
    ):
        page = await page_of(diary, SearchRequest(query, now_ms=NOW_MS), policy=SearchPolicy())
        found = [SAID[hit.text] for hit in page.hits]
        assert (sorted(found[: len(days)]), found[len(days) :]) == (days, telling), query
        assert page.note == (None if found else "nothing was said at that time, and nothing mentions it")


async def test_whatever_was_said_at_a_time_is_asked_for_in_many_ways(diary: SqliteStore) -> None:
    for query in (
        "What did I talk about in October?",
        "summarize October",
        "anything from October?",
        "give me an overview of October",
        "What came up in October?",
        "Wovon haben wir im Oktober gesprochen?",
        "¿De qué hablamos en octubre?",
        "De quoi avons-nous parlé en octobre ?",
        "Di cosa abbiamo parlato a ottobre?",
        "Sobre o que falamos em outubro?",
        "Wat hebben we in oktober besproken?",
        "Vad pratade vi om i oktober?",
        "O czym rozmawialiśmy w październiku?",
        "О чём мы говорили в октябре?",
        "Ekimde ne konuştuk?",
        "عن ماذا تحدثنا في أكتوبر؟",
        "अक्टूबर में हमने क्या बात की?",
        "十月我们聊了什么？",
        "10月に何を話しましたか？",
        "10월에 무슨 이야기를 했어?",
    ):
        page = await page_of(diary, SearchRequest(query, now_ms=NOW_MS), policy=SearchPolicy())
        found = [SAID[hit.text] for hit in page.hits]
        assert sorted(found[:2]) == ["2026-10-14", "2026-10-18"], query
        assert set(found[2:]) <= {"2026-08-12"}, "only what mentions October comes next"


async def test_a_note_of_the_time_is_found_too(tmp_path: Path) -> None:
    async with open_memory(tmp_path / "memory.db", Settings()) as memory:
        await memory.remember("note", {"text": "Bought a lawn mower."})
        page = await memory.search_memory(SearchRequest("what did I say today?"))
    assert [hit.text for hit in page.hits] == ["Bought a lawn mower."]


async def test_mentions_of_a_day_on_which_nothing_was_said_are_found(store: SqliteStore) -> None:
    await remember(
        store, "My passport runs out on 3 August 2027.", "The dentist is on Tuesday.", "I passed it in August."
    )
    for query, first in (("3 August 2027", "My passport"), ("what happens on Tuesday?", "The dentist")):
        page = await page_of(store, SearchRequest(query, now_ms=NOW_MS), policy=SearchPolicy())
        assert page.hits[0].text.startswith(first)


async def test_the_words_for_a_time_are_no_words_to_look_for(diary: SqliteStore) -> None:
    page = await page_of(diary, SearchRequest("the bread in October", now_ms=NOW_MS), policy=SearchPolicy())
    assert page.hits[0].text == "The rye bread failed again."
    assert "The audit will be in october, in some weeks." not in [hit.text for hit in page.hits]


async def test_without_a_time_they_are_words(diary: SqliteStore) -> None:
    page = await page_of(diary, SearchRequest("which weeks?", now_ms=NOW_MS), policy=SearchPolicy())
    assert [hit.text for hit in page.hits] == ["The audit will be in october, in some weeks."]


async def test_a_number_alone_may_be_a_year_or_what_was_said(store: SqliteStore) -> None:
    this_year = drafts.message("the ferry", created_at=from_iso("2026-03-01"))
    await remember(store, this_year, drafts.message("a budget of 2026", created_at=from_iso("2025-03-01")))
    for query, found in (("2026", {"the ferry", "a budget of 2026"}), ("2025", {"a budget of 2026"})):
        page = await page_of(store, SearchRequest(query, now_ms=NOW_MS), policy=SearchPolicy())
        assert {hit.text for hit in page.hits} == found


VISIT, HINT = "Wir haben meine Nichte in Bergen besucht.", "Der Arzttermin ist irgendwann im März, sagt Oma."
TOLD = {
    HINT: "2026-08-12",
    VISIT: "2026-03-14",
    "Das Roggenbrot ist wieder misslungen.": "2026-10-18",
    "水管工修好了水槽。": "2026-11-10",
    "我们种了番茄。": "2026-05-10",
}


async def test_a_time_in_another_language_does_the_same(store: SqliteStore) -> None:
    await remember_apart(store, *[drafts.message(text, created_at=from_iso(day)) for text, day in TOLD.items()])
    for query, found in (
        ("Was ist letzte Woche passiert?", ["水管工修好了水槽。"]),
        ("Was war im März 2026?", [VISIT, HINT]),
        ("März 2026", [VISIT, HINT]),
        ("Was ist im Oktober mit dem Brot misslungen?", ["Das Roggenbrot ist wieder misslungen."]),
        ("上周发生了什么？", ["水管工修好了水槽。"]),
        ("上周水槽怎么了", ["水管工修好了水槽。"]),
    ):
        page = await page_of(store, SearchRequest(query, now_ms=NOW_MS), policy=SearchPolicy())
        assert [hit.text for hit in page.hits][: len(found)] == found, query
