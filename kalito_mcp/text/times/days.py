"""Stretches of days, their neighbours and their parts. Pure.

A day is a proleptic Gregorian ordinal: 1 is January 1 of the year 1. Every result is within the years 1 to 9999. Weeks
begin on Monday.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from typing import Final

LAST_DAY: Final = date.max.toordinal()
_WEEK: Final = 7
_SATURDAY: Final = 5
_MONTHS: Final = 12
_FEBRUARY: Final = 2
# Not from `calendar`: importing it takes as long as importing all modules about time.
_LENGTHS: Final = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_LEAP_YEAR: Final = 2024
_FURTHEST_LEAP: Final = 8
"""The most years between two 29ths of February, as around 1900."""

_IN_A_DAY: Final = {"hour": 24, "minute": 1_440}
_AROUND: Final = {"week": 3, "month": 15}
"""How many days earlier or later `two weeks ago` may also mean."""


@dataclass(frozen=True, slots=True)
class Days:
    """From one day to another, both included. `first` is never after `last`."""

    first: int
    last: int

    @classmethod
    def of(cls, first: int, last: int) -> "Days":
        """The days between the two, in either order, cut to the years 1 to 9999."""
        first, last = min(first, last), max(first, last)
        return cls(_within(first), _within(last))

    @classmethod
    def one(cls, day: int) -> "Days":
        """A single day."""
        return cls.of(day, day)

    @property
    def year(self) -> int:
        """The year of the first day."""
        return date.fromordinal(self.first).year

    def of_any_year(self) -> "Yearly":
        """The same days of every year. The stretch must be no longer than a year."""
        return Yearly(_month_and_day(self.first), _month_and_day(self.last))

    def share(self, nth: int, of: int) -> "Days":
        """The nth, from 0, of `of` parts of about equal length. A year is divided into whole months.

        A single day is each of its parts. Divide a year only into 2, 3 or 4.
        """
        if self == year_of(self.year):
            months = _MONTHS // of
            return Days(month_of(self.year, nth * months + 1).first, month_of(self.year, (nth + 1) * months).last)
        length = self.last - self.first + 1
        first = self.first + length * nth // of
        return Days(first, max(first, self.first + length * (nth + 1) // of - 1))

    def piece(self, nth: int, length: int) -> "Days":
        """The nth, from 0, stretch of `length` days; -1 is the last. It is cut at the end."""
        first = self.last - length + 1 if nth < 0 else self.first + nth * length
        first = max(self.first, min(first, self.last))
        return Days(first, min(first + length - 1, self.last))


@dataclass(frozen=True, slots=True)
class Yearly:
    """A stretch of every year, from (month, day) to (month, day). If the end is smaller, it is in the next year.

    A day beyond the end of its month is that month's last day, unless it is the whole stretch.
    """

    first: tuple[int, int]
    last: tuple[int, int]

    def in_year(self, year: int) -> Days | None:
        """The stretch in that year; None if the year lacks it (February 29) or is not within 1 to 9999."""
        month, day = self.first
        if not 1 <= year <= date.max.year or (self.first == self.last and day > _length(year, month)):
            return None
        end = year + (self.last < self.first)
        return Days(_ordinal(year, month, day), LAST_DAY if end > date.max.year else _ordinal(end, *self.last))

    def in_leap_year(self) -> Days:
        """The stretch in a leap year, which has every day."""
        last = _ordinal(_LEAP_YEAR + (self.last < self.first), *self.last)
        return Days(_ordinal(_LEAP_YEAR, *self.first), last)

    def latest(self, today: int, *, is_over: bool = False) -> Days | None:
        """The last one that began by today or, if `is_over`, ended before it; None before the first one."""
        year = Days.one(today).year
        for candidate in range(year, year - _FURTHEST_LEAP - 2, -1):
            days = self.in_year(candidate)
            if days is not None and (days.last < today if is_over else days.first <= today):
                return days
        return None

    def earliest(self, after: int) -> Days | None:
        """The first one that begins after this day; None after the last one."""
        year = Days.one(after).year
        for candidate in range(year, year + _FURTHEST_LEAP + 1):
            days = self.in_year(candidate)
            if days is not None and days.first > after:
                return days
        return None

    def beside(self, today: int, step: int) -> Days | None:
        """The last one that is over (-1), this year's (0) or the next one (1)."""
        if step == 0:
            return self.in_year(Days.one(today).year)
        return self.latest(today, is_over=True) if step < 0 else self.earliest(today)


def reduced(found: Days | Yearly, cut: Callable[[Days], Days]) -> Days | Yearly:
    """Apply `cut` to the days, or to a yearly stretch in every year."""
    if isinstance(found, Days):
        return cut(found)
    return cut(found.in_leap_year()).of_any_year()


def joined(first: Days | Yearly, last: Days | Yearly) -> Days | Yearly:
    """From one to the other. A name without a year takes the year of the other."""
    if isinstance(first, Yearly):
        if isinstance(last, Yearly):
            return Yearly(first.first, last.last)
        first = first.latest(last.last) or last
    elif isinstance(last, Yearly):
        last = last.earliest(first.first) or first
    return Days.of(min(first.first, last.first), max(first.last, last.last))


def opened(found: Days | Yearly, side: str, today: int | None) -> Days | Yearly:
    """Everything `since`, `until`, `before` or `after` the days; `since` and `after` end today.

    A yearly stretch is the last one that began by today. If it cannot be told which, it is returned unchanged.
    """
    days = found.latest(today) if isinstance(found, Yearly) and today is not None else found
    if days is None or isinstance(days, Yearly):
        return found
    if side == "until":
        return Days(1, days.last)
    if side == "before":
        return Days(1, max(1, days.first - 1))
    first = days.first if side == "since" else min(days.last + 1, LAST_DAY)
    return Days(first, LAST_DAY if today is None else max(first, today))


def until_today(today: int, count: int, unit: str) -> Days:
    """From `count` units ago (negative) until today, or from today until `count` units ahead."""
    return Days.of(shifted(Days.one(today), (count, count), unit, is_exact=True).first, today)


def year_of(year: int) -> Days:
    """The year, 1 to 9999."""
    return Days(_ordinal(year, 1, 1), _ordinal(year, 12, 31))


def month_of(year: int, month: int) -> Days:
    """The month of the year."""
    return Days(_ordinal(year, month, 1), _ordinal(year, month, 31))


def on_day(year: int, month: int, first: int, last: int) -> Days | Yearly | None:
    """From one day of a month to another, in every year if `year` is 0. None if there are no such days."""
    if not 1 <= month <= _MONTHS or not 1 <= first <= last <= _length(year or _LEAP_YEAR, month):
        return None
    if not year:
        return Yearly((month, first), (month, last))
    return Days(_ordinal(year, month, first), _ordinal(year, month, last))


def unit_of(day: int, unit: str, step: int) -> Days:
    """The week, month or year of the day, or the one `step` units later (earlier if negative)."""
    day = _within(day)
    if unit == "week":
        first = day - (day - 1) % _WEEK + step * _WEEK
        return Days.of(first, first + _WEEK - 1)
    months = _month_number(day)
    if unit == "year":
        return year_of(max(1, min(months // _MONTHS + step, date.max.year)))
    return month_of(*_month_at(months + step))


def shifted(days: Days, span: tuple[int, int], unit: str, *, is_exact: bool) -> Days:
    """The stretch from the smaller to the larger number of units before (negative) or after the days.

    Units before count from the first day, units after from the last. Unless `is_exact`, weeks and months reach some
    days to either side and years are whole, because nobody speaks so exactly.
    """
    low, high = span
    origin = days.first if low < 0 else days.last
    if unit == "year" and not is_exact:
        return Days.of(unit_of(origin, "year", low).first, unit_of(origin, "year", high).last)
    around = 0 if is_exact else _AROUND.get(unit, 0)
    return Days.of(_moved(origin, low, unit) - around, _moved(origin, high, unit) + around)


def beside(days: Days, unit: str, *, is_before: bool) -> Days:
    """The day, week, month or year that ends before the days, or begins after them."""
    if is_before:
        return Days.of(_moved(days.first, -1, unit), days.first - 1)
    return Days.of(days.last + 1, _moved(days.last, 1, unit))


def weekday_before(day: int, weekday: int) -> Days:
    """The last such weekday (0 is Monday) before the day."""
    return Days.one(day - 1 - (day - 2 - weekday) % _WEEK)


def weekday_after(day: int, weekday: int) -> Days:
    """The first such weekday (0 is Monday) after the day."""
    return Days.one(day + 1 + (weekday - day) % _WEEK)


def weekend_near(days: Days, side: str) -> Days:
    """The Saturday and Sunday that end before the days, begin after them, or are nearest to their beginning (`of`)."""
    if side == "before":
        sunday = weekday_before(days.first, 6).first
        return Days.of(sunday - 1, sunday)
    first = days.last if side == "after" else days.first - 4
    saturday = weekday_after(first, _SATURDAY).first
    return Days.of(saturday, saturday + 1)


def _within(day: int) -> int:
    return max(1, min(day, LAST_DAY))


def _length(year: int, month: int) -> int:
    is_leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return _LENGTHS[month - 1] + (month == _FEBRUARY and is_leap)


def _ordinal(year: int, month: int, day: int) -> int:
    return date(year, month, min(day, _length(year, month))).toordinal()


def _month_and_day(day: int) -> tuple[int, int]:
    when = date.fromordinal(day)
    return when.month, when.day


def _month_number(day: int) -> int:
    """Months since the beginning of the year 0."""
    when = date.fromordinal(day)
    return when.year * _MONTHS + when.month - 1


def _month_at(number: int) -> tuple[int, int]:
    number = max(_MONTHS, min(number, date.max.year * _MONTHS + _MONTHS - 1))
    return number // _MONTHS, number % _MONTHS + 1


def _moved(day: int, count: int, unit: str) -> int:
    """The day `count` units later; in a shorter month, its last day. Hours and minutes only count in whole days."""
    day = _within(day)
    if unit in _IN_A_DAY:
        return _within(day + int(count / _IN_A_DAY[unit]))
    if unit in {"day", "week"}:
        return _within(day + count * (_WEEK if unit == "week" else 1))
    months = count * (_MONTHS if unit == "year" else 1)
    return _ordinal(*_month_at(_month_number(day) + months), date.fromordinal(day).day)
