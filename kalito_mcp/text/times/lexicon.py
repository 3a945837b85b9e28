"""The words for times of one language, and the split of a text into those words and numbers. Reads tables, once.

The sections of a table (`text.languages`) say what its words mean. `|` separates the first month from the second, and
so on; `_` stands for a space. A word with `~` before it stands after what it belongs to: German `vor 3 Tagen`, Polish
`3 dni ~temu`. A word with `?` after it is a time only with another word that says so: a year, a day, a preposition.

    months, seasons, weekdays (Monday first), numbers, signs (for year, month and day after a number)
    units         day | week | month | year | weekend; `one` and `two` are words for that many of a unit
    days, years   by distance from today: -2 | -1 | 0 | 1 | 2; `steps` are the words for last, this and next
    in, of, ago, since, until, before, after, from, to, every
    endings       what may follow the digits of a day
    none          what looks like a time and is not
    past          see `tense`
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Final, NamedTuple

from kalito_mcp.text.analysis import is_spelled_with_spaces, plainly_spelled
from kalito_mcp.text.languages import tables
from kalito_mcp.text.lazy_pattern import lazy
from kalito_mcp.text.times.days import Days, on_day
from kalito_mcp.text.times.vocabulary import DASHES

_FIRST: Final = {"months": 1, "seasons": 13, "numbers": 1, "days": -2, "years": -2, "steps": -2}
"""The number of the first word of a section, where it is not 0. The seasons follow December."""

_WORDLESS: Final = frozenset(("function words", "endings", "past"))
_MAX_CHARS: Final = 2_000

_PIECE: Final = lazy(
    r"(?P<date>\d\d?([./-])\d\d?\2\d{4}(?!\d))|(?P<number>\d+(?:[.,:/]\d+)*)"
    r"|(?P<word>[^\s\d!-/:-@\[-`{-¿\u2000-\u206f\u3000-\u303f،؛؟।॥]+)|\S"
)
_MARKS: Final = dict.fromkeys(map(ord, "|~?_-'\n"), " ")
_SILENT: Final = frozenset(".,'،°")
_NOT_BEFORE_NUMBER: Final = frozenset("$€£#@+&_/")
_NOT_AFTER_NUMBER: Final = frozenset("%$€£")


class Lexicon(NamedTuple):
    """The possible meanings of a language's words: a number for each section that has the word.

    The name of a section has `~` or `?` before it where the table has one at the word.
    """

    senses: Mapping[str, Mapping[str, int]]
    longest: int
    """The most pieces of an entry."""
    endings: Sequence[str]


class Token(NamedTuple):
    """A word or number: where it begins and ends, and what it may mean.

    A number means `digits`, a year `year` as well, a date of three numbers `written`, which is the ordinal of the day.
    """

    start: int
    end: int
    senses: Mapping[str, int]

    @property
    def sections(self) -> set[str]:
        """The sections that have it, whether or not with a `?`."""
        return {sense.lstrip("?") for sense in self.senses}


NO_TOKEN: Final = Token(0, 0, {})


def ready(text: str) -> str:
    """The beginning of the text, folded, as the tables are, with single spaces and plain digits."""
    return " ".join(with_plain_digits(plainly_spelled(text[:_MAX_CHARS])).replace("’", "'").split())


def with_plain_digits(text: str) -> str:
    """The text with the digits of all scripts as 0 to 9."""
    if text.isascii():
        return text
    return "".join(str(unicodedata.decimal(one)) if one.isdecimal() else one for one in text)


def may_name_times(text: str, language: str) -> bool:
    """Whether the table may have a word of the text, or the text a date. Rules most tables out, unprepared."""
    listed = _listed(language)
    words = [(text[start:end], kind) for start, end, kind in _pieces(text)]
    return any(
        kind == "date" or (kind == "word" and (f" {word} " if is_spelled_with_spaces(word) else word) in listed)
        for word, kind in words
    )


@cache
def _listed(language: str) -> str:
    table = tables().get(language, {})
    listed = " ".join(listed for section, listed in table.items() if section not in _WORDLESS)
    return plainly_spelled(f" {listed} ").translate(_MARKS)


@cache
def lexicon(language: str) -> Lexicon:
    """The words of the language's table."""
    table = tables().get(language, {})
    senses: dict[str, dict[str, int]] = {dash: {"to": 0} for dash in DASHES}
    for section, listed in table.items():
        for number, words in enumerate(plainly_spelled(listed).split("|"), _FIRST.get(section, 0)):
            for word in words.split() if section not in _WORDLESS else ():
                mark = "?" if word.endswith("?") or section == "seasons" else ""
                after = "~" if word.startswith("~") else ""
                sense = "months" if section == "seasons" else section
                senses.setdefault(word.strip("~?").replace("_", " "), {})[mark + after + sense] = number
    longest = max(sum(1 for _ in _pieces(word)) for word in senses)
    return Lexicon(senses, longest, plainly_spelled(table.get("endings", "")).split())


def tokens_of(text: str, known: Lexicon) -> list[Token]:
    """The words, numbers and signs of a text that is `ready`; the longest entry that begins at a place is one."""
    pieces = list(_pieces(text))
    found: list[Token] = []
    at = 0
    while at < len(pieces):
        start, end, kind = pieces[at]
        if kind in {"date", "number"}:
            token = _number(text, start, end, known)
        else:
            ends = (pieces[last][1] for last in range(min(at + known.longest, len(pieces)) - 1, at, -1))
            end = next((longer for longer in ends if text[start:longer] in known.senses), end)
            senses = known.senses.get(text[start:end], {})
            token = Token(start, end, {} if "none" in senses else senses)
        if token.senses or text[start:end] not in _SILENT:
            found.append(token)
        while at < len(pieces) and pieces[at][0] < token.end:
            at += 1
    return found


def _pieces(text: str) -> Iterator[tuple[int, int, str]]:
    """Where each word, number or sign begins and ends, and its kind. In scripts without spaces, each letter is one."""
    for match in _PIECE().finditer(text):
        kind = match.lastgroup or ""
        if kind == "word" and not is_spelled_with_spaces(match.group()):
            yield from ((at, at + 1, kind) for at in range(match.start(), match.end()))
        else:
            yield match.start(), match.end(), kind


def _number(text: str, start: int, end: int, known: Lexicon) -> Token:
    """The number with its ending. If it is attached to other letters or signs, it means nothing."""
    digits, rest = text[start:end], text[end:]
    ending = next((one for one in known.endings if re.match(re.escape(one) + r"(?!\w)", rest)), "")
    end += len(ending)
    before, after = text[:start].rstrip("-–")[-1:], text[end : end + 1]
    if _is_letter(before) or _is_letter(after) or before in _NOT_BEFORE_NUMBER or after in _NOT_AFTER_NUMBER:
        return Token(start, end, {})
    if not digits.isdecimal():
        day, month, year = (*map(int, re.findall(r"\d+", digits)), 0, 0)[:3]
        days = on_day(year, month, day, day) if year else None
        return Token(start, end, {"written": days.first} if isinstance(days, Days) else {})
    is_year = len(digits) == len("2026") and digits[:2] in {"19", "20"}
    return Token(start, end, {"digits": int(digits)} | ({"year": int(digits)} if is_year else {}))


def _is_letter(sign: str) -> bool:
    """Whether it is a letter of a script with spaces: in others, a number may be between words."""
    return sign.isalpha() and is_spelled_with_spaces(sign)
