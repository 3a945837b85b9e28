"""A message may be any text: what it states is read without an error, or the message could not be recorded."""

import random
from pathlib import Path

import pytest

from kalito_mcp.facts.statements import statements

_HERE = Path(__file__).parent
_JOINTS = (", . ! ? ; : - ' \" ( ) the The a I my we our it there to is was are has not".split(), ["no longer", "\n"])


def test_nothing_but_a_comma_before_the_verb() -> None:
    """A clause without a subject states nothing."""
    assert statements(", just creative motivated many") == []


@pytest.mark.parametrize("speaker", [None, "Petra"])
def test_shuffled_words_are_read(speaker: str | None) -> None:
    """Texts of the words that the rules look for, in any order."""
    chosen = random.Random(7)
    words = sorted({word for file in _HERE.glob("everyday_*.txt") for word in file.read_text("utf-8").split()})
    joints = [*_JOINTS[0], *_JOINTS[1]]
    for _ in range(3_000):
        parts = [chosen.choice(joints if chosen.random() < 0.4 else words) for _ in range(chosen.randint(1, 14))]
        statements(" ".join(parts).replace(" ,", ","), speaker)
