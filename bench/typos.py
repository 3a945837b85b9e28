"""Typing mistakes in some of a query's longer words, one each. The same seed gives the same mistakes. Pure.

They are the five kinds of Damerau's spelling errors, equally often: two neighbours are swapped, or a letter is dropped,
doubled, replaced by its neighbour on the keyboard, or followed by such a neighbour. Every letter is equally likely.
People mistype the first letter less often, so these mistakes are rather harder than real ones.

Source: Damerau, CACM 7 (3), 1964.
"""

import random
import re
from collections.abc import Callable
from typing import Final

_LONG_WORD: Final = re.compile(r"[^\W\d_]{4,}")
_ROWS: Final = ("qwertyuiop", "asdfghjkl", "zxcvbnm")


def _beside() -> dict[str, str]:
    """The neighbours of each letter on a keyboard: left, right, above and below."""
    places = {
        letter: (column + row / 2, row) for row, letters in enumerate(_ROWS) for column, letter in enumerate(letters)
    }
    return {
        letter: "".join(
            other
            for other, (other_x, other_y) in places.items()
            if other != letter and abs(other_x - x) <= 1 and abs(other_y - y) <= 1
        )
        for letter, (x, y) in places.items()
    }


_BESIDE: Final = _beside()


def misspelt(text: str, share: float, seed: object) -> str:
    """The text with one mistake in some words of four letters or more. Each is chosen with a chance of `share`.

    Each chosen word changes, and nothing else does. The same text, share and seed give the same mistakes.
    """
    chance = random.Random(f"{seed}:{text}")
    return _LONG_WORD.sub(lambda word: mistyped(word[0], chance) if chance.random() < share else word[0], text)


def mistyped(word: str, chance: random.Random) -> str:
    """The word with one mistake. It always differs from the word, which has at least one letter."""
    kinds: list[Callable[[str, random.Random], str]] = [_swapped, _dropped, _doubled, _replaced, _inserted]
    while (wrong := chance.choice(kinds)(word, chance)) == word:
        # Two equal neighbours were swapped, or the letter is on no key.
        pass
    return wrong


def _swapped(word: str, chance: random.Random) -> str:
    if len(word) == 1:
        return word
    place = chance.randrange(len(word) - 1)
    return word[:place] + word[place + 1] + word[place] + word[place + 2 :]


def _dropped(word: str, chance: random.Random) -> str:
    place = chance.randrange(len(word))
    return word[:place] + word[place + 1 :]


def _doubled(word: str, chance: random.Random) -> str:
    place = chance.randrange(len(word))
    return word[: place + 1] + word[place:]


def _replaced(word: str, chance: random.Random) -> str:
    place = chance.randrange(len(word))
    return word[:place] + _key_beside(word[place], chance) + word[place + 1 :]


def _inserted(word: str, chance: random.Random) -> str:
    place = chance.randrange(len(word))
    return word[: place + 1] + _key_beside(word[place], chance) + word[place + 1 :]


def _key_beside(letter: str, chance: random.Random) -> str:
    """A neighbour of this letter on the keyboard, in its case. The letter itself if it is on no key."""
    beside = _BESIDE.get(letter.lower())
    if beside is None:
        return letter
    typed = chance.choice(beside)
    return typed.upper() if letter.isupper() else typed
