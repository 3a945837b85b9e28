"""Finds identifiers in texts however they are written: numbers of people and things, phone numbers, emails, keys. Pure.

`123-45-6789`, `123 45 6789` and `123456789` are one identifier. `ACME-1` is not in `ACME-12`, nor in `ACME-1-2`: a
part of a longer identifier is another one.
"""

import re
from collections.abc import Iterator
from enum import Enum, auto
from functools import lru_cache
from itertools import groupby, pairwise
from typing import Final

from kalito_mcp.text.lazy_pattern import lazy
from kalito_mcp.text.look_alikes import compact, plain_letters

_RUN: Final = lazy(r"[^\W_]+")
_TIGHT: Final = lazy(r"[-‐‑‒–—−._@+]{1,2}")
_LOOSE: Final = lazy(r"[ \t\u00a0]{1,2}(?:[-–—(][ \t]?)?|\)[ \t\-]")
_OF_BYTES: Final = lazy(r"[0-9a-f]{2}")
_LONGEST_GAP: Final = 4
_MAX_RUNS: Final = 12
_COUNTRY_CODE: Final = 3
_COUNT: Final = 2


def identifier_key(identifier: str) -> str:
    """The identifier without separators, in plain letters. Empty if it has neither letters nor digits."""
    return compact(identifier)


def may_contain(text: str, key: str) -> bool:
    """Whether the characters of the identifier follow one another in the text. Quicker than `identifier_keys`."""
    return key in compact(text)


def is_written_in(identifier: str, text: str) -> bool:
    """Whether the text has these characters, in plain letters, and not within a longer word or path. For what has no
    key of its own: a path, the address of a page."""
    sought = re.escape(plain_letters(identifier))
    return re.search(rf"(?<![\w/]){sought}(?![\w/]|[.:?=&#-]\w)", plain_letters(text)) is not None


def identifier_keys(text: str) -> frozenset[str]:
    """The keys of all that may be an identifier in the text: words, and what has digits or joins words by signs."""
    return frozenset(_keys(plain_letters(text)))


def _keys(plain: str) -> Iterator[str]:
    for phrase in _phrases(plain):
        joined = ["".join(runs) for runs in phrase]
        yield from joined
        for runs, one in zip(phrase, joined, strict=True):
            if len(runs) > 1 and one.isalpha():
                yield from runs  # Oslo-based
        if all(map(str.isalpha, joined)):
            continue
        for before, one in pairwise(joined):
            if before.isalpha() and _has_digit(one):
                yield before + one  # ACME 12
        for is_numbered, group in groupby(joined, key=_has_digit):
            numbers = list(group)
            if is_numbered and 1 < len(numbers) <= _MAX_RUNS:
                yield from _spaced(numbers)


def _spaced(numbers: list[str]) -> Iterator[str]:
    """What numbers with spaces between them may be: all of them, also without a country code or a count beside them."""
    yield "".join(numbers)
    if len(numbers) > 2 and len(numbers[0]) <= _COUNTRY_CODE:  # noqa: PLR2004 - two numbers must be left
        yield "".join(numbers[1:])
    if len(numbers) > 2 and len(numbers[-1]) <= _COUNT:  # noqa: PLR2004
        yield "".join(numbers[:-1])


def _phrases(plain: str) -> Iterator[list[list[str]]]:
    """Runs of letters and digits, joined by signs to one identifier, and those with only spaces between them."""
    phrase: list[list[str]] = []
    end = 0
    for match in _RUN().finditer(plain):
        start, run = match.start(), match.group()
        gap = _gap(plain[end:start]) if start - end <= _LONGEST_GAP else _Gap.NONE
        end = match.end()
        if phrase and gap is not _Gap.NONE and _is_joined(phrase[-1][-1], gap, run):
            phrase[-1].append(run)
        elif phrase and gap is _Gap.LOOSE:
            phrase.append([run])
        else:
            if phrase:
                yield phrase
            phrase = [[run]]
    if phrase:
        yield phrase


class _Gap(Enum):
    """What stands between two runs."""

    NONE = auto()
    TIGHT = auto()
    LOOSE = auto()
    BRACKET = auto()
    COLON = auto()


# A long text has as many gaps as words, and few different ones.
@lru_cache(maxsize=1_024)
def _gap(between: str) -> _Gap:
    if between in ("(", ")"):
        return _Gap.BRACKET
    if between == ":":
        return _Gap.COLON
    if _TIGHT().fullmatch(between):
        return _Gap.TIGHT
    return _Gap.LOOSE if _LOOSE().fullmatch(between) else _Gap.NONE


def _is_joined(before: str, gap: _Gap, run: str) -> bool:
    if gap is _Gap.BRACKET:
        return before.isdigit() and run.isdigit()
    if gap is _Gap.COLON:
        return all(_OF_BYTES().fullmatch(one) for one in (before, run))
    return gap is _Gap.TIGHT


def _has_digit(text: str) -> bool:
    return not text.isalpha() and any(map(str.isdigit, text))
