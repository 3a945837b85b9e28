"""Writes the date behind each name of a time that depends on when it was said: `last Friday (2023-08-18)`. Pure.

What is read later, without its day, must say which Friday was meant. Dates are ISO 8601; a stretch is an interval with
what changes at its end: `2023-08-14/20`. Days are UTC, as everywhere in `text.times`.
"""

import re
from collections.abc import Sequence
from datetime import date
from typing import Final

from kalito_mcp.domain.time import DAY_MS
from kalito_mcp.text.analysis import words
from kalito_mcp.text.languages import ENGLISH, likely_languages
from kalito_mcp.text.lazy_pattern import lazy
from kalito_mcp.text.times.days import Days, month_of, unit_of
from kalito_mcp.text.times.grammar import relative_names
from kalito_mcp.text.times.other_languages import relative_names_elsewhere
from kalito_mcp.text.times.vocabulary import tokens_of

DATED: Final = r"\((?:about )?\d{4}(?:-\d\d)?(?:-\d\d)?(?:/[\d-]{2,10})?\)"
"""A regular expression for the dates that `with_dates` writes."""

_EPOCH_DAY: Final = 719_163
_MAX_CHARS: Final = 2_000
_MOST_LANGUAGES: Final = 4
_LONG: Final = 62
"""Days. A stretch of up to as many that is no month is about the month of its middle."""
_WEEKS: Final = 14

# Most sentences have none of these, and are not read any further.
_DEPENDING: Final = (
    "yesterday today tonight tomorrow ago back before after last previous this current next coming".split()
)
_MAY_DEPEND: Final = lazy(rf"\b(?:{'|'.join(_DEPENDING)})\b", re.IGNORECASE)
_WRITTEN: Final = lazy(r"\((?:about )?(\d{4}(?:-\d\d)?(?:-\d\d)?)(?:/([\d-]{2,10}))?\)")
_IS_DATED: Final = lazy(r"\s*\(\s*(?:about )?\d{4}")


def languages_of(text: str) -> Sequence[str]:
    """The languages in which `with_dates` should read the text: the languages of its function words, or English."""
    likely = likely_languages(words(text[:_MAX_CHARS]))
    return likely if len(likely) <= _MOST_LANGUAGES else (ENGLISH,)


def with_dates(text: str, said_ms: int, languages: Sequence[str] = (ENGLISH,)) -> str:
    """The text with the date behind each name of days that depends on when it was said.

    Names that say their year or no year at all (in May) stay as they are, and so does a text of more than 2,000
    characters.
    """
    if len(text) > _MAX_CHARS:
        return text
    today = said_ms // DAY_MS + _EPOCH_DAY
    names: list[tuple[Days, int, int]] = []
    if ENGLISH in languages and _may_depend(text):
        tokens = tokens_of(text)
        names = [(days, tokens[place].start, tokens[end - 1].end) for days, place, end in relative_names(tokens, today)]
    if not names and (others := [one for one in languages if one != ENGLISH]):
        names = relative_names_elsewhere(text, today, others)
    for days, _, end in reversed(names):
        if not _IS_DATED().match(text, end):
            text = f"{text[:end]} ({_written(days)}){text[end:]}"
    return text


def is_over(text: str, said_ms: int, now_ms: int) -> bool:
    """Whether all days that `with_dates` wrote into the text were still to come or under way when it was said, and are
    past now."""
    said, now = (date.fromordinal(one // DAY_MS + _EPOCH_DAY).isoformat() for one in (said_ms, now_ms))
    last = [_last_of(found[1], found[2]) for found in _WRITTEN().finditer(text)]
    return bool(last) and all(said[: len(one)] <= one < now[: len(one)] for one in last)


def _last_of(first: str, end: str | None) -> str:
    """The last day, month or year of an interval."""
    return first if end is None else first[: max(0, len(first) - len(end))] + end


def _may_depend(text: str) -> bool:
    # Looking for fourteen words in ASCII takes a fifth of the expression's time.
    if text.isascii() and not any(map(text.lower().__contains__, _DEPENDING)):
        return False
    return _MAY_DEPEND().search(text) is not None


def _written(days: Days) -> str:
    first, last = date.fromordinal(days.first), date.fromordinal(days.last)
    if days.first == days.last:
        return first.isoformat()
    if days == Days(unit_of(days.first, "year", 0).first, unit_of(days.last, "year", 0).last):
        return f"{first.year:04}" if first.year == last.year else f"{first.year:04}/{last.year:04}"
    if days == Days(month_of(first.year, first.month).first, month_of(last.year, last.month).last):
        return _interval(first.isoformat()[:-3], last.isoformat()[:-3])
    if _WEEKS < days.last - days.first < _LONG:
        middle = date.fromordinal((days.first + days.last) // 2)
        return f"about {middle.isoformat()[:-3]}"
    return _interval(first.isoformat(), last.isoformat())


def _interval(first: str, last: str) -> str:
    """The ISO 8601 interval, in which the end leaves out what it shares with the beginning."""
    if first == last:
        return first
    if first[:7] == last[:7]:
        return f"{first}/{last[8:]}"
    return f"{first}/{last[5:]}" if first[:4] == last[:4] else f"{first}/{last}"
