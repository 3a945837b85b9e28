"""Words are split into pieces of a vocabulary: the way with the highest sum of scores."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kalito_mcp.inference.unigram import Unigram, vocabulary_arrays

UNKNOWN = "<unk>"
UNKNOWN_COSTS = 10.0
PIECES = {UNKNOWN: 0.0, "a": -4.0, "b": -4.5, "ab": -6.25, "ba": -7.0, "bab": -9.5, "é": -5.0, "aé": -5.5, "日本": -3.0}
NUMBERS = {piece: number for number, piece in enumerate(PIECES)}


def vocabulary() -> Unigram:
    return Unigram(vocabulary_arrays([piece.encode() for piece in PIECES], [*PIECES.values()]), unknown=0)


def best_sum(word: str) -> float:
    """Of all ways to cut the word; an unknown character costs more than any piece."""
    least = min(PIECES.values()) - UNKNOWN_COSTS
    sums = []
    for count in range(len(word)):
        for cuts in combinations(range(1, len(word)), count):
            parts = [word[start:end] for start, end in zip((0, *cuts), (*cuts, len(word)), strict=True)]
            if all(part in PIECES or len(part) == 1 for part in parts):
                sums.append(sum(PIECES.get(part, least) for part in parts))
    return max(sums)


@given(st.text("abé日本x", min_size=1, max_size=8))
def test_no_other_way_to_cut_a_word_has_a_higher_sum(word: str) -> None:
    numbers = vocabulary().pieces_of(word)
    scores = [*PIECES.values()]
    least = min(scores) - UNKNOWN_COSTS
    assert sum(scores[number] if number else least for number in numbers) == pytest.approx(best_sum(word))


def test_a_character_in_no_piece_is_the_unknown_piece_and_no_character_is_none() -> None:
    assert vocabulary().pieces_of("aéxab") == tuple(NUMBERS[piece] for piece in ("aé", UNKNOWN, "ab"))
    assert vocabulary().pieces_of("") == ()
