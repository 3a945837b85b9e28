"""Finds identifiers in texts however they are written: numbers of people and things, phone numbers, emails, keys. Pure.

`123-45-6789`, `123 45 6789` and `123456789` are one identifier. `ACME-1` is not in `ACME-12`, nor in `ACME-1-2`: part
of a longer identifier is not that identifier.
"""

import re
from collections.abc import Iterator
from itertools import groupby, islice, pairwise
from typing import Final

from kalito_mcp.text.lazy_pattern import lazy
from kalito_mcp.text.look_alikes import compact, plain_letters

_RUN_PATTERN: Final = r"[^\W_]++"
_TIGHT_PATTERN: Final = r"[-‐‑‒–—−._@+]{1,2}"
_LOOSE_PATTERN: Final = r"[ \t\u00a0]{1,2}(?:[-–—(][ \t]?)?|\)[ \t\-]"
_RUN: Final = lazy(_RUN_PATTERN)
_LOOSE: Final = lazy(_LOOSE_PATTERN)
# Runs of letters and digits with what may join them, or stand between the words of a phrase.
_PHRASES: Final = lazy(rf"{_RUN_PATTERN}(?:(?:{_TIGHT_PATTERN}|{_LOOSE_PATTERN}|[():]){_RUN_PATTERN})*+")
# These signs join only some runs.
_MAY_JOIN: Final = lazy(r"[^\W_][():][^\W_]")
_OF_BYTES: Final = lazy(r"[0-9a-f]{2}")
_MAX_RUNS: Final = 12
_COUNTRY_CODE: Final = 3
_COUNT: Final = 2


def identifier_key(identifier: str) -> str:
    """The identifier without separators, in plain letters. Empty if it has neither letters nor digits."""
    return compact(identifier)


def may_contain(text: str, key: str) -> bool:
    """Whether the characters of the identifier stand in a row in the text. Quicker than `identifier_keys`."""
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
    known: dict[str, str] = {}
    for words in _identifiers(plain, known):
        numbered = {one for one in set(words) if _has_digit(one)}
        if not numbered:
            continue
        for before, one in pairwise(words):
            if one in numbered and before.isalpha():
                yield before + one  # ACME 12
        for is_numbered, group in groupby(words, key=numbered.__contains__):
            # No more is needed of a longer row of numbers, which is no identifier.
            numbers = list(islice(group, _MAX_RUNS + 1)) if is_numbered else []
            if 1 < len(numbers) <= _MAX_RUNS:
                yield from _spaced(numbers)
    for identifier, one in known.items():
        yield one
        if len(one) < len(identifier) and one.isalpha():
            yield from _RUN().findall(identifier)  # Oslo-based


def _identifiers(plain: str, known: dict[str, str]) -> Iterator[list[str]]:
    """The identifiers of each phrase, in order, without the signs in them. The same phrase comes once.

    `known` gets each identifier as it is written, with what is left of it.
    """
    seen = set[str]()
    for match in _PHRASES().finditer(plain):
        phrase = match.group()
        if phrase in seen:
            continue
        seen.add(phrase)
        parts = _split_at_signs(phrase) if _MAY_JOIN().search(phrase) else [phrase]
        for part in parts:
            written = _LOOSE().split(part)
            for one in set(written).difference(known):
                known[one] = one if one.isalnum() else "".join(_RUN().findall(one))
            yield [known[one] for one in written]


def _spaced(numbers: list[str]) -> Iterator[str]:
    """What numbers with spaces between them may be: all of them joined; also without a short first one (country code)
    or a short last one (count)."""
    yield "".join(numbers)
    if len(numbers) > 2 and len(numbers[0]) <= _COUNTRY_CODE:  # noqa: PLR2004 - two numbers must be left
        yield "".join(numbers[1:])
    if len(numbers) > 2 and len(numbers[-1]) <= _COUNT:  # noqa: PLR2004
        yield "".join(numbers[:-1])


def _split_at_signs(phrase: str) -> list[str]:
    """The phrase, divided at each bracket and colon that does not join what stands around it."""
    parts: list[str] = []
    start = end = 0
    before = ""
    for match in _RUN().finditer(phrase):
        run = match.group()
        if before and not _is_joined(before, phrase[end : match.start()], run):
            parts.append(phrase[start:end])
            start = match.start()
        before, end = run, match.end()
    return [*parts, phrase[start:]]


def _is_joined(before: str, between: str, run: str) -> bool:
    if between in ("(", ")"):
        return before.isdigit() and run.isdigit()
    if between == ":":
        return all(_OF_BYTES().fullmatch(one) for one in (before, run))
    return True


def _has_digit(text: str) -> bool:
    return not text.isalpha() and any(map(str.isdigit, text))
