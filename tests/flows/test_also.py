"""Other wordings of a query, sent by the assistant, find what was said in other words."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.flows.harness import Harness, served

pytestmark = pytest.mark.anyio

BINS: Final = "The bins go out on Tuesday evening, the green one every other week."
VET: Final = "Kirsty charged me 85 pounds for the kennel cough jab."
QUERY: Final = "When is refuse collected?"
ALSO: Final = ("the bins go out on ...", "rubbish, recycling day")
NOTHING_OF_IT: Final = (None, "", "[]", [], [""], [None], ["  "])


@pytest.fixture
async def h(database: Path, era: str) -> AsyncIterator[Harness]:
    async with served(database, era) as one:
        said = (VET, BINS, *(f"Piece {n} of the piano sounds well." for n in range(12)))
        messages = [{"role": "user", "text": text} for text in said]
        await one.facts("record_messages", messages=messages, session_id="home")
        yield one


async def found(h: Harness, **arguments: Any) -> list[str]:
    page = await h.facts("search_memory", **{"query": QUERY, "types": ["message"]} | arguments)
    return [hit["text"] for hit in page["hits"]]


async def test_other_wordings_find_what_the_query_does_not(h: Harness) -> None:
    assert await found(h) == []
    assert (await found(h, also=ALSO))[0] == BINS


async def test_a_context_has_what_other_wordings_find(h: Harness) -> None:
    assert BINS not in await h.text("build_context", session_id="new", query=QUERY)
    assert BINS in await h.text("build_context", session_id="new", query=QUERY, also=ALSO)
    assert BINS in await h.text("build_context", session_id="new", also=ALSO)  # a wording alone is a query


@pytest.mark.parametrize("sent", [json.dumps(ALSO), ALSO[0], ["", None, *ALSO], [*ALSO, "b", "c", "d", "e"]])
async def test_a_list_of_wordings_may_be_written_in_any_form_that_is_clear(h: Harness, sent: Any) -> None:
    assert (await found(h, also=sent))[0] == BINS


@pytest.mark.parametrize("nothing", NOTHING_OF_IT)
async def test_no_other_wording_is_none_whatever_stands_for_it(h: Harness, nothing: Any) -> None:
    assert await found(h, also=nothing) == []
    assert "Search again with also" in (await h.facts("search_memory", query=QUERY, also=nothing))["note"]


async def test_only_the_first_four_wordings_count(h: Harness) -> None:
    assert await found(h, also=["zinc", "quartz", "ferry", "moss", "bins"]) == []


async def test_wordings_that_are_not_texts_are_refused_in_words(h: Harness) -> None:
    assert "also" in await h.refusal("search_memory", query=QUERY, also=[{"bins": 1}])
    assert "one of also has 100,001 characters" in await h.refusal("search_memory", query=QUERY, also=["b" * 100_001])


async def test_what_matches_the_query_comes_before_what_matches_one_other_wording(h: Harness) -> None:
    assert (await found(h, query="What did Kirsty charge?", also=["Kirsty charged me ... pounds", "bins"]))[0] == VET


async def test_what_the_query_excludes_no_other_wording_finds(h: Harness) -> None:
    assert await found(h, query="refuse -bins", also=ALSO) == []
    assert (await found(h, also=["the green one -bins", '"no such phrase" bins']))[0] == BINS


async def test_a_cursor_belongs_to_the_wordings_of_its_search(h: Harness) -> None:
    messages = [{"role": "user", "text": f"Bins of street {n}."} for n in range(5)]
    await h.facts("record_messages", messages=messages, session_id="street")
    first = await h.facts("search_memory", query=QUERY, also=["bins"], k=4)
    assert len(first["hits"]) == 4
    second = await h.facts("search_memory", query=QUERY, also=["bins"], k=4, cursor=first["next_cursor"])
    assert {hit["record_id"] for hit in first["hits"]}.isdisjoint(hit["record_id"] for hit in second["hits"])
    assert len(first["hits"] + second["hits"]) == 6
    other = await h.refusal("search_memory", query=QUERY, also=["rubbish"], k=4, cursor=first["next_cursor"])
    assert "cursor belongs to another search" in other


async def test_an_empty_result_asks_for_other_wordings_with_an_example_of_the_query(h: Harness) -> None:
    page = await h.facts("search_memory", query="When did the zeppelin land?")
    assert (
        'Search again with also, 2 to 4 ways the user may have said it, such as ["zeppelin land ..."]' in page["note"]
    )
    page = await h.facts("search_memory", query="When did the zeppelin land?", names=["Eve"])
    assert "Try without names. Search again with also" in page["note"]


async def test_an_empty_result_of_other_wordings_does_not_ask_for_them_again(h: Harness) -> None:
    page = await h.facts("search_memory", query="When did the zeppelin land?", also=["airship, mast"])
    assert page["note"].endswith("Try other words for it, a name or a date.")
    assert "also" not in page["note"]


async def test_a_query_that_finds_something_does_not_ask_for_other_wordings(h: Harness) -> None:
    assert "note" not in await h.facts("search_memory", query="When do the bins go out?")
