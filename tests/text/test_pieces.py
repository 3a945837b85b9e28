"""Long texts are cut into pieces, and read as if they were whole."""

import pytest

from bench.hostile import hostile_texts
from kalito_mcp.text.analysis import index_text, words
from kalito_mcp.text.look_alikes import compact
from kalito_mcp.text.pieces import PIECE_CHARS, pieces, pieces_of_words

_LONG = "I moved to Porto_2 and don't like tea. " * 5_000
_SPACED = "one two  three " * 20_000


def test_pieces_are_the_text_and_short() -> None:
    cut = list(pieces(_LONG))
    assert "".join(cut) == _LONG
    assert max(map(len, cut)) == PIECE_CHARS
    assert list(pieces("")) == []


def test_pieces_of_words_cut_no_word() -> None:
    cut = list(pieces_of_words(_SPACED))
    assert "".join(cut) == _SPACED
    assert max(map(len, cut)) < PIECE_CHARS + len("three ")
    assert [word for piece in cut for word in piece.split()] == _SPACED.split()


def test_a_word_that_is_longer_than_a_piece_stays_whole() -> None:
    word = "x" * (3 * PIECE_CHARS)
    assert list(pieces_of_words(f"{word} y")) == [word, " y"]
    assert list(pieces_of_words(word)) == [word]


@pytest.mark.parametrize("text", [_LONG, _LONG.replace("'", " "), *hostile_texts(2 * PIECE_CHARS).values()])
def test_a_long_text_is_read_like_its_parts(text: str) -> None:
    twice = f"{text} {text}"
    assert words(twice) == words(text) * 2
    assert compact(twice) == compact(text) * 2
    assert index_text(twice).word_count == 2 * index_text(text).word_count
