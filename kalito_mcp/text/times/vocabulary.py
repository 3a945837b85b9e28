"""The English words that name times, and the split of a text into words, numbers and signs. Pure.

Names are not read here. A number attached to other signs (2022ms, $2022, v1.2022, 12:30) becomes `rest` or `other`,
which are never part of a name.
"""

import re
from functools import cache
from itertools import islice
from typing import Final, NamedTuple

from kalito_mcp.text.times.days import Yearly

_MONTHS: Final = (
    "january jan|february feb|march mar|april apr|may|june jun|july jul|august aug|september sept sep|"
    "october oct|november nov|december dec"
).split("|")
MONTHS: Final = {name: number for number, names in enumerate(_MONTHS, start=1) for name in names.split()}
MONTH_NAMES: Final = frozenset(names.split()[0] for names in _MONTHS)
SHORT_MONTHS: Final = MONTHS.keys() - MONTH_NAMES
SURE_MONTHS: Final = frozenset("january february july september october november december".split())
VERBS: Final = frozenset(("may", "march"))
_WEEKDAYS: Final = (
    "monday mon|tuesday tue tues|wednesday wed|thursday thu thur thurs|friday fri|saturday sat|sunday sun"
).split("|")
WEEKDAYS: Final = {name: number for number, names in enumerate(_WEEKDAYS) for name in names.split()}
WEEKDAY_NAMES: Final = frozenset(names.split()[0] for names in _WEEKDAYS)
SEASONS: Final = {
    "spring": Yearly((3, 1), (5, 31)),
    "summer": Yearly((6, 1), (8, 31)),
    "autumn": Yearly((9, 1), (11, 30)),
    "fall": Yearly((9, 1), (11, 30)),
    "winter": Yearly((12, 1), (2, 29)),
}
# Longest first, because the first that fits is used. Possessives have lost their 's.
FEASTS: Final = {
    "christmas eve": Yearly((12, 24), (12, 24)),
    "christmas day": Yearly((12, 25), (12, 25)),
    "christmas": Yearly((12, 24), (12, 26)),
    "boxing day": Yearly((12, 26), (12, 26)),
    "new year eve": Yearly((12, 31), (12, 31)),
    "new years eve": Yearly((12, 31), (12, 31)),
    "new year day": Yearly((1, 1), (1, 1)),
    "new years day": Yearly((1, 1), (1, 1)),
    "valentine day": Yearly((2, 14), (2, 14)),
    "valentines day": Yearly((2, 14), (2, 14)),
    "independence day": Yearly((7, 4), (7, 4)),
    "halloween": Yearly((10, 31), (10, 31)),
    "thanksgiving": Yearly((11, 22), (11, 28)),
}
FEAST_STARTS: Final = frozenset(name.split()[0] for name in FEASTS)
UNITS: Final = {
    name: unit for unit in ("day", "week", "month", "year", "hour", "minute") for name in (unit, unit + "s")
} | {"night": "day", "nights": "day", "weekends": "week", "min": "minute", "mins": "minute"}
COUNTS: Final = {
    word: number
    for number, word in enumerate("one two three four five six seven eight nine ten eleven twelve".split(), start=1)
} | {"a": 1, "an": 1}
VAGUE_COUNTS: Final = {"couple": (2, 2), "few": (2, 5), "several": (3, 7)}
SINGLE_DAYS: Final = {"today": 0, "tonight": 0, "yesterday": -1, "tomorrow": 1}
PAST: Final = frozenset(("last", "past", "previous"))
BESIDE_TODAY: Final = PAST | {"this", "current", "next", "coming"}
DAY_TIMES: Final = frozenset(("morning", "afternoon", "evening", "night"))
THIRDS: Final = {"early": 0, "mid": 1, "late": 2, "beginning": 0, "start": 0, "middle": 1, "end": 2}
PLACES: Final = {"first": 0, "second": 1, "third": 2, "fourth": 3, "last": -1, "1st": 0, "2nd": 1, "3rd": 2, "4th": 3}
PART_LENGTHS: Final = {"day": 1, "week": 7}
PART_COUNTS: Final = {"half": 2, "quarter": 4}
OPEN: Final = frozenset(("since", "after", "until", "till", "before"))
MONTH_LEADS: Final = OPEN | {"in", "during", "early", "mid", "late", "around"}
VERB_LEADS: Final = frozenset(("in", "since", "during", "until", "till", "early", "mid", "late"))
FEAST_LEADS: Final = frozenset("on at over since until till before after".split())
SEASON_LEADS: Final = frozenset(("in", "during", "over", "since", "until", "till", "before", "after"))
TO: Final = frozenset(("to", "through", "until", "till", "-", "–", "—"))
DASHES: Final = frozenset(("-", "–", "—"))
# If one of these follows a number of four digits, it is a count and not a year.
COUNTED: Final = frozenset(
    "bytes calories characters dollars euros files kcal kg km lines messages meters metres miles people pounds records "
    "requests rows steps times tokens units users words".split()
)
# If one of these precedes it, it numbers something.
NUMBERED: Final = frozenset("error exchange no number office port python room server version windows".split())
SILENT: Final = frozenset(("the", ",", "."))
LEADS: Final = frozenset("at by during in on over".split())
NEVER_ALONE: Final = frozenset(("every", "each", "black", "good", "ash"))

STARTS: Final = (
    frozenset("between from weekend q1 q2 q3 q4".split())
    .union(MONTHS, WEEKDAYS, SEASONS, FEAST_STARTS, UNITS, COUNTS, VAGUE_COUNTS)
    .union(SINGLE_DAYS, BESIDE_TODAY, THIRDS, PLACES, OPEN)
)
"""Words that a name of time may begin with, besides numbers."""

_MAX_TOKENS: Final = 1_000
"""Bounds the cost of a long text: nobody names a time after a thousand words of a question."""


class Token(NamedTuple):
    """A word in lower case without a possessive s, a number, or a sign."""

    kind: str
    text: str
    is_capital: bool
    may_begin: bool
    """Whether a name of time can begin with it."""
    start: int = 0
    end: int = 0
    """Where it begins and ends in the text."""


NO_TOKEN: Final = Token("end", "", is_capital=False, may_begin=False)


@cache
def _token() -> re.Pattern[str]:
    return re.compile(
        r"""(?P<other>\d{1,3}(?:,\d{3})++(?!\d)|[$€£\#@]\w\S*+)
        |(?P<date>(?<![\w./+-])(?:\d{4}-\d\d?-\d\d?(?:t[\d:.]*+z?(?:[+-]\d\d:?\d\d)?)?|\d{4}-\d\d|\d{4}/\d\d?/\d\d?
            |\d\d?/\d\d?/\d{4}|\d\d?\.\d\d?\.\d{4})(?![\w/-]|\.\d))
        |(?P<year>(?:(?<![\w.$€£\#/:+–-])|(?<=\d{4}[–-]))(?:19|20)\d\d
            (?!\w|\ ?[%°€$]|[.:/+]\w|,\d|[–-](?!(?:19|20)\d\d(?!\w))\w))
        |(?P<decade>(?<!\w)(?:19|20)\d0s(?!\w))
        |(?P<ordinal>(?<![\w.,:/$€£])\d\d?(?:st|nd|rd|th)(?!\w))
        |(?P<number>(?<![\w.:/$€£+])\d{1,4}(?![\w%°€$:/]|\.\d))
        |(?P<word>[^\W\d_]\w*+(?:['’]\w++)*+)
        |(?P<rest>\w++|\S)""",
        re.VERBOSE | re.ASCII | re.IGNORECASE,
    )


def tokens_of(text: str) -> list[Token]:
    """The words, numbers and signs of the text, in order; at most the first 1,000."""
    found = []
    for match in islice(_token().finditer(text), _MAX_TOKENS):
        word = match.group()
        kind = match.lastgroup or ""
        lowered = word.lower().removesuffix("'s").removesuffix("’s")
        may_begin = lowered in STARTS if kind == "word" else kind not in {"rest", "other"}
        found.append(Token(kind, lowered, word[0].isupper(), may_begin, *match.span()))
    return found
