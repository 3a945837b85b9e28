"""Times in the words of the languages that have a table: März 2026, la semana pasada, 3 дня назад, 上周. Pure.

The table of a new language brings its times with it: the words are in `lexicon`, the grammar in `other_grammar`.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import chain
from typing import Final, NamedTuple

from kalito_mcp.text.languages import ENGLISH, tables
from kalito_mcp.text.times import vocabulary as en
from kalito_mcp.text.times.dates import Found
from kalito_mcp.text.times.days import Days, Yearly
from kalito_mcp.text.times.lexicon import Token, lexicon, may_name_times, ready, tokens_of
from kalito_mcp.text.times.other_grammar import DECEMBER, Names
from kalito_mcp.text.times.tense import is_past

_CALENDAR: Final = frozenset(("months", "weekdays", "signs", "year", "written"))
_ENGLISH: Final = en.STARTS | en.TO | en.LEADS | en.MONTH_LEADS


class OtherNames(NamedTuple):
    """The times that a text names in `language`.

    `timeless` are those that do not depend on today. `rest` is the text without the names, folded. `calendar` are the
    words in the names for months, days and years: what is said about a day is seldom said on it.
    """

    language: str
    named: list[Found]
    timeless: list[Found]
    rest: str
    calendar: str


class _Reading(NamedTuple):
    """A text as one language reads it: its words, and each name with its place and the place after it."""

    language: str
    tokens: list[Token]
    names: list[tuple[Found, int, int]]

    @property
    def letters(self) -> int:
        """How much of the text its names are."""
        return sum(self.tokens[end - 1].end - self.tokens[place].start for _, place, end in self.names)


def other_names(text: str, today: int | None, likely: Sequence[str]) -> OtherNames | None:
    """The times that the text names in the one of the likely languages in which they are the most letters, or None.

    If English is likely, it keeps the names of which it knows each word. If not, and no likely language has a name,
    names of two words and more are read in all languages: few function words are one language's own.
    """
    text = ready(text)
    readings = [_reading(text, today, language) for language in likely]
    if ENGLISH in likely:
        readings = [_not_in_english(text, reading) for reading in readings]
    elif not any(reading.names for reading in readings):
        readings = [_of_two_words(_reading(text, today, language)) for language in tables()]
    best = max(readings, key=lambda reading: reading.letters, default=None)
    if best is None or not best.names:
        return None
    tokens = best.tokens
    names = [tokens[place:end] for _, place, end in best.names]
    timeless = [found for found, place, _ in Names(tokens, None).all() if any(tokens[place] in name for name in names)]
    dated = chain.from_iterable(name for name in names if any(_CALENDAR & one.sections for one in name))
    calendar = [text[one.start : one.end] for one in dated if (_CALENDAR | {"digits"}) & one.sections]
    return OtherNames(
        best.language, [one for one, _, _ in best.names], timeless, "".join(_rest(text, names)), " ".join(calendar)
    )


def whole_name_elsewhere(text: str, today: int) -> Days | None:
    """The days that the whole text names in one of the languages; None if it is not one name.

    A name without a year is the last one that began by `today`. `vor zwei Wochen` is that day.
    """
    text = ready(text)
    for language in tables():
        if not may_name_times(text, language):
            continue
        tokens = tokens_of(text, lexicon(language))
        names = Names(tokens, today, is_exact=True)
        for place in dict.fromkeys((0, names.skip(0, "in", "of"))):
            if (step := names.any_name(place)) is not None and step[1] == len(tokens):
                return step[0].latest(today) if isinstance(step[0], Yearly) else step[0]
    return None


def relative_names_elsewhere(text: str, today: int, languages: Sequence[str]) -> list[tuple[Days, int, int]]:
    """The names of days that depend on today, in one of these languages, each with where it begins and ends.

    Bare weekdays and open ends are left out, and everything in a text that folding makes shorter or longer.
    """
    folded = ready(text)
    if len(folded) != len(text):
        return []
    best = max((_reading(folded, today, language) for language in languages), key=lambda one: one.letters, default=None)
    if best is None:
        return []
    timeless = {place: found for found, place, _ in Names(best.tokens, None).all()}
    return [
        (found, best.tokens[place].start, best.tokens[end - 1].end)
        for found, place, end in best.names
        if isinstance(found, Days)
        and timeless.get(place) != found
        and not (end - place == 1 and "weekdays" in best.tokens[place].senses)
        and found.first > 1
        and (found.first == found.last or found.last != today)
    ]


@cache
def calendar_words(*, is_sure: bool) -> frozenset[str]:
    """The words for months and weekdays in every table, folded; if `is_sure`, without those that may be other words."""
    entries = chain.from_iterable(lexicon(language).senses.items() for language in tables())
    marks = ("",) if is_sure else ("", "?")
    return frozenset(
        word
        for word, senses in entries
        if any(f"{mark}weekdays" in senses or senses.get(f"{mark}months", DECEMBER + 1) <= DECEMBER for mark in marks)
    )


def _reading(text: str, today: int | None, language: str) -> _Reading:
    if not may_name_times(text, language):
        return _Reading(language, [], [])
    tokens = tokens_of(text, lexicon(language))
    return _Reading(language, tokens, list(Names(tokens, today, is_past=is_past(text, language)).all()))


def _not_in_english(text: str, reading: _Reading) -> _Reading:
    def is_english(token: Token) -> bool:
        word = text[token.start : token.end]
        return word[:1].isdigit() or word in _ENGLISH

    kept = [one for one in reading.names if not all(map(is_english, reading.tokens[one[1] : one[2]]))]
    return reading._replace(names=kept)


def _of_two_words(reading: _Reading) -> _Reading:
    return reading._replace(names=[one for one in reading.names if one[2] - one[1] > 1])


def _rest(text: str, names: Sequence[Sequence[Token]]) -> Iterator[str]:
    at = 0
    for name in names:
        yield text[at : name[0].start]
        yield " "
        at = name[-1].end
    yield text[at:]
