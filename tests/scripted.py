"""Replacements for clocks, random ids and tokenizers. Nothing here sleeps or is random."""

from dataclasses import dataclass
from typing import Final

START_MS: Final = 1_772_600_767_089
"""2026-03-04T05:06:07.089Z."""
_DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"


@dataclass
class ScriptedClock:
    """A clock that only moves when it is moved, in any direction."""

    wall_ms: int = START_MS
    steady: float = 1_000.0

    def now_ms(self) -> int:
        return self.wall_ms

    def steady_s(self) -> float:
        return self.steady

    def advance(self, seconds: float) -> None:
        self.wall_ms += round(seconds * 1000)
        self.steady += seconds


@dataclass
class CountedIds:
    """Ids in the order of their requests, in the format of the specification.

    `first` keeps two sources on one database apart.
    """

    first: int = 0

    def record_id(self, prefix: str, now_ms: int) -> str:
        return f"{prefix}_{now_ms}_{self._next()}"

    def session_id(self) -> str:
        return f"session_{self._next():0>32}"

    def _next(self) -> str:
        self.first += 1
        number, digits = self.first, ""
        while number:
            number, digit = divmod(number, len(_DIGITS))
            digits = _DIGITS[digit] + digits
        return f"{digits:0>9}"


@dataclass(frozen=True)
class CharacterCounter:
    """`numerator` tokens for `denominator` characters, rounded up."""

    numerator: int = 1
    denominator: int = 4

    @property
    def name(self) -> str:
        return f"characters {self.numerator}/{self.denominator}"

    def count(self, text: str) -> int:
        return -(-len(text) * self.numerator // self.denominator)


@dataclass(frozen=True)
class WordCounter:
    """A token for each word and each line feed, so that joining never costs."""

    name: str = "words"

    def count(self, text: str) -> int:
        return len(text.split()) + text.count("\n")


@dataclass(frozen=True)
class ByteCounter:
    """A token for each byte of UTF-8."""

    name: str = "bytes"

    def count(self, text: str) -> int:
        return len(text.encode())
