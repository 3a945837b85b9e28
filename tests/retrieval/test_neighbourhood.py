"""What records contain of a question, and what stands around them, before their texts are read."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kalito_mcp.domain.records import RecordType
from kalito_mcp.domain.search import Candidate
from kalito_mcp.domain.time import DAY_MS
from kalito_mcp.retrieval.matches import ONLY_TERMS, TERM_BITS
from kalito_mcp.retrieval.neighbourhood import Neighbourhood
from tests.retrieval.builders import candidate, columns, matches, neighbourhood, question
from tests.scripted import START_MS

ASKED = ("ferry", "clover", "heron", "oslo", "ticket")
SHARES = {-2: 0.25, -1: 0.3, 1: 0.3, 2: 0.2, 3: 0.1}


class Said(NamedTuple):
    """One record: how often it contains each of ASKED, and how many other words."""

    times: tuple[int, ...]
    fillers: int = 0
    session: str | None = "trip"
    kind: RecordType = RecordType.MESSAGE
    is_hidden: bool = False
    is_candidate: bool = True

    @property
    def terms(self) -> set[str]:
        """What it contains, as far as the search may see it."""
        return set() if self.is_hidden else {term for term, times in zip(ASKED, self.times, strict=True) if times}

    @property
    def words(self) -> int:
        return sum(self.times) + self.fillers


TIMES = st.tuples(*[st.sampled_from([0, 0, 0, 1, 2, 3, 4, 6])] * len(ASKED))
MEMORIES = st.lists(
    st.builds(
        Said,
        TIMES,
        st.integers(0, 200),
        st.sampled_from(["trip", "home", "gym"]),
        st.sampled_from([RecordType.MESSAGE, RecordType.MESSAGE, RecordType.MESSAGE, RecordType.PIN]),
        st.sampled_from([False, False, False, True]),
        st.booleans(),
    )
    | st.builds(Said, TIMES, st.integers(0, 200), st.none(), st.just(RecordType.TASK)),
    max_size=20,
)


def records_of(memory: Sequence[Said]) -> list[Candidate]:
    """The records, of which none has a name. Their keys have gaps."""
    return [
        candidate(
            " ".join(
                [term for term, times in zip(ASKED, one.times, strict=True) for _ in range(times)] + ["x"] * one.fillers
            ),
            3 * number,
            session=one.session,
            kind=one.kind,
        )
        for number, one in enumerate(memory, 1)
    ]


class OneByOne:
    """The features as the words of their docstrings say them, one record after the other."""

    def __init__(self, memory: Sequence[Said]) -> None:
        self._memory = memory
        self.places = [place for place, one in enumerate(memory) if one.is_candidate and not one.is_hidden]
        count = sum(not one.is_hidden for one in memory)
        weights = {term: math.log(1 + count / max(1, sum(term in one.terms for one in memory))) for term in ASKED}
        mass = sum(weights.values())
        self._shares = {term: weight / mass if mass else 0.0 for term, weight in weights.items()}

    def turn(self, place: int, offset: int) -> int | None:
        """The place of the message so many turns on."""
        one = self._memory[place]
        if one.kind is not RecordType.MESSAGE:
            return None
        turns = [
            at
            for at, other in enumerate(self._memory)
            if other.session == one.session and other.kind is RecordType.MESSAGE
        ]
        at = turns.index(place) + offset
        return turns[at] if 0 <= at < len(turns) else None

    def around(self, place: int, offset: int) -> set[str]:
        at = self.turn(place, offset)
        return set() if at is None else self._memory[at].terms

    def lexical(self, place: int) -> float:
        one, found = self._memory[place], 0.0
        for term, times in zip(ASKED, one.times, strict=True):
            if times and not one.is_hidden:
                estimate = 5.0 if times >= 4 else 2.4 if times >= 2 else 1.0
                found += self._shares[term] * estimate / (estimate + 0.6 + 0.04 * one.words)
        return found

    def neighbours(self, place: int) -> float:
        one = self._memory[place]
        of_session = [at for at in self.places if self._memory[at].session == one.session is not None] or [place]
        in_session = set().union(*(self._seen(at) for at in of_session)) | one.terms
        total = 0.0
        for term in in_session:
            near = sum(share for offset, share in SHARES.items() if term in self.around(place, offset))
            total += self._shares[term] * (1.0 if term in one.terms else 0.15 + min(near, 0.85))
        return total / (1 + one.words / 75)

    def session(self, place: int) -> float:
        session = self._memory[place].session
        best = sorted(self.neighbours(at) for at in self.places if self._memory[at].session == session)[-3:]
        return 0.0 if session is None else sum(best) / 3

    def _seen(self, place: int) -> set[str]:
        return self._memory[place].terms.union(*(self.around(place, offset) for offset in SHARES))


@given(MEMORIES)
def test_all_at_once_the_features_are_those_computed_one_by_one(memory: list[Said]) -> None:
    records, expected = records_of(memory), OneByOne(memory)
    hidden = frozenset(record.key for record, one in zip(records, memory, strict=True) if one.is_hidden)
    found = matches(question(" ".join(ASKED)), *records, hidden=hidden)
    assert found.lexical.tolist() == pytest.approx([expected.lexical(place) for place in range(len(memory))])
    assert [set(found.terms_in(int(mask))) for mask in found.masks[:-1]] == [one.terms for one in memory]
    assert found.places.tolist() == [place for place, one in enumerate(memory) if one.terms]
    around = Neighbourhood(columns(*records), found, np.array(expected.places, np.int64))
    assert around.neighbours.tolist() == pytest.approx(list(map(expected.neighbours, expected.places)))
    assert around.session.tolist() == pytest.approx(list(map(expected.session, expected.places)))
    for at, place in enumerate(expected.places):
        near = set().union(*(expected.around(place, offset) for offset in SHARES))
        assert set(found.terms_in(around.neighbour_terms(at))) == near
        session = memory[place].session
        others = [other for other in expected.places if other != place and memory[other].session == session]
        assert around.is_alone(at) == (session is None or not any(memory[other].terms for other in others))


@given(MEMORIES)
def test_context_scores_are_in_zero_to_one_and_never_below_the_own_terms(memory: list[Said]) -> None:
    shown = [one._replace(is_hidden=False) for one in memory]
    records = records_of(shown)
    found, around = matches(question(" ".join(ASKED)), *records), neighbourhood(question(" ".join(ASKED)), *records)
    undamped = around.neighbours * (1 + columns(*records).word_counts / 75)
    assert all(0.0 <= value < 1.0 for value in found.lexical)
    assert all(own <= value + 1e-6 for own, value in zip(found.own, undamped, strict=True))
    assert all(lexical <= own + 1e-6 for lexical, own in zip(found.lexical, found.own, strict=True))
    assert all(value <= 1 + 1e-6 for value in (*undamped, *around.session))
    assert (found.lexical > 0).tolist() == [bool(one.terms) for one in shown]


def test_a_rarer_term_weighs_more_and_a_term_that_nothing_holds_weighs_most() -> None:
    found = matches(
        question("common rare absent"), *(candidate("common", key) for key in range(1, 99)), candidate("rare", 99)
    )
    weights = dict(zip(found.terms, found.shares.tolist(), strict=True))
    mass = sum(math.log1p(99 / count) for count in (98, 1, 1))
    assert weights == pytest.approx(
        {"common": math.log1p(99 / 98) / mass, "rare": math.log1p(99) / mass, "absent": math.log1p(99) / mass}
    )
    assert sum(found.shares) == pytest.approx(1)


def test_terms_beyond_those_of_a_mask_count_in_the_text_alone() -> None:
    many = [f"word{number}x" for number in range(TERM_BITS + 2)]
    asked = question(" ".join(many), max_terms=100)
    said = [candidate(word, key) for key, word in enumerate([*many[:-1], many[-1], many[-1]], 1)]
    found = matches(asked, *said)
    assert found.terms == tuple(many[:TERM_BITS])
    assert (found.masks & ONLY_TERMS)[TERM_BITS:].tolist() == [0] * (len(said) + 1 - TERM_BITS)
    assert (found.lexical > 0).all()
    assert found.places.tolist() == list(range(len(said)))


def test_no_records_contain_nothing() -> None:
    asked = question("ferry")
    assert (matches(asked).places.tolist(), matches(asked).masks.tolist()) == ([], [0])
    assert matches(asked, candidate("ferry"), hidden=frozenset({1})).places.tolist() == []


def test_a_record_that_is_out_of_scope_is_not_counted() -> None:
    said = [candidate("ferry", 1), candidate("ferry clover", 2), candidate("clover", 3)]
    assert matches(question("ferry clover"), *said, hidden=frozenset({3})).own.tolist() == pytest.approx(
        [*matches(question("ferry clover"), *said[:2]).own, 0.0]
    )


def around_turn(offset: int) -> float:
    """What turn 10 gets of the only term, which is in the turn so far from it."""
    turns = [candidate("ferry" if key == 10 + offset else "", key) for key in range(1, 21)]
    return float(neighbourhood(question("ferry"), *turns).neighbours[9])


def test_nearer_turns_count_more_and_earlier_ones_more_than_later_ones() -> None:
    shares = {offset: around_turn(offset) for offset in (-4, -3, -2, -1, 1, 2, 3, 4)}
    assert shares[-1] > shares[-2] > shares[-3]
    assert shares[1] > shares[2] > shares[3] > shares[4]
    assert (shares[-1], shares[-2]) > (shares[1], shares[2])
    assert shares[-4] == shares[4] == shares[-3] > 0  # these have the share of the session alone


def test_what_is_said_elsewhere_is_no_context() -> None:
    at, elsewhere = candidate("", 10), candidate("ferry", 11, session="home")
    around = neighbourhood(question("ferry"), at, elsewhere)
    assert (around.neighbours[0], around.neighbour_terms(0), around.session[0]) == (0.0, 0, 0.0)


def test_records_without_a_session_have_their_own_words_alone() -> None:
    said = [candidate(text, key, session=None, kind=RecordType.TASK) for key, text in enumerate(("ferry", "clover"), 1)]
    around = neighbourhood(question("ferry clover"), *said)
    assert around.neighbours.tolist() == pytest.approx([0.5 / (1 + 1 / 75)] * 2)
    assert (around.session.tolist(), around.neighbour_terms(0), around.is_alone(0)) == ([0.0, 0.0], 0, True)


def test_a_term_counts_once_however_many_turns_around_hold_it() -> None:
    turns = [candidate("" if key == 10 else "ferry", key) for key in range(1, 20)]
    assert neighbourhood(question("ferry"), *turns).neighbours[9] == 1.0


def test_the_longer_a_text_is_the_less_its_surroundings_say() -> None:
    said = [candidate("ferry" + " x" * (length - 1), session=None) for length in (1, 10, 75, 1_000, 100_000)]
    found = [float(neighbourhood(question("ferry"), one).neighbours[0]) for one in said]
    assert found == sorted(found, reverse=True)
    assert found[2] == 0.5
    assert found[-1] > 0


def test_instances_of_a_kind_are_no_terms_and_no_context() -> None:
    said = [candidate("my puppy", 1), candidate("hello", 2)]
    found, around = matches(question("Which pets?"), *said), neighbourhood(question("Which pets?"), *said)
    assert found.places.tolist() == [0]
    assert found.hyponym[0] > 0 == found.hyponym[1]
    assert [found.has_hyponym(int(mask)) for mask in found.masks] == [True, False, False]
    assert around.neighbour_terms(0) == around.neighbour_terms(1) == 0
    assert not (found.lexical.any() or around.neighbours.any())


def test_the_terms_around_are_those_of_the_turns_in_reach_whoever_writes_between() -> None:
    said = ["heron", "", "", "clover", "ferry", "", "", "oslo", "ticket"]
    mine = [candidate(text, 2 * key) for key, text in enumerate(said, 1)]
    theirs = [candidate("ticket", 2 * key + 1, session="home") for key in range(1, 9)]
    together = sorted([*mine, *theirs], key=lambda one: one.key)
    asked = question(" ".join(ASKED))
    found, around = matches(asked, *together), neighbourhood(asked, *together)
    assert found.terms_in(around.neighbour_terms(together.index(mine[4]))) == ["clover", "oslo"]


def test_a_session_is_worth_the_mean_of_its_three_best() -> None:
    one = neighbourhood(question("ferry"), candidate("ferry", 1), candidate("", 2, session="home"))
    assert one.session.tolist() == pytest.approx([one.neighbours[0] / 3, 0.0])
    four = neighbourhood(question("ferry"), *(candidate("ferry", key) for key in range(1, 5)))
    assert four.session.tolist() == pytest.approx(four.neighbours.tolist())


def semantic(
    similarities: Mapping[int, float], text: str = "ferry", *, apart_ms: int = 0
) -> tuple[list[float], list[float]]:
    """For each of eight turns, so far apart in time, its similarity in its place, and the one around it. The
    similarities are by place."""
    turns = [candidate(text, key, created_at=START_MS + key * apart_ms) for key in range(1, 9)]
    own, around = neighbourhood(question("ferry"), *turns).semantic(similarities)
    return own.tolist(), around.tolist()


def test_of_what_is_around_the_nearer_counts_the_more_and_the_record_itself_not() -> None:
    found = [semantic({place: 0.5})[1][3] for place in range(8)]
    assert found == pytest.approx([0.15, 0.3, 0.5, 0.0, 0.5, 0.3, 0.15, 0.0])
    assert semantic({2: 0.2, 1: 0.9})[1][3] == pytest.approx(0.54)
    assert not any(semantic({2: -0.5})[1])
    assert semantic({}) == ([0.0] * 8, [0.0] * 8)


def test_turns_of_another_day_say_nothing_about_each_others_meaning() -> None:
    similar = dict.fromkeys(range(8), 0.5) | {3: 0.2}
    own, around = semantic(similar, apart_ms=DAY_MS)
    assert own[3] == 0.2
    assert not any(around)
    # Of turns six hours apart, two in each direction are near.
    assert semantic({6: 0.5}, apart_ms=DAY_MS // 4)[1] == pytest.approx([0, 0, 0, 0, 0.3, 0.5, 0, 0.5])


def test_the_turns_next_to_a_text_count_the_more_the_shorter_it_is() -> None:
    similar = {2: 0.6, 3: 0.2, 4: 0.6, 5: 0.9}
    short, long = (semantic(similar, text)[0][3] for text in ("ferry", "ferry " * 600))
    middle = semantic(similar, "ferry " * 75)[0][3]
    assert middle == pytest.approx((0.2 + 0.25 * 0.6 * 2) / 1.5)
    assert 0.2 < long < middle < short < 0.6


def test_a_text_without_a_word_of_the_question_has_its_own_similarity() -> None:
    assert semantic({2: 0.6, 3: 0.2, 4: 0.6}, "quince")[0][3] == 0.2


def test_a_turn_without_a_similarity_changes_none() -> None:
    assert semantic({3: 0.4, 5: 0.8})[0][3] == 0.4


@given(st.dictionaries(st.integers(0, 7), st.floats(-1, 1)))
def test_no_similarity_is_negative_or_exceeds_the_greatest(values: dict[int, float]) -> None:
    for of_turns in semantic(values):
        assert all(0.0 <= one <= max([0.0, *values.values()]) + 1e-9 for one in of_turns)
