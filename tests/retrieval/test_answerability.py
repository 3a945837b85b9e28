"""An answer must contain words of the subject. Names and words that say how to answer do not count."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kalito_mcp.domain.search import Candidate, Posting, SearchRequest
from kalito_mcp.retrieval.answerability import confidence, unmatched_words
from kalito_mcp.retrieval.neighbourhood import Neighbourhood
from kalito_mcp.retrieval.policy import SearchPolicy
from kalito_mcp.retrieval.question import Question
from kalito_mcp.retrieval.ranking import ScoredCandidate
from kalito_mcp.retrieval.term_masks import TermMasks
from kalito_mcp.storage.sqlite.database import SqliteStore
from tests.retrieval.builders import analyzed, candidate, question, stub
from tests.retrieval.stored_memories import embed, page_of, remember, said_by
from tests.scripted_embedder import ScriptedEmbedder

SHIPPED = SearchPolicy()
LONG = "moor heath fen " * 300
BEN = (
    said_by("Ben", "I baked a cherry cake."),
    said_by("Ann", "It rained all day."),
    said_by("Ben", "The tram was late again."),
)
WORDS = st.sampled_from(["ferry", "moss", "ann", "list", "order", "7", "pets", "puppy", "who"])


def scored(
    asked: Question, said: Candidate, score: float = 0.3, near: tuple[str, ...] = (), **parts: float
) -> ScoredCandidate:
    at, beside = stub(said.key, name=said.name), stub(said.key + 1)
    held = [Posting(term, (beside.key,) if term in near else (), is_complete=True) for term in asked.terms]
    around = Neighbourhood(TermMasks(held, [1.0] * len(held)), len(held), [at, beside])
    return ScoredCandidate(asked, analyzed(asked, said), at, around, score, parts)


def strength_of(query: str, *said: Candidate, score: float = 0.3, **parts: float) -> float:
    asked = question(query)
    return confidence([scored(asked, one, score, **parts) for one in said])


def test_what_has_only_the_name_of_who_is_asked_about_is_noise() -> None:
    said = candidate("It rained.", name="Ben")
    assert strength_of("What is Ben's salary?", said) == 0
    assert strength_of("What is Ben's salary?", said, candidate("my salary", 2, name="Ben")) == 1
    assert 0 < strength_of("What is Ben's salary and pension?", candidate("my salary", name="Ben")) < 1


@pytest.mark.parametrize(
    "query", ["Ben", "What did Ben say?", "ferry", "Does Ben like the ferry?", "a list of ferries"]
)
def test_a_text_with_the_whole_subject_is_an_answer_however_low_its_score(query: str) -> None:
    assert strength_of(query, candidate(f"{LONG} ferry", name="Ben"), score=0.001) == 1


def test_what_is_said_around_a_hit_and_an_instance_of_a_kind_are_about_the_subject() -> None:
    asked = question("What did Ben pay for the ferry ticket?")
    said = candidate("Too much!", name="Ben")
    assert confidence([scored(asked, said)]) == 0
    assert confidence([scored(asked, said, near=("ferry",))]) > 0
    assert strength_of("Ben's pets and hobbies", candidate("my puppy", name="Ben")) > 0


def test_how_a_thing_is_said_makes_no_answer() -> None:
    said = candidate("the ferry")
    plain = strength_of("ferry to Moss", said, score=0.2, lexical=0.2)
    assert strength_of("ferry to Moss", said, score=0.24, lexical=0.2, first_person=0.04) == pytest.approx(plain)
    assert strength_of("ferry to Moss", said, score=0.15, lexical=0.2, assistant=-0.05) == pytest.approx(plain)


def test_words_that_say_how_to_answer_count_only_where_they_were_said() -> None:
    said = candidate("the ferry leaves")
    plain = strength_of("ferry tickets to Moss", said, score=0.2)
    asked_for = strength_of("list various details: ferry tickets to Moss", said, score=0.1)
    assert asked_for == pytest.approx(plain)
    told = strength_of(
        "list various details: ferry tickets to Moss", candidate("various ferries, on a list"), score=0.1
    )
    assert told < asked_for


def test_a_date_is_found_by_the_day_and_not_by_its_numbers() -> None:
    said = candidate("we met", name="Ben")
    assert strength_of("Where was Ben on 12 June 2023?", said) == 0
    assert strength_of("Where was Ben on 12 June 2023?", said, date=0.1) > 0
    asked = question("Ben's garden, 12 June 2023")
    assert unmatched_words([scored(asked, said, date=0.1)]) == ("garden",)


def test_a_mistyped_word_counts_as_the_one_it_was_taken_for_and_makes_lenient() -> None:
    asked = question("frery to Moss")
    corrected = asked.with_corrections({asked.terms[0]: ("ferry", 0.8)})
    said = candidate("the ferry")
    plain = question("ferry to Moss")
    assert confidence([scored(corrected, said)]) > confidence([scored(plain, said)])
    assert unmatched_words([scored(corrected, said)]) == ("moss",)


def test_the_words_that_are_missing_are_those_of_the_subject_as_they_were_asked() -> None:
    asked = question("List Ben's salaries, pensions and pets in Moss")
    found = [scored(asked, candidate("my puppy", name="Ben"), near=("moss",))]
    assert unmatched_words(found) == ("salaries", "pensions")
    assert unmatched_words([]) == ()


@given(st.lists(WORDS, min_size=1, max_size=6), st.lists(st.lists(WORDS, max_size=6), max_size=4), st.floats(0.0001, 1))
def test_the_strength_is_a_share_and_more_hits_take_nothing_from_it(
    query: Sequence[str], said: Sequence[Sequence[str]], score: float
) -> None:
    asked = question(" ".join(query))
    names = (None, "Ann", "Moss")
    found = [scored(asked, candidate(" ".join(one), at, name=names[at % 3]), score) for at, one in enumerate(said)]
    measured = confidence(found)
    assert 0 <= measured <= 1
    assert (measured == 0) >= (not found)
    assert not found or measured >= confidence(found[:1])
    assert not found or set(unmatched_words(found)) <= set(unmatched_words(found[:1]))


anyio_test = pytest.mark.anyio


@anyio_test
@pytest.mark.parametrize("query", ["What is Ben's salary?", "Which pension will Ben get?", "Does Ben fence?"])
async def test_what_nobody_spoke_of_finds_nothing_and_the_note_names_it(store: SqliteStore, query: str) -> None:
    await remember(store, *BEN)
    page = await page_of(store, SearchRequest(query), policy=SHIPPED)
    assert page.hits == ()
    unsaid = query.rstrip("?").split()[-1 if "salary" in query or "fence" in query else 1]
    assert f'not found: "{unsaid}"' in (page.note or "")


@anyio_test
@pytest.mark.parametrize("query", ["cake", "Ben", "What did Ben bake?", "cherrry cake", "Bens cherry cake"])
async def test_what_was_spoken_of_is_found(store: SqliteStore, query: str) -> None:
    await remember(store, *BEN)
    assert (await page_of(store, SearchRequest(query), policy=SHIPPED)).hits


@anyio_test
@pytest.mark.parametrize(
    ("query", "text"), [("ferry", f"{LONG} ferry"), ("渡船", "明天早上坐渡船去"), ("船", "坐渡船")]
)
async def test_one_word_finds_what_has_it_even_in_a_long_text(store: SqliteStore, query: str, text: str) -> None:
    await remember(store, text, "It rained all day.")
    assert [hit.text for hit in (await page_of(store, SearchRequest(query), policy=SHIPPED)).hits] == [text]


@anyio_test
async def test_a_question_for_a_time_alone_is_answered_by_what_was_said_then(store: SqliteStore) -> None:
    await remember(store, *BEN)
    assert (await page_of(store, SearchRequest("What happened today?"), policy=SHIPPED)).hits


@anyio_test
async def test_missing_words_do_not_silence_what_is_alike_in_meaning(store: SqliteStore) -> None:
    await remember(store, *BEN)
    embedder = ScriptedEmbedder()
    await embed(store, embedder)
    request = SearchRequest("Ben cherrycakes baking")
    assert (await page_of(store, request, policy=SHIPPED, embedder=embedder)).hits
