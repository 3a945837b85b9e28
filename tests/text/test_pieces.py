"""Long texts are cut into pieces, and read as if they were whole."""

import random
import re

import pytest

from bench.hostile import hostile_texts
from kalito_mcp.safety.redaction import redact
from kalito_mcp.text import pieces as pieces_module
from kalito_mcp.text.analysis import index_text, words
from kalito_mcp.text.look_alikes import compact
from kalito_mcp.text.pieces import PIECE_CHARS, matches_in_pieces, pieces, pieces_of_words

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


def test_a_long_text_is_read_like_its_parts() -> None:
    for text in (_LONG, _LONG.replace("'", " "), *hostile_texts(2 * PIECE_CHARS).values()):
        twice = f"{text} {text}"
        assert words(twice) == words(text) * 2
        assert compact(twice) == compact(text) * 2
        assert index_text(twice).word_count == 2 * index_text(text).word_count


@pytest.mark.parametrize("piece_chars", [1, 2, 3, 7])
def test_matches_are_the_same_wherever_a_text_is_cut(monkeypatch: pytest.MonkeyPatch, piece_chars: int) -> None:
    monkeypatch.setattr(pieces_module, "PIECE_CHARS", piece_chars)
    pattern, drawn = re.compile(r"(?<!b)a{1,3}b?(?!c)|\bd\b"), random.Random(piece_chars)
    for _ in range(2_000):
        text = "".join(drawn.choices("abcd ", k=drawn.randrange(40)))
        start, end = drawn.randrange(5), drawn.randrange(50)
        expected = [match.span() for match in pattern.finditer(text, start, end)]
        assert [match.span() for match in matches_in_pieces(pattern, text, 5, start, end)] == expected


@pytest.mark.campaign
def test_secrets_that_stand_across_a_cut_are_found() -> None:
    phrase = "abandon ability able about above absent absorb abstract absurd abuse access accident"
    for secret in (f"seed phrase: {phrase}", "card 4111 1111 1111 1111 ", "DE89 3704 0044 0532 0130 00"):
        for before in range(PIECE_CHARS - len(secret), PIECE_CHARS + 450, 9):
            assert redact(f"{'. ' * (before // 2)}{secret}").kinds
