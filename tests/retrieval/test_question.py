"""A parsed query and its other wordings: their terms, what it asks for, and how it matches each word of a text."""

from hypothesis import example, given
from hypothesis import strategies as st

from kalito_mcp.domain.time import NEWEST_MS, OLDEST_MS
from kalito_mcp.retrieval.question import match_words
from kalito_mcp.text import irregular_forms
from kalito_mcp.text.analysis import stem
from kalito_mcp.text.irregular_forms import base_form
from kalito_mcp.text.times.expressions import Span
from tests.retrieval.builders import question

LETTERS = st.text("abcdefghijklmnopqrstuvwxyz", min_size=1, max_size=12)
ENDINGS = st.sampled_from(["", "s", "es", "ies", "ied", "ing", "ed", "ly", "e", "sses", "ying"])
WORDS = st.one_of(
    st.builds(str.__add__, LETTERS, ENDINGS),
    st.sampled_from(sorted(irregular_forms._BASES)),
    st.builds("{}'s".format, st.sampled_from(["men", "mice", "x", "ann", "went", "children"])),
    st.text(max_size=12),
)


def test_the_terms_are_distinct_stemmed_and_in_order_without_function_words() -> None:
    asked = question("What did Ann plan? Planning the ferries, planned by Ann")
    assert asked.terms == ("ann", "plan", "ferry")
    assert asked.forms == {"ann": ("ann",), "plan": ("plan",), "ferry": ("ferry",)}
    assert all(stem(asked.surface[term]) == term for term in asked.terms)


def test_no_more_terms_than_allowed_are_asked_for_and_they_are_the_first() -> None:
    asked = question(" ".join(f"word{n}x" for n in range(50)), max_terms=3)
    assert asked.terms == ("word0x", "word1x", "word2x")
    assert set(asked.forms) == set(asked.terms)


def test_other_wordings_have_terms_of_their_own_and_no_syntax() -> None:
    asked = question("the ferry to Moss", "when does the boat leave -now", "")
    assert asked.wordings == (("ferry", "moss"), ("boat", "leave"), ())
    assert asked.terms == ("ferry", "moss", "boat", "leave")
    assert asked.texts == ("the ferry to Moss", "when does the boat leave -now", "")
    assert asked.query.excluded == ()


def test_what_has_no_word_asks_for_nothing() -> None:
    for text in ("", " ", "!?", "\x00"):
        asked = question(text)
        assert asked.terms == ()
        assert not asked.dates


def test_what_is_left_out_is_no_term() -> None:
    asked = question('quay -moss -"night train" -pets')
    assert asked.terms == ("quay",)
    assert asked.query.excluded == ("moss", "pet")


def test_a_corrected_term_is_found_by_what_was_meant_for_less_and_stays_what_was_written() -> None:
    asked = question("the frery to Moss")
    corrected = asked.with_corrections({"frery": ("ferry", 0.8)})
    assert asked.corrected_terms == frozenset()
    assert corrected.corrected_terms == {"frery"}
    assert corrected.terms == asked.terms
    assert (corrected.forms["frery"], corrected.forms["moss"]) == (("frery", "ferry"), ("moss",))
    assert corrected.surface["frery"] == "frery"
    assert match_words(corrected, ["ferries", "frery"]) == {"ferries": "frery", "frery": "frery"}
    assert match_words(asked, ["ferries"]) == {}
    assert corrected.credit == {"ferry": 0.8}


def test_the_frame_of_a_question_is_no_term_unless_there_is_nothing_else() -> None:
    assert question("What kind of moss? Which TYPES OF ferry? What sorts of?").terms == ("moss", "ferry")
    assert question("How many ferries has she done?").terms == ("ferry",)
    assert question("a kind aunt").terms == ("kind", "aunt")
    assert question("kind of").terms == ("kind",)


def test_a_name_is_spoken_with_and_without_its_ending() -> None:
    assert {"ann", "zoe"} <= question("What is Ann's and ZOË's plan?").words


def test_a_moment_in_the_query_is_read_against_now_and_left_out_without_it() -> None:
    assert question("last week").dates
    assert not question("last week", now_ms=None).dates
    assert question("in March 2025", now_ms=None).dates


@given(WORDS.filter(bool))
@example("flies")
@example("ying")
def test_no_rule_of_the_stemmer_changes_the_first_two_letters(word: str) -> None:
    if stem(word):
        assert stem(word)[:2] == base_form(word.partition("'")[0])[:2]


@given(
    st.lists(WORDS, max_size=6).map(" ".join),
    st.lists(WORDS | st.sampled_from(["puppies", "kittens", "pets", "animals", "bought", "went"]), max_size=8),
)
@example("pets and animals", ["puppy", "cats", "pets"])
@example("whom did she buy it for", ["bought", "buys", "buying"])
@example("the men's team and X's team", ["men's", "man", "x's", "x"])
def test_what_a_word_is_to_a_question_is_found_as_if_every_word_were_stemmed(query: str, said: list[str]) -> None:
    asked = question(f"{query} pets")
    asked = asked.with_corrections({asked.terms[0]: ("kitten", 0.5)})
    vocabulary = {*said, *query.split()}
    by_stems = {word: [term for term in asked.terms if stem(word) in asked.forms[term]] for word in vocabulary}
    assert match_words(asked, vocabulary) == {word: terms[0] for word, terms in by_stems.items() if terms}


def test_what_stands_around_a_frame_is_read_whatever_it_is() -> None:
    for text in ("what kind of'em", "what types of'em does she like", "kind of's", "What kind of", "sort of"):
        asked = question(text)
        assert asked.surface.keys() >= set(asked.terms)


def test_a_question_for_all_that_is_known_is_answered_by_whatever_was_said() -> None:
    for query in (
        "what do you know about me?",
        "What do you remember?",
        "list everything you have stored",
        "please tell me what you remember about the user",
    ):
        asked = question(query)
        assert asked.asks_time_alone
        assert asked.spans == (Span(OLDEST_MS, NEWEST_MS),)


def test_a_question_for_one_thing_is_not_answered_by_everything() -> None:
    for query in (
        "what do you know about Mia?",
        "do you know the way to Porto?",
        "do you remember it?",
        "who is Mia?",
        "what do people like to eat?",
        "everything about the kite",
    ):
        assert not question(query).asks_time_alone
