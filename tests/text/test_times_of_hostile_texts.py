"""A query of words that may stand before a time (`a`, `de`) asks a bounded number of questions about each word."""

import pytest

from kalito_mcp.text.times.lexicon import lexicon, ready, tokens_of
from kalito_mcp.text.times.other_grammar import Names


@pytest.mark.parametrize("unit", ["a ", "de ", "a.", "--a-"])
def test_twice_the_words_take_twice_the_steps(unit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = 0
    look = Names._at

    def counted(names: Names, place: int) -> object:
        nonlocal looks
        looks += 1
        return look(names, place)

    monkeypatch.setattr(Names, "_at", counted)
    steps = []
    for chars in (600, 1_200):
        looks = 0
        list(Names(tokens_of(ready(unit * (chars // len(unit))), lexicon("pt")), 739_000).all())
        steps.append(looks)
    assert 0 < steps[0] < 20 * 600
    assert steps[1] <= 2.1 * steps[0]
