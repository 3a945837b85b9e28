"""Mistyped words of a question: names, function words, and other words, on a real store."""

from functools import partial

import pytest

from kalito_mcp.domain.scope import Scope
from kalito_mcp.ports.search import SearchIndex
from kalito_mcp.retrieval.corrections import corrected
from kalito_mcp.retrieval.question import Question
from kalito_mcp.storage.sqlite.database import SqliteStore
from tests.retrieval.builders import question
from tests.retrieval.stored_memories import hits, remember, remember_apart, said_by

pytestmark = pytest.mark.anyio


def _correct(asked: Question, index: SearchIndex) -> Question:
    return corrected(asked, [term for term, places in index.places(asked.terms).items() if not len(places)], index)


async def _corrected(store: SqliteStore, query: str) -> Question:
    """The question after a memory of two speakers corrected every term that it does not contain."""
    await remember(store, said_by("John", "I planted a garden."), said_by("Melanie", "We went hiking."))
    asked = question(query)
    async with store.view() as view:
        found = await view.search.in_index(Scope(), partial(_correct, asked))
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("query", "term", "meant"),
    [
        ("the garden of Jhon", "jhon", "john"),
        ("the hike of Mealnie", "mealni", "melani"),
        ("the gardne", "gardn", "garden"),
    ],
)
async def test_a_mistyped_word_is_looked_up_as_what_is_meant_too(
    store: SqliteStore, query: str, term: str, meant: str
) -> None:
    found = await _corrected(store, query)
    assert found.forms[term] == (term, meant)
    assert found.corrected_terms == {term}


@pytest.mark.parametrize("query", ["the garden of Joan", "the garden of Jon", "the moth"])
async def test_another_name_or_word_is_not_corrected(store: SqliteStore, query: str) -> None:
    found = await _corrected(store, query)
    assert found.corrected_terms == frozenset()
    assert found.terms == question(query).terms


async def test_a_mistyped_function_word_is_left_out(store: SqliteStore) -> None:
    assert (await _corrected(store, "Waht garden did he haev?")).terms == ("garden",)
    assert (await _corrected(store, "What garden was liekd?")).terms == ("garden", "liekd")


async def test_nothing_is_left_out_where_nothing_else_is_asked(store: SqliteStore) -> None:
    assert (await _corrected(store, "waht")).terms == ("waht",)


async def test_who_is_meant_by_a_mistyped_name_counts_as_the_speaker(store: SqliteStore) -> None:
    await remember_apart(
        store, said_by("John", "My garden is doing well."), said_by("Melanie", "My garden is doing well.")
    )
    first, second = await hits(store, "What did Jhon say of the garden?")
    assert (first.name, second.name) == ("John", "Melanie")
    assert (first.parts or {}).keys() - (second.parts or {}).keys() == {"speaker"}
