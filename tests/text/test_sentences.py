"""Where a sentence ends."""

import pytest

from kalito_mcp.text.sentences import split_sentences


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("The files go to Oslo... no sorry, to Bergen.", ["The files go to Oslo... no sorry, to Bergen."]),
        ("Am Montag… nein, am Dienstag. Danke.", ["Am Montag… nein, am Dienstag.", "Danke."]),
        ("I waited... Then it came.", ["I waited...", "Then it came."]),
        ("It hangs... 8080 is taken.", ["It hangs...", "8080 is taken."]),
        ("Really?.. no.", ["Really?..", "no."]),
    ],
)
def test_dots_end_a_sentence_unless_it_goes_on_in_small_letters(text: str, sentences: list[str]) -> None:
    assert split_sentences(text) == sentences
