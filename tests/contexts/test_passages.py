"""Hits come with the turns around them. The shown part of a long text contains what was asked for."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kalito_mcp.contexts.passages import Turn, excerpt, passages, turns
from kalito_mcp.domain.records import Origin, RecordType, Role
from kalito_mcp.domain.search import Candidate, Hit
from kalito_mcp.text.analysis import query_terms, terms
from tests.scripted import START_MS

FILLER = "We talked about the weather and what the neighbours had planted. " * 20
WORDS = st.sampled_from(
    "ferry ferries leaves left. seven? Oslo, the of and plan planned l’été Ärger мама 東京に行く。 猫 naïve "
    "https://example.org/a-very/long/address/with-the-ferry/in-it/and/more/of/the/same/so/that/it/does/not/end/soon "
    "\n \n\n - 👩\u200d👧 \u202e x86_64 don't".split(" ")
)
TEXTS = st.one_of(
    st.lists(WORDS, max_size=150).map(" ".join),
    st.lists(WORDS, max_size=150).map("".join),
    st.text(max_size=600),
    st.builds(
        lambda head, word, tail: head + word + tail, st.sampled_from([FILLER, "字" * 500]), WORDS, st.just(FILLER)
    ),
)


def hit(key: int, seq: int | None, session_id: str = "s", text: str = "x") -> Hit:
    said = (session_id, Role.USER, None, text, START_MS)
    return Hit(f"msg_{key}", RecordType.MESSAGE, *said, 0.5, None, key, seq=seq)


def message(key: int, seq: int | None, session_id: str = "s", text: str = "x") -> Candidate:
    said = (session_id, Role.ASSISTANT, None, text, START_MS, seq, None, Origin.ASSISTANT)
    return Candidate(key, f"msg_{key}", RecordType.MESSAGE, *said)


def seqs(kept: list[Turn]) -> list[list[int | None]]:
    return [[turn.said.seq for turn in passage] for passage in passages(kept)]


@given(TEXTS, st.lists(WORDS, min_size=1, max_size=4).map(" ".join), st.integers(100, 400))
@example("字" * 500 + "ferry", "ferry", 100)
@example("a " + "x" * 1_000, "x", 100)
def test_an_excerpt_is_never_longer_and_has_an_asked_word_where_the_text_has_one(
    text: str, query: str, at_most: int
) -> None:
    asked = frozenset(query_terms(query))
    shown = excerpt(text, asked, at_most)
    assert len(shown) <= at_most
    assert "\n" not in shown
    assert asked.isdisjoint(terms(text)) or not asked.isdisjoint(terms(shown))


@given(TEXTS, st.integers(100, 400))
def test_an_excerpt_is_a_piece_of_the_text_and_its_ellipses_say_where_it_was_cut(text: str, at_most: int) -> None:
    whole = " ".join(text.split())
    shown = excerpt(text, {"ferry"}, at_most)
    assert (shown == whole) or len(whole) > at_most
    inner = shown if shown == whole else shown.removeprefix("…").removesuffix("…")
    assert inner in whole


@pytest.mark.parametrize(
    ("text", "begins", "ends"),
    [
        (f"The ferry leaves at seven. {FILLER}", "The ferry leaves at seven. We talked", "…"),
        (f"{FILLER}The ferry leaves at seven.", "…", "The ferry leaves at seven."),
        (f"{FILLER}The ferry leaves at seven. {FILLER}", "…The ferry leaves at seven. We talked", "…"),
        (f"A ferry. {FILLER}The ferry leaves at seven. {FILLER}", "…The ferry leaves at seven. ", "…"),
        (f"{FILLER}\n- the ferry leaves at seven\n{FILLER}", "…- the ferry leaves at seven We talked", "…"),
        (f"{'so on and ' * 60}ferry leaves {'and so on ' * 60}", "…so on and", "…"),
        (FILLER, "We talked about the weather", "…"),
    ],
)
def test_an_excerpt_begins_with_the_sentence_that_has_most_of_what_is_asked(text: str, begins: str, ends: str) -> None:
    shown = excerpt(text, set(query_terms("When does the ferry leave?")), 400)
    assert shown.startswith(begins)
    assert shown.endswith(ends)
    assert len(shown) > 320
    assert ("ferry leaves" in shown) == ("ferry" in text)


def test_a_hit_is_between_the_turns_before_and_after_it() -> None:
    kept = turns([hit(5, 5)], [message(6, 6), message(4, 4), message(7, 7)], "")
    assert [turn.said.seq for turn in kept] == [5, 4, 6]
    assert [turn.is_hit for turn in kept] == [True, False, False]
    assert seqs(kept) == [[4, 5, 6]]


def test_hits_that_share_a_neighbour_are_one_passage_and_two_without_it() -> None:
    hits = [hit(7, 7), hit(5, 5)]
    around = [message(4, 4), message(6, 6), message(8, 8)]
    assert seqs(turns(hits, around, "")) == [[4, 5, 6, 7, 8]]
    assert seqs(turns(hits, [around[0], around[2]], "")) == [[7, 8], [4, 5]]


def test_only_turns_of_one_session_make_a_passage_and_what_has_no_place_stands_alone() -> None:
    hits = [hit(1, 1, "b"), hit(2, 2, "a"), hit(3, None, "a"), hit(4, None, "a")]
    assert seqs(turns(hits, [message(9, 3, "b"), message(8, 2, "b")], "")) == [[1, 2], [2], [None], [None]]


def test_a_neighbour_is_condensed_more_than_a_hit() -> None:
    found, beside = turns([hit(1, 1, text=FILLER)], [message(2, 2, text=FILLER + "The ferry!")], "ferry")
    assert 320 < len(found.text) <= 400
    assert len(beside.text) <= 160
    assert beside.text.endswith("The ferry!")


@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.integers(1, 12)), unique=True, max_size=8),
    st.lists(st.tuples(st.sampled_from("ab"), st.integers(1, 12)), unique=True, max_size=16),
)
def test_every_beginning_of_the_turns_makes_passages_in_order_of_their_best_hits(
    found: list[tuple[str, int]], around: list[tuple[str, int]]
) -> None:
    keys = {place: number for number, place in enumerate([*found, *(one for one in around if one not in found)])}
    hits = [hit(keys[place], place[1], place[0]) for place in found]
    ordered = turns(hits, [message(keys[place], place[1], place[0]) for place in around], "")
    assert [turn.said for turn in ordered[: len(hits)]] == hits
    assert not any(turn.is_hit for turn in ordered[len(hits) :])
    for kept in range(len(ordered) + 1):
        made = passages(ordered[:kept])
        assert sorted(turn.said.key for passage in made for turn in passage) == sorted(
            turn.said.key for turn in ordered[:kept]
        )
        best = [min(turn.rank for turn in passage if turn.is_hit) for passage in made]
        assert best == sorted(best)
        for passage in made:
            first = passage[0].said.seq or 0
            assert [turn.said.seq for turn in passage] == list(range(first, first + len(passage)))
            assert len({turn.said.session_id for turn in passage}) == 1
