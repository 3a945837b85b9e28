"""The messages of users that ask for the same, without a search."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kalito_mcp.domain.records import Role
from kalito_mcp.domain.scope import Scope
from kalito_mcp.ports.search import SearchIndex
from kalito_mcp.retrieval.asked_before import asked_before
from kalito_mcp.storage.sqlite.database import SqliteStore
from kalito_mcp.text.questions import (
    likeness,
    may_be_alike,
    questions_in,
    terms_of_wordings,
    wordings,
)
from tests.retrieval.stored_memories import remember, said_by

pytestmark = pytest.mark.anyio
LEAST = 0.65
WORDS = st.lists(st.sampled_from("ferry moss oslo boat leave ticket pier anchor".split()), min_size=1, max_size=6)

SAID = st.lists(
    st.sampled_from("ferry moss oslo boats leaving went wann ist where is when the ? . ? on 3 can't i".split()),
    min_size=1,
    max_size=14,
).map(" ".join)


async def found(store: SqliteStore, text: str) -> list[str]:
    def look(index: SearchIndex) -> list[str]:
        return [one.text for _, one in asked_before(index, text, least=LEAST)]

    async with store.view() as view:
        return await view.search.in_index(Scope(), look) or []


async def test_the_most_alike_come_first_then_the_newest(store: SqliteStore) -> None:
    await remember(
        store,
        "When does the ferry to Moss leave?",
        "When does the ferry to Moss leave on Sunday mornings?",
        "The ferry to Moss leaves at seven.",
        said_by(None, "When does the ferry to Moss leave?", role=Role.ASSISTANT),
        "And the soup? When does the ferry to Moss leave?",
        "Where is the pier?",
    )
    assert await found(store, "when does the moss ferry leave") == [
        "And the soup? When does the ferry to Moss leave?",
        "When does the ferry to Moss leave?",
    ]
    assert await found(store, "Where is my boat?") == []
    assert await found(store, "?") == []


async def test_only_what_has_the_terms_is_read(store: SqliteStore) -> None:
    await remember(store, *["Where is the pier?"] * 100, "When does the ferry leave?")
    assert await found(store, "When does the ferry leave?") == ["When does the ferry leave?"]
    assert await found(store, "Where is the pier?") == ["Where is the pier?"] * 16


async def test_of_texts_with_the_same_terms_the_shorter_ones_are_read(store: SqliteStore) -> None:
    story = "When we went, the boat was there. Does it matter? We had to leave, and the ferry took us home."
    await remember(store, "When does the ferry leave?", *(f"{story} {number}" for number in range(40)))
    assert await found(store, "When does the ferry leave?") == ["When does the ferry leave?"]


def terms_of(text: str) -> list[frozenset[str]]:
    return terms_of_wordings(wordings(text, questions_in(text)))


@given(WORDS, WORDS)
async def test_whatever_is_alike_has_enough_of_the_terms(ours: list[str], theirs: list[str]) -> None:
    asked, past = f"Where is {' '.join(ours)}?", f"Where is {' '.join(theirs)}?"
    assert questions_in(past)
    if likeness(asked, past) >= LEAST:
        shared = [len(terms & other) / len(terms) for terms in terms_of(asked) for other in terms_of(past)]
        assert max(shared) >= LEAST


@given(SAID, SAID)
def test_whatever_is_alike_passes_the_quick_look(asked: str, past: str) -> None:
    terms = terms_of(asked)
    if all(terms) and likeness(asked, past) >= LEAST:
        assert any(may_be_alike(terms, one, LEAST) for one in wordings(past, questions_in(past)))


@pytest.mark.parametrize(
    ("past", "may_be"),
    [
        ("When does the ferry to Moss leave?", True),
        ("So when did that ferry leave for Moss?", True),
        ("When does the bus to Moss arrive?", False),
        ("Ferry, Moss, leave, anchor, pier, ticket, soup, boat?", False),
        ("Wann fährt die Fähre?", True),
    ],
)
def test_a_quick_look_at_the_words(past: str, *, may_be: bool) -> None:
    """Other words and many more words are seen at once. What is not ASCII is read."""
    assert may_be_alike(terms_of("When does the ferry to Moss leave?"), past, LEAST) is may_be
