"""Names that are several words written as one: fetchUserProfile, fetch_user_profile, ADR-0042, GPT4. Pure.

A text that has one is found by its words and by the name as a whole. `analysis.words` divides a name at `_` and `-`;
here is what it leaves out: the words of camelCase and of a name with a number, and the wholes of the others.
"""

import re
from collections.abc import Iterator
from string import ascii_letters, digits
from typing import Final

# The first letter of a word after the first, the number, or the underscore. It begins with a set of characters, for
# which `re` searches ten times as fast as for alternatives.
_JOINT: Final = re.compile(
    r"[A-Z0-9_](?:(?<=[a-z0-9][A-Z])|(?<=[A-Z][A-Z])(?=[a-z]{2})|(?<=[A-Za-z]{2}[0-9])|(?<=[A-Za-z]{2}-[0-9])"
    r"|(?<=[A-Za-z0-9]_)(?=[A-Za-z0-9]))"
)
_NAME: Final = re.compile(r"(?<!\w)[A-Za-z][A-Za-z0-9_]*+(?:-[0-9]++)?(?!\w)")
_IN_NAME: Final = frozenset(f"{ascii_letters}{digits}_")
_NUMBERED: Final = re.compile(r"([A-Za-z]{2,})-?([0-9]+)")
# fetch|User, HTTP|Header; not URL|s.
_BOUNDARY: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z]{2})")
_LONGEST: Final = 48
"""Longer words are data."""

_LEAST_LETTERS: Final = 2.5
"""A name with fewer letters a word is data too: dQw4w9WgXcQ; eBay is one word."""


def compounds(text: str) -> dict[str, list[str]]:
    """For each such name in the text, in lower case and as one word, its words, without single letters."""
    found: dict[str, list[str]] = {}
    for name in _names(text):
        numbered = _NUMBERED.fullmatch(name)
        parts = list(numbered.groups()) if numbered else _parts(name)
        if len(parts) > 1:
            found["".join(parts).lower()] = [part.lower() for part in parts if len(part) > 1 or part.isdigit()]
    return found


def _names(text: str) -> Iterator[str]:
    end = 0
    for joint in _JOINT.finditer(text):
        if joint.start() < end:
            continue
        start = _start_of_word(text, joint.start(), end)
        if text[start].isdigit() and text[start - 1 : start] == "-":
            start = _start_of_word(text, start - 1, end)
        name = _NAME.match(text, start)
        end = joint.end() if name is None else name.end()
        if name is not None and len(name.group()) <= _LONGEST:
            yield name.group()


def _start_of_word(text: str, place: int, least: int) -> int:
    while place > least and text[place - 1] in _IN_NAME:
        place -= 1
    return place


def _parts(name: str) -> list[str]:
    parts = [part for one in re.split("[_-]", name) for part in _BOUNDARY.split(one) if part]
    return parts if len(name) >= _LEAST_LETTERS * len(parts) else []
