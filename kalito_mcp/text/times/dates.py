"""Dates as English writes them: October 13, 2023; 13th of October; 10/13/2023; Aug 11-15; May 2023; Q3 2023; in the
summer; Christmas; 1999. Pure.

In digits the month comes first, unless the number is too large for one (13/10/2023) or dots separate the numbers
(13.10.2023). A day that does not exist, June 31, is read as its month. Words that are also verbs or people (may,
march, april) count only if a preposition, a day or a year shows that a month is meant.
"""

import re
from typing import TypeAlias

from kalito_mcp.text.times import vocabulary as en
from kalito_mcp.text.times.days import Days, Yearly, month_of, on_day, year_of

Found: TypeAlias = Days | Yearly
Step: TypeAlias = tuple[Found, int] | None
"""The meaning of a name, and the place after the name."""


class DateWords:
    """The words of a text, and the date that begins at each. A place is the number of a word, from 0."""

    def __init__(self, tokens: list[en.Token], today: int | None, *, is_exact: bool) -> None:
        """If `is_exact`, a month, season or weekday needs no word before it, and `two weeks ago` is one day."""
        self.tokens = tokens
        self.today = today
        self.is_exact = is_exact

    def at(self, place: int) -> en.Token:
        """The word at the place; outside the text, an empty one of kind `end`."""
        return self.tokens[place] if 0 <= place < len(self.tokens) else en.NO_TOKEN

    def word(self, place: int) -> str:
        """The word at the place as a string, in lower case."""
        return self.at(place).text

    def after_the(self, place: int) -> int:
        """The place, or the next one if the word there is `the` or `of`."""
        return place + (self.word(place) in {"the", "of"})

    def calendar(self, place: int, *, is_sure: bool) -> Step:
        """The date that begins here. If `is_sure`, a bare month or season is one, whatever comes before it."""
        token = self.at(place)
        found: Found | None = None
        match token.kind:
            case "number" | "ordinal":
                return self._day_first(place)
            case "word" if token.text in en.MONTHS:
                return self._month_first(place, is_sure=is_sure)
            case "word":
                return self._season_or_feast(place, is_sure=is_sure)
            case "date":
                found = _written(token.text)
            case "year" if self.word(place + 1) not in en.COUNTED and self.word(place - 1) not in en.NUMBERED:
                found = year_of(int(token.text))
            case "decade":
                year = int(token.text[:-1])
                found = Days(year_of(year).first, year_of(year + 9).last)
        return None if found is None else (found, place + 1)

    def _day_first(self, place: int) -> Step:
        """13 October 2023, 13th of October, 11-15 August."""
        first, last, end = self._day_numbers(place)
        is_clear = self.at(place).kind == "ordinal" or self.word(end) == "of"
        end += self.word(end) == "of"
        month = self.at(end)
        if month.text not in en.MONTHS or not first:
            return None
        year, after = self._year(end + 1)
        if month.text in en.VERBS and not (month.is_capital or is_clear or year or self.is_exact):
            return None
        found = on_day(year, en.MONTHS[month.text], first, last)
        return None if found is None else (found, after)

    def _month_first(self, place: int, *, is_sure: bool) -> Step:
        """October 13, 2023; Aug 15th; August 11-15; May 2023; in May."""
        token = self.at(place)
        month = en.MONTHS[token.text]
        is_month = is_sure or self._is_led(place)
        end = place + 1
        end += self.word(end) == "." and len(token.text) <= len("sept")
        day = end + (self.word(end) == "the" and self.at(end + 1).kind == "ordinal")
        if self.at(day).kind in {"number", "ordinal"}:
            first, last, after = self._day_numbers(day)
            year, behind = self._year(after)
            is_clear = token.is_capital or year or self.at(day).kind == "ordinal" or token.text not in en.VERBS
            if (is_month or is_clear) and first and (found := on_day(year, month, first, last)) is not None:
                return found, behind
            end = after if year else end
        year, behind = self._year(end)
        if year:
            return month_of(year, month), behind
        return (Yearly((month, 1), (month, 31)), place + 1) if is_month else None

    def _day_numbers(self, place: int) -> tuple[int, int, int]:
        """First and last day of the month, and the place after them; 0 for a number that is no day."""
        first = _day_number(self.at(place))
        joint = self.word(place + 1)
        if joint in en.TO or (joint == "and" and self.word(place - 1) in {"between", *en.MONTHS}):
            last = _day_number(self.at(place + 2))
            # 11 August to 3 September is a range of two names, August 11 to 15 one of two days.
            if first < last and (self.word(place - 1) in en.MONTHS) != (self.word(place + 3) in en.MONTHS):
                return first, last, place + 3
        return first, first, place + 1

    def _year(self, place: int) -> tuple[int, int]:
        """The year that is written here, and the place after it; 0 and the same place if there is no year."""
        end = place + (self.word(place) == ",")
        end += self.word(end) in {"of", "in"}
        if self.at(end).kind == "year":
            return int(self.word(end)), end + 1
        word = self.word(end)
        if self.today is not None and word in {"last", "this", "next"} and self.word(end + 1) == "year":
            year = Days(self.today, self.today).year + {"last": -1, "this": 0, "next": 1}[word]
            return max(1, min(year, 9999)), end + 2
        return 0, place

    def _is_led(self, place: int) -> bool:
        """Whether a word before the month shows that it is one, or it cannot be anything else."""
        token = self.at(place)
        if token.text in en.SURE_MONTHS:
            return True
        leads = en.MONTH_LEADS if token.text not in en.VERBS or token.is_capital else en.VERB_LEADS
        return self.word(place - 1) in leads

    def _season_or_feast(self, place: int, *, is_sure: bool) -> Step:
        word = self.word(place)
        found: Yearly | None = None
        end = place + 1
        if word in en.SEASONS:
            found = en.SEASONS[word]
            lead = self.word(place - 1 - (self.word(place - 1) == "the"))
            is_sure = is_sure or (lead in en.SEASON_LEADS and (word != "fall" or self.word(place - 1) == "the"))
        elif word in en.FEAST_STARTS:
            name = next((n for n in en.FEASTS if all(self.word(place + k) == w for k, w in enumerate(n.split()))), None)
            if name is not None:
                found, end = en.FEASTS[name], place + len(name.split())
                is_sure = is_sure or self.word(place - 1) in en.FEAST_LEADS
        elif len(word) == len("q1") and word[0] == "q" and word[1] in "1234":
            quarter = int(word[1])
            found = Yearly((quarter * 3 - 2, 1), (quarter * 3, 31))
        if found is None:
            return None
        year, after = self._year(end)
        if not year:
            return (found, end) if is_sure else None
        days = found.in_year(year)
        return None if days is None else (days, after)


def _day_number(token: en.Token) -> int:
    digits = token.text[:-2] if token.kind == "ordinal" else token.text
    return int(digits) if token.kind in {"ordinal", "number"} and len(digits) <= len("31") else 0


def _written(text: str) -> Days | None:
    """The day or month of a date in digits: 2023-10-13, 2023-10, 2023/10/13, 10/13/2023, 13.10.2023."""
    parts = [int(part) for part in re.findall(r"\d+", text.partition("t")[0].partition("T")[0])]
    if len(parts) == 2:  # noqa: PLR2004 - a year and a month
        year, month = parts
        return month_of(year, month) if year and 1 <= month <= 12 else None  # noqa: PLR2004 - December
    if "-" in text or text.find("/") == len("2023"):
        year, month, day = parts
    elif "." in text or parts[0] > 12:  # noqa: PLR2004 - no month: the day comes first
        day, month, year = parts
    else:
        month, day, year = parts
    found = on_day(year, month, day, day) if year else None
    return found if isinstance(found, Days) else None
