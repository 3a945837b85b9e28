"""Which times are in a text, by the words of one language (`lexicon`). Pure: no clock, today is an argument.

One grammar serves all languages with a table: they differ in the words, and in what stands before and after what.
English has a larger one (`grammar`).
"""

from collections.abc import Iterator, Sequence
from typing import Final

from kalito_mcp.text.times import vocabulary as en
from kalito_mcp.text.times.dates import Found, Step
from kalito_mcp.text.times.days import (
    Days,
    Yearly,
    joined,
    month_of,
    on_day,
    opened,
    shifted,
    unit_of,
    until_today,
    weekday_after,
    weekday_before,
    year_of,
)
from kalito_mcp.text.times.lexicon import NO_TOKEN, Token

_UNITS: Final = ("day", "week", "month", "year", "weekend")
_DAY, _WEEK, _MONTH, _YEAR, _WEEKEND = range(5)
_YEAR_SIGN, _MONTH_SIGN, _DAY_SIGN = range(3)
_SEASONS: Final = tuple(en.SEASONS[name] for name in ("spring", "summer", "autumn", "winter"))
DECEMBER: Final = 12
_LAST_DAY: Final = 31
_MOST_SKIPPED: Final = 4
_BEGINNINGS: Final = frozenset(
    f"{mark}{sense}"
    for sense in "written digits numbers one two year years months weekdays days units steps ago".split()
    for mark in ("", "?")
)
"""The meaning of the first word of every name, apart from words such as `in` before it."""
_SIDES: Final = ("since", "until", "before", "after")


class Names:
    """Finds names in a list of tokens. Most methods take a place, and return a name and the place after it, or None."""

    def __init__(
        self, tokens: Sequence[Token], today: int | None, *, is_exact: bool = False, is_past: bool = False
    ) -> None:
        """If `is_exact`, a word with `?` needs no other, and `vor zwei Wochen` is one day. If `is_past`, a bare weekday
        is the last one before today."""
        self._tokens = tokens
        self._today = today
        self._is_exact = is_exact
        self._is_past = is_past

    def all(self) -> Iterator[tuple[Found, int, int]]:
        """The names, each with its place and the place after it; they do not overlap. `every Monday` is not a name."""
        place = 0
        while place < len(self._tokens):
            if self._has(place, "every"):
                skipped = self._range(place + 1, is_sure=True)
                place = place + 1 if skipped is None else skipped[1]
            elif not self._at(place).senses or (step := self.any_name(place)) is None:
                place += 1
            else:
                yield step[0], place, step[1]
                place = step[1]

    def any_name(self, place: int) -> Step:
        """The longest name that begins at this place."""
        steps = []
        if self._has(place, "from"):
            begin = self.skip(place + 1, "in", "of")
            step = self._range(begin, is_sure=True)
            steps.append(step if step is not None and self._is_range(begin, step[1]) else None)
        steps += [self._open(place, side) for side in _SIDES if self._has(place, side)]
        if (step := self._range(place, is_sure=True)) is not None:
            found, end = step
            steps += [(opened(found, side, self._today), end + 1) for side in _SIDES if self._has(end, f"~{side}")]
        return _longest(*steps, self._range(place, is_sure=self._is_exact))

    def _is_range(self, place: int, end: int) -> bool:
        return any(self._has(one, "to") for one in range(place, end))

    def _open(self, place: int, side: str) -> Step:
        begin = self.skip(place + 1, "in", "of")
        if (step := self._range(begin, is_sure=True)) is not None:
            return opened(step[0], side, self._today), step[1]
        count = self._count(begin)
        if side == "since" and count is not None and self._today is not None and count[2] - begin > 1:
            return until_today(self._today, -count[0], count[1]), count[2]
        return None

    def _range(self, place: int, *, is_sure: bool) -> Step:
        begin = self.skip(place, "in")
        step = _longest(self._name(place, is_sure=is_sure), self._name(begin, is_sure=is_sure or begin > place))
        if step is None:
            return None
        found, end = step
        if self._has(end, "to"):
            other = self._name(self.skip(end + 1, "in", "of"), is_sure=True)
            if other is not None:
                found, end = joined(found, other[0]), other[1]
        return found, self.skip(end, "~in", "~to" if self._is_range(begin, end) else "~in")

    def _name(self, place: int, *, is_sure: bool) -> Step:
        if _BEGINNINGS.isdisjoint(self._at(place).senses):
            return None
        return _longest(
            self._day_first(place),
            self._year_first(place, is_sure=is_sure),
            self._month_first(place, is_sure=is_sure),
            self._relative(place),
            self._weekday(place, is_sure=is_sure),
            self._ago(place),
            self._lately(place),
        )

    # --- dates

    def _day_first(self, place: int) -> Step:
        """3. März 2026; Dienstag, 3. März; 3-5 de mayo; 03/05/2026."""
        if (written := self._get(place, "written")) is not None:
            return Days.one(written), place + 1
        if self._has(place, "weekdays"):
            place = self.skip(place + 1, "in", "of")
        # In words, the number may be the last part of a longer one: twenty-three.
        days = self._day_numbers(place) if self._has(place, "digits") else None
        month = None if days is None else self._month(self.skip(days[2], "of"))
        if days is None or month is None:
            return None
        first, last, _ = days
        year, end = self._year_after(month[2])
        found = _in_month(year, month[0], first, last)
        return None if found is None else (found, end)

    def _year_first(self, place: int, *, is_sure: bool) -> Step:
        """2026年3月5日; 去年三月; el año 2026. A bare year is left to English, which reads it in every language."""
        if (found := self._year(place)) is None:
            return None
        year, end = found
        month = self._month(self.skip(end, "of"))
        if month is None:
            return (year_of(year), end) if is_sure or end > place + 1 or not self._has(place, "year") else None
        days = self._signed_days(month[2])
        if days is not None and (found_day := _in_month(year, month[0], *days[:2])) is not None:
            return found_day, days[2]
        whole = _in_month(year, month[0])
        return None if whole is None else (whole, month[2])

    def _month_first(self, place: int, *, is_sure: bool) -> Step:
        """März 2026; 3月5日; mars dernier; letzten März; im März."""
        if self._has(place, "steps") and self._today is not None:
            month = self._month(place + 1)
            step = self._get(place, "steps")
        elif (month := self._month(place)) is not None:
            step = self._get(month[2], "~steps")
        if month is None:
            return None
        number, is_known, end = month
        if step is not None:
            yearly = _in_month(0, number)
            days = yearly.beside(self._today, step) if isinstance(yearly, Yearly) and self._today is not None else None
            return None if days is None else (days, end + self._has(end, "~steps"))
        signed = self._signed_days(end)
        if signed is not None and (found := _in_month(0, number, *signed[:2])) is not None:
            return found, signed[2]
        year, end = self._year_after(end)
        if not (year or is_sure or is_known or self._has(end, "~in")):
            return None
        found = _in_month(year, number)
        return None if found is None else (found, end)

    def _month(self, place: int) -> tuple[int, bool, int] | None:
        """The month or season, whether it can be nothing else, and the place after it."""
        if (month := self._get(place, "months")) is not None:
            return month, "months" in self._at(place).senses, place + 1
        number = self._number(place)
        if number is not None and self._get(place + 1, "signs") == _MONTH_SIGN and 1 <= number <= DECEMBER:
            return number, True, place + 2
        after = self.skip(place + 1, "of")
        if self._get(place, "units") == _MONTH and (month := self._get(after, "months")) is not None:
            return month, True, after + 1
        return None

    def _year(self, place: int) -> tuple[int, int] | None:
        if (year := self._get(place, "year")) is not None:
            return year, place + 1 + self._is_year(place + 1)
        after = self.skip(place + 1, "of")
        if self._get(place, "units") == _YEAR and (year := self._get(after, "year")) is not None:
            return year, after + 1
        if self._today is None:
            return None
        step, end = self._get(place, "years"), place + 1
        if step is None and (stepped := self._stepped(place)) is not None and stepped[1] == _YEAR:
            step, _, end = stepped
        return None if step is None else (unit_of(self._today, "year", step).year, end)

    def _is_year(self, place: int) -> bool:
        return self._get(place, "signs") == _YEAR_SIGN or self._get(place, "units") == _YEAR

    def _year_after(self, place: int) -> tuple[int, int]:
        """The year that follows, and the place after it; 0 and the same place if none does."""
        return self._year(self.skip(place, "of")) or self._year(self.skip(place, "of", "in")) or (0, place)

    def _day_numbers(self, place: int) -> tuple[int, int, int] | None:
        """The first and the last day of a month, and the place after them."""
        first = self._number(place)
        if first is None or not 1 <= first <= _LAST_DAY:
            return None
        end = place + 1 + (self._get(place + 1, "signs") == _DAY_SIGN)
        if self._has(end, "to"):
            last = self._number(after := self.skip(end + 1, "in", "of", "to"))
            if last is not None and first < last <= _LAST_DAY:
                return first, last, after + 1 + (self._get(after + 1, "signs") == _DAY_SIGN)
        return first, first, end

    def _signed_days(self, place: int) -> tuple[int, int, int] | None:
        """5日, 5日から7日: the same, if a sign says that the number is a day."""
        return self._day_numbers(place) if self._get(place + 1, "signs") == _DAY_SIGN else None

    # --- names that depend on today

    def _relative(self, place: int) -> Step:
        """Yesterday; last week; Wednesday of last week."""
        if self._today is None:
            return None
        if (day := self._get(place, "days")) is not None:
            return Days.one(self._today + day), place + 1
        if (stepped := self._stepped(place)) is None or stepped[1] == _DAY:
            return None
        step, unit, end = stepped
        if unit == _WEEK and (nth := self._get(after := self.skip(end, "of"), "weekdays")) is not None:
            return unit_of(self._today, "week", step).piece(nth, 1), after + 1
        if unit == _WEEKEND:
            return unit_of(self._today, "week", step).piece(-1, 2), end
        return unit_of(self._today, _UNITS[unit], step), end

    def _weekday(self, place: int, *, is_sure: bool) -> Step:
        """Tuesday; last Tuesday; Tuesday of last week; 周二, which is a week and a number."""
        if self._today is None:
            return None
        step = self._get(place, "steps")
        place += step is not None
        has_week = self._get(place, "units") == _WEEK and self._has(place + 1, "weekdays")
        place += has_week
        nth = self._get(place, "weekdays")
        is_number = self._number(place) is not None or self._has(place, "units")
        if nth is None or (is_number and not has_week):
            return None
        end = place + 1
        stepped = self._stepped(self.skip(end, "of"))
        if stepped is not None and stepped[1] == _WEEK:
            return unit_of(self._today, "week", stepped[0]).piece(nth, 1), stepped[2]
        if step is None and (step := self._get(end, "~steps")) is not None:
            end += 1
        if step is not None:
            this = unit_of(self._today, "week", step).piece(nth, 1)
            days = {-1: weekday_before(self._today, nth), 1: weekday_after(self._today, nth)}.get(step, this)
            return days, end
        is_known = is_sure or has_week or "weekdays" in self._at(place).senses or self._has(end, "~in")
        return (weekday_before(self._today + (not self._is_past), nth), end) if is_known else None

    def _ago(self, place: int) -> Step:
        """`vor 3 Tagen`; 3天前; неделю назад."""
        begin = place + self._has(place, "ago")
        if self._today is None or (count := self._count(begin)) is None:
            return None
        number, unit, end = count
        if begin == place and not self._has(end, "~ago"):
            return None
        days = shifted(Days.one(self._today), (-number, -number), unit, is_exact=self._is_exact)
        return days, end + self._has(end, "~ago")

    def _lately(self, place: int) -> Step:
        """In den letzten 3 Tagen; les 3 derniers jours; 3 semanas pasadas."""
        for steps, numbers, units in ((0, 1, 2), (1, 0, 2), (2, 0, 1)):
            step = self._get(place + steps, "~steps" if steps > units else "steps")
            number, unit = self._number(place + numbers), self._get(place + units, "units")
            if step in {-1, 1} and number is not None and unit is not None and self._today is not None:
                return until_today(self._today, step * number, _UNITS[min(unit, _YEAR)]), place + 3
        return None

    def _stepped(self, place: int) -> tuple[int, int, int] | None:
        """How far the unit is from the one of today, which unit it is, and the place after it."""
        first, second = self._at(place).senses, self._at(place + 1).senses
        if "steps" in first and "units" in second:
            return first["steps"], second["units"], place + 2
        if "units" in first and "~steps" in second:
            return second["~steps"], first["units"], place + 2
        return None

    def _count(self, place: int) -> tuple[int, str, int] | None:
        """How many of which unit, and the place after it."""
        for number, section in ((1, "one"), (2, "two")):
            if (unit := self._get(place, section)) is not None:
                return number, _UNITS[unit], place + 1
        many, unit = self._number(place), self._get(place + 1, "units")
        return None if many is None or unit is None or unit == _WEEKEND else (many, _UNITS[unit], place + 2)

    # --- words

    def skip(self, place: int, *senses: str) -> int:
        """The next place whose word has none of these senses, at most four places on: no name has more such words."""
        for after in range(place, place + _MOST_SKIPPED):
            if not any(self._has(after, sense) for sense in senses):
                return after
        return place + _MOST_SKIPPED

    def _at(self, place: int) -> Token:
        return self._tokens[place] if place < len(self._tokens) else NO_TOKEN

    def _get(self, place: int, sense: str) -> int | None:
        senses = self._at(place).senses
        return senses.get(sense, senses.get(f"?{sense}")) if senses else None

    def _has(self, place: int, sense: str) -> bool:
        return self._get(place, sense) is not None

    def _number(self, place: int) -> int | None:
        digits = self._get(place, "digits")
        return self._get(place, "numbers") if digits is None else digits


def _longest(*steps: Step) -> Step:
    return max((step for step in steps if step is not None), key=lambda step: step[1], default=None)


def _in_month(year: int, month: int, first: int = 0, last: int = 0) -> Found | None:
    """The days of the month or season, or all of it; in every year if `year` is 0."""
    if month > DECEMBER:
        season = _SEASONS[month - DECEMBER - 1]
        return None if first else season.in_year(year) if year else season
    if first:
        return on_day(year, month, first, last)
    return month_of(year, month) if year else Yearly((month, 1), (month, _LAST_DAY))
