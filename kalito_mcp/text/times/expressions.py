"""Times in words: which stretches a text names, how well a moment fits them, `since` and `until`. Pure.

English has a grammar of its own (`grammar`); the languages with a table share another (`other_languages`).

There is no clock: names that depend on now (last week) need an argument, and are left out without it. Days are those
of a time zone, UTC by default. Weeks begin on Monday, seasons are those in the northern hemisphere.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from typing import Final, TypeAlias

from kalito_mcp.domain.time import DAY_MS, NEWEST_MS, OLDEST_MS, from_iso, last_moment
from kalito_mcp.domain.zone import UTC_ZONE, Zone
from kalito_mcp.errors import InvalidInput
from kalito_mcp.text.languages import ENGLISH
from kalito_mcp.text.times.dates import Found
from kalito_mcp.text.times.days import Days, Yearly, unit_of
from kalito_mcp.text.times.grammar import named_days, whole_name, written_dates
from kalito_mcp.text.times.lexicon import with_plain_digits
from kalito_mcp.text.times.other_languages import OtherNames, other_names, whole_name_elsewhere
from kalito_mcp.text.times.tense import is_past
from kalito_mcp.text.times.vocabulary import (
    COUNTS,
    tokens_of,
)

_MAX_NAMES: Final = 16
"""Only this many names of a query count, so that matching stays cheap."""

_MAX_NAME_LENGTH: Final = 200
_MONTH_LENGTH: Final = 31
_DAY_LIKE: Final = 3
_SLOTS: Final = 31 * 13 + 1

_UNITS_MS: Final = {"m": 60_000, "h": 3_600_000, "d": DAY_MS, "w": 7 * DAY_MS}

# The worth of a moment within the named days, by their number: a day is the most precise, a year the least.
_CEILINGS: Final = ((1, 1.0), (3, 0.9), (10, 0.8), (31, 0.6), (100, 0.4), (366, 0.25))
_LEAST: Final = 0.1
_DAYS_AFTER: Final = 10
_RIGHT_AFTER: Final = 0.7
_DAYS_BEFORE: Final = 3
_RIGHT_BEFORE: Final = 0.4
_SAME_MONTH: Final = 0.25
_SAME_YEAR: Final = 0.1
# People are sometimes wrong about the year that they name, and less often about the month.
_WRONG_YEAR: Final = 0.3


_Stretch: TypeAlias = tuple[int, int, float, bool]


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of time, in milliseconds since 1970, both ends included, within the years 1 to 9999."""

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Dates:
    """The dates that a query names, prepared for `date_match`; false if it names none.

    `stretches` are (first day, last day, worth, whether nearby days count), days as ordinals. `yearly` is the worth
    of each day of any year, at 31 * month + day; empty if no day or month is named.
    """

    stretches: tuple[_Stretch, ...]
    yearly: tuple[float, ...]

    def __bool__(self) -> bool:
        return bool(self.stretches or self.yearly)


@dataclass(frozen=True, slots=True)
class NamedTimes:
    """The times that a query names, from one parse: `spans` to look up what was said then, `dates` to rank by.

    `spans` has each stretch once, in the order of the text. A name without a year (in May) is the last one that began
    by now. `since` ends now; `until` and `before` begin in the year 1. If names are in the words of another language
    than English, `other` has them, and the text without them.
    """

    spans: tuple[Span, ...]
    dates: Dates
    other: OtherNames | None = None


def named_times(
    text: str, now_ms: int | None = None, languages: Sequence[str] = (ENGLISH,), zone: Zone = UTC_ZONE
) -> NamedTimes:
    """The times that a query names in one of these languages. Dates in English words are read in every language.

    Without `now_ms`, names that depend on it are left out: May 2023 is found, May and yesterday are not.
    """
    today = None if now_ms is None else zone.day(now_ms)
    other = other_names(text, today, languages)
    is_over = is_past(text, ENGLISH)
    if other is not None:
        text = other.rest
    tokens = tokens_of(text if ENGLISH in languages else with_plain_digits(text))
    named = named_days(tokens, today, is_past=is_over)
    timeless = named if today is None else named_days(tokens, None)
    # In "two weeks before 5 May" the asker also thought of 5 May, so it counts.
    written = timeless + [found for found in written_dates(tokens) if found not in timeless]
    if other is not None:
        named, written = other.named + named, other.timeless + written
    return NamedTimes(_spans(named, today, zone), _dates(list(dict.fromkeys(named + written)), written), other)


def _spans(named: list[Found], today: int | None, zone: Zone) -> tuple[Span, ...]:
    days = (found if isinstance(found, Days) else found.latest(today) if today is not None else None for found in named)
    return tuple(dict.fromkeys(_span(one, zone) for one in days if one is not None))


def _dates(named: list[Found], written: list[Found]) -> Dates:
    stretches: list[_Stretch] = []
    yearly: dict[int, float] = {}
    for name in named[:_MAX_NAMES]:
        if isinstance(name, Yearly):
            _mark(yearly, name, 1.0)
            continue
        stretches.extend(_stretches(name))
        # `yesterday` names no year that could be wrong.
        if name in written and name.last - name.first < _MONTH_LENGTH:
            _mark(yearly, name.of_any_year(), _WRONG_YEAR)
    return Dates(
        tuple(dict.fromkeys(stretches)), tuple(yearly.get(slot, 0.0) for slot in range(_SLOTS)) if yearly else ()
    )


def date_match(dates: Dates, day: int) -> float:
    """How well the day of a message fits the dates that a query names, in [0, 1]; 0 if it names none.

    The best of the named stretches counts, whether or not the year is named. A date within a stretch is worth 1 for a
    day, 0.9 for up to 3 days, 0.8 for up to 10, 0.6 for a month, 0.4 for a season, 0.25 for a year, 0.1 for longer
    ones. After its end a date is worth 0.7 of that, falling to 0 within 11 days, because people report things some
    days later. Before its beginning it is worth 0.4, falling to 0 within 4 days. The month of a named day is worth at
    least 0.25, the year of a named day or month 0.1. The right day or month of a wrong year is worth 0.3 of its value.
    """
    best = 0.0
    for first, last, worth, is_near_enough in dates.stretches:
        if first <= day <= last:
            match = worth
        elif is_near_enough and first - _DAYS_BEFORE <= day <= last + _DAYS_AFTER:
            match = worth * _nearness(day - last if day > last else day - first)
        else:
            continue
        if match > best:  # noqa: PLR1730 - a call of max() takes as long as all the rest of it
            best = match
    if dates.yearly and best < 1.0:
        when = date.fromordinal(day)
        best = max(best, dates.yearly[31 * when.month + when.day])
    return best


_EITHER_WAY: Final = re.compile(r"(0?[1-9]|1[0-2])/(0?[1-9]|1[0-2])/(\d{4})", re.ASCII)
"""A date in digits whose month may be either number."""


def moment_in_words(text: str, field: str, now_ms: int, *, is_last: bool, zone: Zone = UTC_ZONE) -> int:
    """The first millisecond of the named time, for `since`, or the last one if `is_last`, for `until`.

    The text may be ISO 8601 (see `domain.time`), `now`, or `45m`, `12h`, `7d`, `2w` or `7 days`, which is exactly that
    long before now. It may also be a name in any case: today, Monday, last March, two weeks ago (that day), May 2023,
    the beginning of the year, Christmas; or a name in another language that has a table: letzte Woche. Without a
    year, `this` or `next`, the last one that began by now is meant.
    The last millisecond is never before the first, and both are within the years 1 to 9999.

    Raises:
        InvalidInput: the text has none of these forms; the message has examples.
    """
    lowered = text.strip().lower()
    if lowered in {"now", "right now"}:
        return _within(now_ms)
    if (length := _length().fullmatch(lowered)) is not None:
        count, unit = length.groups()
        return _within(now_ms - (COUNTS.get(count) or int(count)) * _UNITS_MS[unit[0]])
    try:
        return last_moment(lowered.upper(), field, zone) if is_last else from_iso(lowered.upper(), field, zone)
    except InvalidInput:
        days = None
        if (either := _EITHER_WAY.fullmatch(lowered)) is not None and either[1] != either[2]:
            one, other = (f"{int(number):02d}" for number in either.group(1, 2))
            raise InvalidInput(
                f"{field}={text.strip()!r} may be {either[3]}-{one}-{other} or {either[3]}-{other}-{one}; send the one "
                "that is meant in this form"
            ) from None
        if len(lowered) <= _MAX_NAME_LENGTH:
            today = zone.day(now_ms)
            days = whole_name(text, today) or whole_name_elsewhere(text, today)
    if days is None:
        raise InvalidInput(
            f"{field}={text[:40]!r} is not a time that can be read; write ISO 8601 like 2026-03-04 or "
            "2026-03-04T05:06:07Z, 45m, 12h, 7d or 2w (that long ago), or words like yesterday, last March, "
            "two weeks ago, Monday or May 2023"
        )
    span = _span(days, zone)
    return span.last if is_last else span.first


def _stretches(days: Days) -> list[_Stretch]:
    """The days themselves, and the month and the year around them, which are worth less."""
    length = days.last - days.first + 1
    found = [(days.first, days.last, _ceiling(length), True)]
    if length <= _MONTH_LENGTH:
        year = unit_of(days.first, "year", 0)
        found.append((year.first, year.last, _SAME_YEAR, False))
    if length <= _DAY_LIKE:
        month = unit_of(days.first, "month", 0)
        found.append((month.first, month.last, _SAME_MONTH, False))
    return found


def _mark(yearly: dict[int, float], name: Yearly, factor: float) -> None:
    """Enter the worth of each day of any year, for a yearly stretch."""
    for first, last, worth, is_near_enough in _stretches(name.in_leap_year()):
        if worth <= _SAME_YEAR:
            continue
        before, after = (_DAYS_BEFORE, _DAYS_AFTER) if is_near_enough else (0, 0)
        for day in range(first - before, last + after + 1):
            match = worth if first <= day <= last else worth * _nearness(day - last if day > last else day - first)
            when = date.fromordinal(day)
            slot = 31 * when.month + when.day
            yearly[slot] = max(yearly.get(slot, 0.0), factor * match)


def _ceiling(length: int) -> float:
    return next((worth for longest, worth in _CEILINGS if length <= longest), _LEAST)


def _nearness(distance: int) -> float:
    """The share of its worth that a stretch has `distance` days after it, or (negative) before it."""
    if distance > 0:
        return _RIGHT_AFTER * max(0, _DAYS_AFTER + 1 - distance) / _DAYS_AFTER
    return _RIGHT_BEFORE * max(0, _DAYS_BEFORE + 1 + distance) / _DAYS_BEFORE


def _span(days: Days, zone: Zone) -> Span:
    return Span(zone.first_ms(days.first), zone.last_ms(days.last))


def _within(moment_ms: int) -> int:
    return max(OLDEST_MS, min(moment_ms, NEWEST_MS))


@cache
def _length() -> re.Pattern[str]:
    return re.compile(
        rf"(?=(\d{{1,9}}|{'|'.join(COUNTS)}) ?([mhdw]))(?:\d+ ?(?:[mhdw](?: ago)?|days?|weeks?)"
        r"|\w+ ?(?:min|mins|minutes?|hrs?|hours?)(?: ago)?)",
        re.ASCII,
    )
