"""Which kind of figure a question asks for, and whether a text has one: how much, how old, which colour. Pure. English.

A memory that knows the thing, but tells no figure of that kind near it, has no answer.
"""

import re
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from kalito_mcp.retrieval.hyponyms import hyponyms
from kalito_mcp.text.analysis import stem, words
from kalito_mcp.text.lazy_pattern import lazy

_NUMBER_WORD: Final = (
    r"(?:ten|eleven|twelve|(?:thir|four|fif|six|seven|eigh|nine)teen|(?:twen|thir|for|fif|six|seven|eigh|nine)ty"
    r"|hundreds?|thousands?|millions?)"
)
_CURRENCY: Final = (
    r"(?:[$€£¥₹]|\b(?:eur(?:os?)?|usd|gbp|chf|dollars?|bucks?|pounds?|quid|cents?|pence|francs?|rupees?|yen|yuan|pesos?"
    r"|kroner?|shillings?|grand)\b)"
)
_FIGURE: Final = lazy(rf"\d|\b(?:free|nothing|zero|half|{_NUMBER_WORD})\b", re.IGNORECASE)
_MEASURE: Final = (
    r"(?:%|°|(?:[ap]m|o'clock|st|nd|rd|th|times|days?|nights?|weeks?|months?|years?|yrs?|hours?|hrs?|mins?|minutes?"
    r"|k?ms?|ks|k?gs?|c?m|miles?|met(?:er|re)s?|lit(?:er|re)s?|people|percent|january|february|march|april|may|june"
    r"|july|august|september|october|november|december)\b)"
)
_MONEY: Final = lazy(
    rf"{_CURRENCY}|\b(?:free|nothing|{_NUMBER_WORD})\b|\b\d+(?:[.,]\d+)?k\b"
    # A number from ten up, or with a fraction, that is no year, no time of day and no measure of something else.
    r"|(?<![\d:.,])(?!(?:19|20)\d\d\b)(?:\d{2,}(?:[.,]\d+)*|\d[.,]\d+(?:[.,]\d+)*)\b"
    rf"(?![:.]\d|\s*{_MEASURE})",
    re.IGNORECASE,
)
_AGE: Final = lazy(
    rf"\b\d{{1,3}}\b|\b{_NUMBER_WORD}\b|\b(?:one|two|three|four|five|six|seven|eight|nine)\b|\bborn\b|\bbirthday\b"
    r"|\bturn(?:s|ed|ing)\b",
    re.IGNORECASE,
)
_YEAR: Final = lazy(
    r"\b(?:19|20)\d\d\b|['’]\d\d\b|\b(?:in|since) \d\d\b|\byears?\b|\byrs?\b|\bdecades?\b", re.IGNORECASE
)
_TELEPHONE: Final = lazy(r"\d(?:[ ()/.+-]{0,2}\d){5,}")
_EMAIL: Final = lazy(r"@")
_RATE: Final = lazy(r"\d[.,]\d|\d ?%|\bper ?cent\b", re.IGNORECASE)


class _Kind(NamedTuple):
    asks: Callable[[], re.Pattern[str]]
    has: Callable[[str], bool]


def _matches(pattern: Callable[[], re.Pattern[str]]) -> Callable[[str], bool]:
    return lambda text: pattern().search(text) is not None


def _has_colour(text: str) -> bool:
    colours = hyponyms("colour")
    return any(stem(word) in colours for word in words(text))


_KINDS: Final = (
    _Kind(
        lazy(
            r"\bhow much (?:money|rent|salary|tax|deposit)\b"
            r"|\bhow much\b.*\b(?:ask(?:ing)?|bill(?:ed)?|charge[ds]?|cost|costs|earn|fee|get for|invoice|make|owe|"
            r"paid|pay(?:ing)?|price|quoted?|sell|sold|spen[dt]|worth)\b"
            r"|\bwhat(?:'s| is| was| were| did)?\b.*\b(?:price|rent|salary|wage|fee)\b",
            re.IGNORECASE,
        ),
        _matches(_MONEY),
    ),
    _Kind(lazy(r"\bhow old (?:is|are|was|were|am)\b|\bwhat age\b", re.IGNORECASE), _matches(_AGE)),
    _Kind(lazy(r"\b(?:what|which) year\b", re.IGNORECASE), _matches(_YEAR)),
    _Kind(lazy(r"\b(?:phone|mobile|telephone|cell) (?:number|no)\b", re.IGNORECASE), _matches(_TELEPHONE)),
    _Kind(lazy(r"\be-?mail address\b", re.IGNORECASE), _matches(_EMAIL)),
    _Kind(lazy(r"\b(?:interest|tax|exchange) rate\b|\bwhat percentage\b", re.IGNORECASE), _matches(_RATE)),
    _Kind(lazy(r"\b(?:what|which|what's the) colou?rs?\b", re.IGNORECASE), _has_colour),
    _Kind(
        lazy(
            r"\bhow much (?:is|are|was|were|do|does|did|will|would)\b|\bhow (?:tall|high|heavy)\b|\bwhat amount\b",
            re.IGNORECASE,
        ),
        _matches(_FIGURE),
    ),
)


def asked_figure(question: str) -> Callable[[str], bool] | None:
    """What tells whether a text has a figure of the kind that the question asks for; None if it asks for none."""
    found: Iterator[_Kind] = (kind for kind in _KINDS if kind.asks().search(question) is not None)
    kind = next(found, None)
    return None if kind is None else kind.has
