"""The share of a question's words that a record has: in itself, in the turns around it, in its session."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kalito_mcp.domain.records import RecordType
from kalito_mcp.domain.search import Candidate
from kalito_mcp.retrieval.question import Question
from kalito_mcp.text.analysis import index_text
from tests.retrieval.builders import bm25f, candidate, question, shares

WORDS = ("ferry", "moss", "oslo", "heron", "ticket", "filler")
TURNS = st.lists(
    st.tuples(
        st.lists(st.sampled_from(WORDS), min_size=1, max_size=9).map(" ".join),
        st.sampled_from(["trip", "home", None]),
        st.sampled_from([None, "Moss"]),
        st.booleans(),
    ),
    min_size=1,
    max_size=12,
)


def turns(*texts: str, session: str | None = "trip", first: int = 1) -> list[Candidate]:
    return [candidate(text, key, session=session) for key, text in enumerate(texts, first)]


def alone(*texts: str) -> list[Candidate]:
    """Each in a session of its own."""
    return [candidate(text, key, session=f"s{key}") for key, text in enumerate(texts, 1)]


def test_a_text_has_a_larger_share_the_more_of_the_words_it_says() -> None:
    one, both, none = shares(question("ferry moss"), *alone("the ferry", "ferry to moss", "nothing of that"))
    assert both > one > none == 0


def test_a_rare_word_weighs_more_than_a_common_one() -> None:
    found = shares(question("heron ferry"), *alone("a heron", "a ferry", "a ferry", "a ferry"))
    assert found[0] > found[1]


def test_a_word_that_is_repeated_counts_more_but_not_as_often_as_it_is_said() -> None:
    once, twice, often = shares(question("ferry"), *alone("ferry a b c d", "ferry ferry b c d", "ferry " * 4 + "d"))
    assert once < twice < often < 2.2 * once


def test_a_word_of_a_longer_text_counts_less() -> None:
    short, long = shares(question("ferry"), *alone("the ferry", "the ferry " + "of something else entirely " * 9))
    assert short > long


def test_the_turns_at_one_and_two_places_count_and_no_farther_one_more_than_the_session() -> None:
    said = turns("one", "two", "three", "the ferry", "five", "six", "seven", "eight")
    far, two, one, own, _, _, farther, last = shares(question("ferry"), *said)
    assert own > one > two > far == farther == last > 0


def test_another_session_and_a_record_that_is_no_turn_get_nothing_of_it() -> None:
    pin = candidate("a pin", 3, kind=RecordType.PIN, session=None)
    assert shares(question("ferry"), *turns("the ferry"), *turns("at home", session="home", first=2), pin)[1:] == [0, 0]


def test_a_record_out_of_scope_neither_counts_nor_lends_its_words() -> None:
    said = alone("a heron", "a ferry", "a ferry", "a ferry")
    without = shares(question("heron ferry"), *said[:2])
    assert shares(question("heron ferry"), *said, hidden=frozenset({3, 4}))[:2] == pytest.approx(without)
    assert shares(question("ferry"), *turns("the ferry", "at seven"), hidden=frozenset({1})) == [0, 0]


def test_the_share_of_several_wordings_is_their_weighted_mean() -> None:
    said = alone("the ferry to moss", "my boat leaves", "nothing")
    asked, other = shares(question("ferry moss"), *said), shares(question("boat"), *said)
    both = shares(question("ferry moss", "boat"), *said, weights=[0.75, 0.25])
    assert both == pytest.approx([0.75 * one + 0.25 * two for one, two in zip(asked, other, strict=True)])


def test_a_wording_without_a_word_counts_for_nothing() -> None:
    said = alone("the ferry to moss", "nothing")
    assert shares(question("ferry", "and the?"), *said) == pytest.approx(shares(question("ferry"), *said), rel=0.5)
    assert shares(question("who are they?", "ferry"), *said)[0] > 0


def test_only_a_record_with_a_word_of_its_own_is_among_the_places() -> None:
    assert bm25f(question("ferry"), *turns("the ferry", "at seven")).places.tolist() == [0]


@given(said=TURNS, asked=st.lists(st.sampled_from(WORDS), min_size=1, max_size=4, unique=True))
def test_the_shares_are_those_of_the_formula_written_out(
    said: list[tuple[str, str | None, str | None, bool]], asked: list[str]
) -> None:
    records = [
        candidate(text, key, session=session, name=name, kind=RecordType.PIN if is_pin else RecordType.MESSAGE)
        for key, (text, session, name, is_pin) in enumerate(said, 1)
    ]
    wanted = question(" ".join(asked))
    assert shares(wanted, *records) == pytest.approx(_written_out(wanted, records), abs=1e-5)


def _written_out(asked: Question, said: list[Candidate]) -> list[float]:
    indexed = [index_text(one.text, one.name) for one in said]
    mean = sum(one.word_count for one in indexed) / len(said)

    def own(term: str, place: int) -> float:
        one = indexed[place]
        times = 3 if term in one.many else 2.4 if term in one.several else float(term in one.terms)
        return times / (0.5 + 0.5 * one.word_count / mean)

    def around(place: int, step: int) -> int | None:
        if said[place].type is not RecordType.MESSAGE or said[place].session_id is None:
            return None
        session = [
            at
            for at, one in enumerate(said)
            if one.session_id == said[place].session_id and one.type is RecordType.MESSAGE
        ]
        at = session.index(place) + step
        return session[at] if 0 <= at < len(session) else None

    def share(place: int) -> float:
        found = mass = 0.0
        for term in asked.terms:
            containing = [at for at, one in enumerate(indexed) if term in one.terms]
            idf = math.log(1 + (len(said) - len(containing) + 0.5) / (len(containing) + 0.5))
            often = own(term, place)
            for step, weight in ((-2, 0.25), (-1, 0.5), (1, 0.5), (2, 0.25)):
                beside = around(place, step)
                often += 0.0 if beside is None else weight * own(term, beside)
            session = said[place].session_id
            often += 0.1 * (session is not None and any(said[at].session_id == session for at in containing))
            mass += idf
            found += idf * 2.2 * often / (often + 1.2)
        return found / mass

    return [share(place) for place in range(len(said))]
