"""The bar for what a prompt gets by itself: score, length, unknown words and specific terms."""

from collections.abc import Mapping

from kalito_mcp.contexts.bar import Bar

RARE = {"barcod": 2, "label": 3, "endpoint": 1}


def admits(
    prompt: str,
    counts: Mapping[str, int],
    score: float,
    text: str = "",
    *,
    asks: bool = True,
    recalls: bool = False,
    least: float = 0.2,
) -> bool:
    bar = Bar(prompt, counts, 1_000, asks=asks, recalls=recalls, min_score=least)
    return bar.admits(score, text)


def test_a_longer_question_needs_a_higher_score() -> None:
    assert admits("where is the label?", RARE, 0.3)
    assert not admits("where is the label?", RARE, 0.3, least=0.4)
    assert not admits(f"where is the label? {'It has a border. ' * 5}", RARE, 0.3)


def test_a_question_with_words_that_no_record_has_needs_a_higher_score() -> None:
    assert admits("where is the label?", {"label": 3}, 0.35)
    assert not admits("where is the zeppelin?", {"zeppelin": 0}, 0.35)


def test_a_prompt_that_asks_for_what_was_said_needs_the_least_score_alone() -> None:
    asked = f"what did we decide about the zeppelin? {'It is a large one. ' * 5}"
    assert admits(asked, {"zeppelin": 0}, 0.25, recalls=True)
    assert not admits(asked, {"zeppelin": 0}, 0.25)
    assert not admits(asked, {"zeppelin": 0}, 0.25, recalls=True, least=0.3)


def test_an_order_needs_two_specific_terms_and_a_third_of_all() -> None:
    order = "start with the barcode of the label"
    assert admits(order, RARE, 0.5, "The barcode is drawn on the label.", asks=False)
    assert not admits(order, RARE, 0.5, "The barcode is drawn.", asks=False)
    assert not admits(order, {"barcod": 200, "label": 300, "endpoint": 1}, 0.5, "a barcode on the label", asks=False)
    assert not admits("run the migration", {"run": 2, "migration": 2}, 0.9, "run the migration", asks=False)
    many = {**RARE, **{f"other{number}": 5 for number in range(6)}}
    assert not admits(order, many, 0.5, "The barcode is drawn on the label.", asks=False)


def test_four_specific_terms_are_enough_unless_the_prompt_is_long() -> None:
    counts = {"permission": 2, "deny": 2, "schema": 2, "public": 2, **{f"new{number}": 0 for number in range(12)}}
    failed = "permission denied for schema public"
    assert admits(f"adding a column now says: {failed}", counts, 0.1, failed, asks=False)
    assert not admits(f"adding a column now says: {failed} {'and more ' * 30}", counts, 0.1, failed, asks=False)
