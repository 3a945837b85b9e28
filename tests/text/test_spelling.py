"""The words that a mistyped word may stand for, and how far apart two words are."""

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from kalito_mcp.text.spelling import distance, is_spellable, spellings

WORDS = st.text("abcy", min_size=1, max_size=9)
MISTAKES: list[Callable[[str, int, str], str]] = [
    lambda word, place, _: word[:place] + word[place : place + 2][::-1] + word[place + 2 :],
    lambda word, place, _: word[:place] + word[place + 1 :],
    lambda word, place, _: word[: place + 1] + word[place:],
    lambda word, place, letter: word[:place] + letter + word[place + 1 :],
    lambda word, place, letter: word[:place] + letter + word[place:],
]


def test_one_mistake_is_undone() -> None:
    for word, meant in (
        ("gadren", "garden"),
        ("grden", "garden"),
        ("garrden", "garden"),
        ("gardens", "garden"),
        ("waht", "what"),
        ("databse", "database"),
        ("resturant", "restaurant"),
        ("рекка", "река"),
        ("θεσαλονικη", "θεσσαλονικη"),
    ):
        assert meant in spellings(word)


def test_another_word_is_not_taken_for_a_mistake() -> None:
    for word, other in (
        ("ansible", "answers"),
        ("translates", "transit"),
        ("warden", "garden"),
        ("joan", "john"),
        ("mp4", "mp3"),
        ("scholrashpi", "scholarship"),
    ):
        assert other not in spellings(word)


def test_only_words_of_letters_can_be_mistyped() -> None:
    for word, expected in (
        ("abcd", True),
        ("abc", False),
        ("é", False),
        ("mp3", False),
        ("don't", False),
        ("река", True),
        ("a" * 41, False),
    ):
        assert is_spellable(word) is expected


@given(WORDS, WORDS)
def test_the_distance_is_the_same_in_both_directions_and_zero_for_equals_alone(one: str, other: str) -> None:
    assert distance(one, other, 2) == distance(other, one, 2)
    assert (distance(one, other, 2) == 0) == (one == other)
    assert distance(one, other, 1) == min(2, distance(one, other, 2))


@given(WORDS, st.data())
def test_one_mistake_is_a_distance_of_one(word: str, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(word) - 1))
    wrong = data.draw(st.sampled_from(MISTAKES))(word, place, data.draw(st.sampled_from("abcd")))
    assert distance(wrong, word, 2) == (0 if wrong == word else 1)
