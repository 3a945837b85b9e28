"""The shown part of a long text contains what was asked for, and its best sentences can be shown alone."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kalito_mcp.contexts.excerpts import Sentences, excerpt
from kalito_mcp.text.analysis import query_terms, terms

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


def test_an_excerpt_begins_with_the_sentence_that_has_most_of_what_is_asked() -> None:
    for text, begins, ends in (
        (f"The ferry leaves at seven. {FILLER}", "The ferry leaves at seven. We talked", "…"),
        (f"{FILLER}The ferry leaves at seven. {FILLER}", "…The ferry leaves at seven. We talked", "…"),
        (f"A ferry. {FILLER}The ferry leaves at seven. {FILLER}", "…The ferry leaves at seven. ", "…"),
        (f"{FILLER}\n- the ferry leaves at seven\n{FILLER}", "…- the ferry leaves at seven We talked", "…"),
        (f"{'so on and ' * 60}ferry leaves {'and so on ' * 60}", "…so on and", "…"),
        (FILLER, "We talked about the weather", "…"),
    ):
        shown = excerpt(text, set(query_terms("When does the ferry leave?")), 400)
        assert shown.startswith(begins)
        assert shown.endswith(ends)
        assert len(shown) > 320
        assert ("ferry leaves" in shown) == ("ferry" in text)


@given(TEXTS, st.integers(100, 400), st.data())
def test_the_sentences_are_the_excerpt_and_some_of_them_are_pieces_of_it(
    text: str, at_most: int, data: st.DataObject
) -> None:
    sentences = Sentences(text, {"ferry"}, at_most)
    assert "".join(sentences.texts) == sentences.shown(sentences.places) == excerpt(text, {"ferry"}, at_most)
    assert sentences.is_whole(sentences.places) == (len(text) <= at_most)
    kept = data.draw(st.sets(st.sampled_from(sentences.places))) if sentences.texts else set()
    for part in sentences.shown(kept).split("…"):
        assert part.strip(" …") in excerpt(text, {"ferry"}, at_most)
    assert len(kept) == len(sentences.texts) or not sentences.is_whole(kept)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            "We fly to Oslo on the third of May, all of us. No, Bergen. The hotel is by the harbour, near the market.",
            [
                "We fly to Oslo on the third of May, all of us. No, Bergen. ",
                "The hotel is by the harbour, near the market.",
            ],
        ),
        (
            "hi. The rent goes up to 940 euros in April. Dr. Mowat will see me from the 11. to the 13. of it.",
            [
                "hi. The rent goes up to 940 euros in April. ",
                "Dr. Mowat will see me from the 11. to the 13. of it.",
            ],
        ),
        ("x" * 700, ["x" * 320, "x" * 320, "x" * 60]),
    ],
)
def test_a_short_sentence_stays_with_the_one_before_and_a_very_long_one_is_cut(text: str, found: list[str]) -> None:
    assert Sentences(text, (), 4_000).texts == found


def test_what_is_left_out_between_two_sentences_is_marked() -> None:
    said = [f"This is the sentence with the number {number} in it. " for number in range(4)]
    sentences = Sentences("".join(said), (), 4_000)
    assert sentences.shown({1, 3}) == f"…{said[1].rstrip()} … {said[3].rstrip()}"
    assert sentences.shown({0, 1}) == f"{said[0]}{said[1].rstrip()}…"
    assert sentences.beginning(2 * len(said[0])) == [0, 1]
    assert sentences.beginning(1) == [0]


def test_a_statement_a_number_and_what_was_asked_for_make_a_sentence_worth_more() -> None:
    for more, less in (
        ("The rent goes up to 940 euros in April.", "The rent goes up quite a lot in April."),
        ("The rent goes up quite a lot in April.", "Does the rent go up a lot in April, then?"),
        ("The rent goes up quite a lot in April, and the heating as well.", "That was nice of the two of them."),
        ("The ferry leaves when it likes to leave, here.", "The train leaves when it likes to leave, here."),
    ):
        worth = [
            Sentences(text, query_terms("When do ferries leave?"), 4_000).worth(0, is_assistant=is_assistant)
            for text, is_assistant in ((more, False), (less, False), (less, True))
        ]
        assert 1 >= worth[0] > worth[1] > worth[2] >= 0
