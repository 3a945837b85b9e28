"""Which days an English text names. Pure: no clock, today is an argument.

In addition to dates (`dates`) it reads names that depend on today (yesterday, last week, two weeks ago), parts (early
June, the second week of May), neighbours of a name (the Sunday before 25 October 2022), ranges, and open ends (since
March). Weeks begin on Monday, seasons are those in the northern hemisphere.
"""

from collections.abc import Callable
from typing import TypeAlias

from kalito_mcp.text.times import vocabulary as en
from kalito_mcp.text.times.dates import DateWords, Found, Step
from kalito_mcp.text.times.days import (
    Days,
    Yearly,
    beside,
    joined,
    opened,
    reduced,
    shifted,
    unit_of,
    until_today,
    weekday_after,
    weekday_before,
    weekend_near,
)


def named_days(tokens: list[en.Token], today: int | None, *, is_past: bool = False) -> list[Found]:
    """The days that the text names, in its order; names do not overlap. If it `is_past`, a bare weekday is not today.

    `today` is the ordinal of a day. Without it, names that depend on it are left out. A name without a year is
    `Yearly`, with or without `today`, unless a word says which year is meant (last March).
    """
    words = _TimeWords(tokens, today, is_exact=False, is_past=is_past)
    return _all(words, words.any_name)


def written_dates(tokens: list[en.Token]) -> list[Found]:
    """The dates written in the text, including those within a longer name: both ends of a range."""
    words = _TimeWords(tokens, None, is_exact=False)
    return _all(words, lambda place: words.calendar(place, is_sure=False))


def relative_names(tokens: list[en.Token], today: int) -> list[tuple[Days, int, int]]:
    """The names of days that depend on today, each with its place and the place after it.

    A bare weekday may be the last or the next, and `the past two weeks` is a length: both are left out.
    """
    words, timeless = (_TimeWords(tokens, day, is_exact=False) for day in (today, None))
    found: list[tuple[Days, int, int]] = []
    place = 0
    while place < len(tokens):
        step = words.name(place) if tokens[place].may_begin else None
        if step is None or words.is_vague(place, step[1]):
            place += 1
            continue
        if isinstance(step[0], Days) and timeless.name(place) != step:
            found.append((step[0], place, step[1]))
        place = step[1]
    return found


def _all(words: DateWords, name_at: Callable[[int], Step]) -> list[Found]:
    """The name that begins at each word, skipping the words of the names found before."""
    found = []
    place = 0
    while place < len(words.tokens):
        step = name_at(place) if words.at(place).may_begin else None
        if step is None:
            place += 1
        else:
            found.append(step[0])
            place = step[1]
    return found


def whole_name(text: str, today: int) -> Days | None:
    """The days that the whole text names; None if it is not one name.

    A name without a year is the last one that began by `today`. `two weeks ago` is that day.
    """
    tokens = [token for token in en.tokens_of(text) if token.text not in en.SILENT]
    while tokens and tokens[0].text in en.LEADS:
        del tokens[0]
    step = _TimeWords(tokens, today, is_exact=True).any_name(0)
    if step is None or step[1] != len(tokens):
        return None
    return step[0].latest(today) if isinstance(step[0], Yearly) else step[0]


_Part: TypeAlias = tuple[Callable[[Days], Days], int]
"""How to cut a stretch, and the place after the words that say so."""


class _TimeWords(DateWords):
    """Finds names in a list of words. Most methods take a place, and return a name and the place after it, or None."""

    def __init__(self, tokens: list[en.Token], today: int | None, *, is_exact: bool, is_past: bool = False) -> None:
        """If `is_past`, a bare weekday is the last one before today."""
        super().__init__(tokens, today, is_exact=is_exact)
        self._is_past = is_past

    def any_name(self, place: int) -> Step:
        """The name that begins at this word."""
        word = self.word(place)
        if word in en.OPEN:
            return self._open(place)
        if word in {"between", "from"}:
            return self._range(self.after_the(place + 1), is_sure=True)
        return self._range(place, is_sure=False)

    def name(self, place: int) -> Step:
        """The name that begins at this word, without the words for a range or an open end before it."""
        return self._name(place, is_sure=False)

    def is_vague(self, place: int, end: int) -> bool:
        """Whether it is a bare weekday or weekend, or a length of time until today or from it."""
        if end - place == 1:
            return self.word(place) in en.WEEKDAYS or self.word(place) == "weekend"
        return self.word(place) == "past" or (
            self.word(place) in en.BESIDE_TODAY and self._count(place + 1) is not None
        )

    # --- ranges

    def _open(self, place: int) -> Step:
        word = self.word(place)
        if (step := self._range(self.after_the(place + 1), is_sure=True)) is None:
            return None
        side = "until" if word == "till" else word
        return opened(step[0], side, self.today), step[1]

    def _range(self, place: int, *, is_sure: bool) -> Step:
        if (step := self._name(place, is_sure=is_sure)) is None:
            return None
        first, end = step
        joint = self.word(end)
        if joint not in en.TO and not (joint == "and" and "between" in {self.word(place - 1), self.word(place - 2)}):
            return step
        if (other := self._name(self.after_the(end + 1), is_sure=True)) is None:
            return step
        return joined(first, other[0]), other[1]

    # --- one name

    def _name(self, place: int, *, is_sure: bool) -> Step:
        token = self.at(place)
        if token.kind in {"end", "rest", "other"}:
            return None
        return (
            self._part(place) or self._counted(place) or self._neighbour(place) or self._plain(place, is_sure=is_sure)
        )

    def _plain(self, place: int, *, is_sure: bool) -> Step:
        return self.calendar(place, is_sure=is_sure or self.is_exact) or self._relative(place)

    def _part(self, place: int) -> Step:
        """A third, a half, a week of something longer."""
        part = self._third(place) or self._nth(place)
        if part is None:
            return None
        cut, end = part
        end = self.after_the(self.after_the(end))
        if self.word(end) in {"week", "month", "year"} and self.today is not None:
            return cut(unit_of(self.today, self.word(end), 0)), end + 1
        step = self._plain(end, is_sure=True)
        return None if step is None else (reduced(step[0], cut), step[1])

    def _third(self, place: int) -> _Part | None:
        word = self.word(place)
        if word not in en.THIRDS:
            return None
        end = place + 1
        if word in {"early", "mid", "late"}:
            end += self.word(end) in en.DASHES or self.word(end) == "in"
        elif self.word(end) != "of":
            return None
        return lambda days: days.share(en.THIRDS[word], 3), end

    def _nth(self, place: int) -> _Part | None:
        nth, unit = en.PLACES.get(self.word(place)), self.word(place + 1)
        if nth is None or self.word(place + 2) not in {"of", "in"}:
            return None
        if (length := en.PART_LENGTHS.get(unit)) is not None:
            return lambda days: days.piece(nth, length), place + 2
        if (count := en.PART_COUNTS.get(unit)) is not None and nth < count:
            return lambda days: days.share(nth % count, count), place + 2
        return None

    def _counted(self, place: int) -> Step:
        """How long ago, or before or after something."""
        if (count := self._count(place)) is None or (unit := en.UNITS.get(self.word(count[2]))) is None:
            return None
        low, high, end = count
        if self.word(end + 1) in {"ago", "back"}:
            if self.today is None:
                return None
            return shifted(Days.one(self.today), (-high, -low), unit, is_exact=self.is_exact), end + 2
        side, end = self._side(end + 1)
        if side not in {"before", "after"} or (step := self._plain(self.after_the(end), is_sure=True)) is None:
            return None
        span = (-high, -low) if side == "before" else (low, high)
        return reduced(step[0], lambda days: shifted(days, span, unit, is_exact=self.is_exact)), step[1]

    def _neighbour(self, place: int) -> Step:
        """The week before something, the Sunday after it, the weekend of it."""
        place += self.word(place) == "last" and self.word(place + 1) == "weekend"
        word = self.word(place)
        unit = en.UNITS.get(word)
        if unit is None and word != "weekend" and word not in en.WEEKDAYS:
            return None
        side, end = self._side(place + 1)
        if not side or (side == "of" and word not in {"week", "weekend"}):
            return None
        if (step := self._plain(self.after_the(end), is_sure=True)) is None:
            return None
        return reduced(step[0], lambda days: _near(days, word, side)), step[1]

    def _side(self, place: int) -> tuple[str, int]:
        """`before`, `after`, `of` or nothing; and the place after it."""
        word = self.word(place)
        if word == "prior" and self.word(place + 1) == "to":
            return "before", place + 2
        if word == "following":
            return "after", place + 1
        return (word, place + 1) if word in {"before", "after", "of"} else ("", place)

    def _count(self, place: int) -> tuple[int, int, int] | None:
        """From how many to how many, and the place after the number."""
        token = self.at(place)
        if token.kind in {"number", "year"}:
            return int(token.text), int(token.text), place + 1
        place += token.text in {"a", "an", "the"} and self.word(place + 1) in en.VAGUE_COUNTS
        if (vague := en.VAGUE_COUNTS.get(self.word(place))) is not None:
            return *vague, place + 1 + (self.word(place + 1) == "of")
        count = en.COUNTS.get(token.text)
        return None if count is None else (count, count, place + 1)

    # --- names that depend on today

    def _relative(self, place: int) -> Step:
        today = self.today
        if today is None:
            return None
        word = self.word(place)
        if word in en.SINGLE_DAYS:
            return Days.one(today + en.SINGLE_DAYS[word]), place + 1
        if word in en.BESIDE_TODAY:
            return self._beside_today(place, today)
        if (word in en.WEEKDAYS and (word.endswith("day") or self.is_exact)) or word == "weekend":
            if self.word(place - 1) in en.NEVER_ALONE:
                return None
            is_weekend = word == "weekend"
            day = weekday_before(today + (is_weekend or not self._is_past), en.WEEKDAYS.get(word, 5))
            return (Days(day.first, day.first + 1) if is_weekend else day), place + 1
        return None

    def _beside_today(self, place: int, today: int) -> Step:
        """Last week, this year, next Friday, the past two months."""
        which, word = self.word(place), self.word(place + 1)
        step = -1 if which in en.PAST else 1 if which in {"next", "coming"} else 0
        days: Days | None = None
        if word in en.DAY_TIMES:
            days = Days.one(today + step) if step <= 0 else None
        elif word in en.WEEKDAYS:
            nth = en.WEEKDAYS[word]
            this = Days.one(unit_of(today, "week", 0).first + nth)
            days = (weekday_before(today, nth), this, weekday_after(today, nth))[step + 1]
        elif word == "weekend":
            days = unit_of(today, "week", step).piece(-1, 2)
        elif word in {"week", "month", "year"}:
            days = until_today(today, -1, word) if which == "past" else unit_of(today, word, step)
        elif step and word not in {"a", "an"} and (count := self._count(place + 1)) is not None:
            _, high, place = count
            unit = en.UNITS.get(self.word(place))
            days = None if unit is None else until_today(today, step * high, unit)
            # The place after the unit, once 2 is added below.
            place -= 1
        else:
            return self._named_beside_today(place + 1, step, today)
        return None if days is None else (days, place + 2)

    def _named_beside_today(self, place: int, step: int, today: int) -> Step:
        token = self.at(place)
        if token.kind != "word":
            return None
        is_verb = token.text in en.VERBS and not token.is_capital and self.at(place + 1).kind == "word"
        found = None if is_verb else self.calendar(place, is_sure=True)
        if found is None or isinstance(found[0], Days):
            return found
        days = found[0].beside(today, step)
        return None if days is None else (days, found[1])


def _near(days: Days, word: str, side: str) -> Days:
    """The week, weekday, weekend, month or year next to the days; for `of`, the week or weekend of their start."""
    if word == "weekend":
        return weekend_near(days, side)
    if side == "of":
        return unit_of(days.first, "week", 0)
    if (nth := en.WEEKDAYS.get(word)) is not None:
        return weekday_before(days.first, nth) if side == "before" else weekday_after(days.last, nth)
    return beside(days, en.UNITS[word], is_before=side == "before")
