"""Typing mistakes are few, real, and the same in every run."""

import random
import re

from hypothesis import given
from hypothesis import strategies as st

from bench.typos import misspelt, mistyped

WORDS = st.text(st.sampled_from("abcdefghijklmnopqrstuvwxyzABCéß猫"), min_size=1, max_size=12)


def _is_one_mistake(word: str, wrong: str) -> bool:
    """One letter more, less or other, or two neighbours the other way round."""
    if len(wrong) == len(word):
        places = [place for place, pair in enumerate(zip(word, wrong, strict=True)) if pair[0] != pair[1]]
        first, last = places[0], places[-1]
        return len(places) == 1 or (last - first == 1 and wrong[first] == word[last] and wrong[last] == word[first])
    longer, shorter = sorted((word, wrong), key=len, reverse=True)
    return any(longer[:place] + longer[place + 1 :] == shorter for place in range(len(longer)))


@given(WORDS, st.integers())
def test_a_mistyped_word_has_exactly_one_mistake(word: str, seed: int) -> None:
    wrong = mistyped(word, random.Random(seed))
    assert wrong != word
    assert _is_one_mistake(word, wrong)


def test_the_same_seed_makes_the_same_mistakes() -> None:
    text = "When did Caroline go to the support group in January?"
    assert misspelt(text, 0.5, 1) == misspelt(text, 0.5, 1)
    assert len({misspelt(text, 0.5, seed) for seed in range(20)}) > 10


def test_short_words_and_everything_between_words_stay() -> None:
    wrong = misspelt("Did he see, at 10:30, the Quilt (1984)?", 1.0, 1)
    assert re.sub(r"\w{4,}", "", "Did he see, at 10:30, the ") in wrong
    assert "Quilt" not in wrong
    assert wrong.endswith(" (1984)?")


@given(st.text(max_size=60), st.integers())
def test_a_share_of_nothing_changes_nothing(text: str, seed: int) -> None:
    assert misspelt(text, 0.0, seed) == text


def test_about_the_given_share_of_the_long_words_is_mistyped() -> None:
    words = [f"{first}{second}word" for first in "abcdefghijklmnopqrst" for second in "abcdefghijklmnopqrst"]
    wrong = misspelt(" ".join(words), 0.5, 7).split()
    assert 0.4 < sum(one != other for one, other in zip(words, wrong, strict=True)) / len(words) < 0.6
