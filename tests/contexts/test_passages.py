"""Hits come with the turns around them. The shown part of a long text contains what was asked for."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kalito_mcp.contexts.passages import AROUND_CHARS, HIT_CHARS, Turn, ends, excerpt, passages, steps
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


def hit(key: int, seq: int | None, session_id: str = "s", text: str = "x", role: Role = Role.USER) -> Hit:
    said = (session_id, role, None, text, START_MS)
    return Hit(f"msg_{key}", RecordType.MESSAGE, *said, 0.5, None, key, seq=seq)


def message(
    key: int, seq: int | None, session_id: str = "s", text: str = "x", role: Role = Role.ASSISTANT
) -> Candidate:
    said = (session_id, role, None, text, START_MS, seq, None, Origin.ASSISTANT)
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


def shown(hits: list[Hit], around: list[Candidate], *, kept: int | None = None) -> list[Turn]:
    return [turn for step in steps(hits, around, "")[:kept] for turn in step]


def test_a_hit_comes_first_and_then_the_turns_before_and_after_it() -> None:
    found = shown([hit(5, 5)], [message(6, 6, role=Role.USER), message(4, 4), message(7, 7, role=Role.USER)])
    assert [turn.said.seq for turn in found] == [5, 4, 6, 7]
    assert [turn.is_hit for turn in found] == [True, False, False, False]
    assert seqs(found) == [[4, 5, 6, 7]]


def test_what_the_assistant_said_never_stands_without_the_answer_of_the_user() -> None:
    proposal = hit(7, 7, role=Role.ASSISTANT)
    around = [message(number, number) for number in (6, 8, 10)] + [message(9, 9, role=Role.USER)]
    assert [[turn.said.seq for turn in step] for step in steps([proposal], around, "")] == [[7, 8, 9], [6], [10]]


def test_a_question_brings_the_proposal_with_its_answer_and_then_the_outcome() -> None:
    around = [message(7, 7), message(8, 8, role=Role.USER), message(9, 9)]
    assert [[turn.said.seq for turn in step] for step in steps([hit(6, 6)], around, "")] == [[6], [7, 8], [9]]


def test_one_more_turn_around_a_hit_comes_after_eight_further_hits() -> None:
    hits = [hit(number, 10 * number) for number in range(1, 12)]
    found = steps(hits, [message(99, 11, role=Role.USER)], "")
    assert [turn.said.key for step in found for turn in step] == [*range(1, 10), 99, 10, 11]


def test_hits_that_share_a_turn_are_one_passage_and_two_without_it() -> None:
    hits = [hit(7, 7), hit(5, 5)]
    around = [message(number, number, role=Role.USER) for number in (4, 6, 8)]
    assert seqs(shown(hits, around)) == [[4, 5, 6, 7, 8]]
    assert seqs(shown(hits, [around[0], around[2]])) == [[7, 8], [4, 5]]


def test_only_turns_of_one_session_make_a_passage_and_what_has_no_place_stands_alone() -> None:
    hits = [hit(1, 1, "b"), hit(2, 2, "a"), hit(3, None, "a"), hit(4, None, "a")]
    around = [message(9, 3, "b", role=Role.USER), message(8, 2, "b", role=Role.USER)]
    assert seqs(shown(hits, around)) == [[1, 2, 3], [2], [None], [None]]


@pytest.mark.parametrize("level", range(len(HIT_CHARS)))
def test_a_turn_around_a_hit_is_condensed_more_than_the_hit(level: int) -> None:
    long = FILLER * 10
    [[found], [beside]] = steps(
        [hit(1, 1, text=long)], [message(2, 2, text=long + "The ferry!", role=Role.USER)], "ferry", level=level
    )
    assert 0.8 * HIT_CHARS[level] < len(found.text) <= HIT_CHARS[level]
    assert len(beside.text) <= AROUND_CHARS[level]
    assert beside.text.endswith("The ferry!")


def test_of_latest_conversations_the_last_two_turns_of_each_come_first() -> None:
    said = [[hit(number, number, session) for number in range(1, 5)] for session in ("new", "old")]
    found = ends(said, "")
    assert [[(turn.said.session_id, turn.said.seq) for turn in step] for step in found] == [
        [("new", 3), ("new", 4)],
        [("old", 3), ("old", 4)],
        [("new", 1), ("new", 2)],
        [("old", 1), ("old", 2)],
    ]


@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.integers(1, 12)), unique=True, max_size=8),
    st.lists(st.tuples(st.sampled_from("ab"), st.integers(1, 12)), unique=True, max_size=16),
)
def test_the_first_steps_make_passages_in_order_of_their_best_hits(
    found: list[tuple[str, int]], around: list[tuple[str, int]]
) -> None:
    keys = {place: number for number, place in enumerate([*found, *(one for one in around if one not in found)])}
    hits = [hit(keys[place], place[1], place[0]) for place in found]
    messages = [message(keys[place], place[1], place[0]) for place in around]
    for kept in range(len(steps(hits, messages, "")) + 1):
        turns = shown(hits, messages, kept=kept)
        made = passages(turns)
        assert len({turn.said.key for turn in turns}) == len(turns)
        assert sorted(turn.said.key for passage in made for turn in passage) == sorted(turn.said.key for turn in turns)
        best = [min(turn.rank for turn in passage) for passage in made]
        assert best == sorted(best)
        for passage in made:
            first = passage[0].said.seq or 0
            assert [turn.said.seq for turn in passage] == list(range(first, first + len(passage)))
            assert len({turn.said.session_id for turn in passage}) == 1
