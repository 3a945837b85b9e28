"""Whether a prompt asks where the last work ended or what is open now: "where did I leave off?", "what's next?".

It does if all its words belong to a pattern of `recent_work.txt` or name no subject: function words, times and the
table's `filler`. Filler and times may also stand between the words of a pattern. `ended` are questions for where the
work ended: as one sentence of several, such a question counts too. `open` are questions for what to do now: between
other sentences they are about those.

Patterns are regular expressions for folded words with single spaces, in scripts without spaces for letters. An
apostrophe in a pattern may be missing in the text. It reads its table once.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from kalito_mcp.text.analysis import fold, is_spelled_with_spaces, words
from kalito_mcp.text.languages import ENGLISH, function_words, tables, talk_words
from kalito_mcp.text.lazy_pattern import lazy
from kalito_mcp.text.sentences import split_sentences
from kalito_mcp.text.times import vocabulary as en

ENDED: Final = "ended"
OPEN: Final = "open"

_TABLE: Final = Path(__file__).with_name("recent_work.txt")
_NOT_TIMES: Final = frozenset(("function words", "talk", "none", "past"))
_MOST_CHARS: Final = 400
"""A longer text names a subject."""

_UNMARKED: Final = str.maketrans("łıøđ", "liod")
"""Letters that people also type without their mark, and that Unicode does not take apart."""

_PATTERN_WORD: Final = lazy(r"([^\s()|?*+^$]+)(\??)")


class Row(NamedTuple):
    """A pattern of the table, a sentence that asks for recent work and one that does not."""

    language: str
    kind: str
    pattern: str
    asking: str
    other: str


class _Rules(NamedTuple):
    """How one language asks it.

    `known` has the words of all patterns and of `idle`, which name no subject. In scripts without spaces it has their
    letters, and `letters` has those of the function words. `silent` are sets of words to try the patterns without.
    """

    patterns: Mapping[str, Sequence[Callable[[], re.Pattern[str]]]]
    known: frozenset[str]
    idle: frozenset[str]
    letters: frozenset[str]
    silent: Sequence[frozenset[str]]
    has_spaces: bool


def asks_where_left_off(text: str) -> bool:
    """Whether the text asks where the last work ended or what is open, and names no subject."""
    if len(text) > _MOST_CHARS:
        return False
    sentences = split_sentences(text)
    return any(
        _asks(text, rules, ENDED, OPEN) or (len(sentences) > 1 and any(_asks(one, rules, ENDED) for one in sentences))
        for rules in map(_rules, _table())
    )


def rows() -> Iterator[Row]:
    """The patterns of the table."""
    for language, kinds in _table().items():
        for kind in (ENDED, OPEN):
            for line in kinds[kind]:
                yield Row(language, kind, *line.rsplit(" | ", 2))


def _asks(text: str, rules: _Rules, *kinds: str) -> bool:
    asked = _split(text, has_spaces=rules.has_spaces)
    if not rules.known.issuperset(asked):
        return False  # which is soon seen of most texts, before a pattern is compiled
    patterns = [pattern() for kind in kinds for pattern in rules.patterns[kind]]
    for silent in rules.silent:
        said = _without(asked, silent, rules)
        rest = list(said)
        for match in (match for pattern in patterns for match in pattern.finditer(said)):
            rest[match.start() : match.end()] = " " * len(match.group())
        left = "".join(rest)
        if said != left and rules.letters.issuperset(_without(left.split(), rules.idle, rules)):
            return True
    return False


def _without(asked: Sequence[str], silent: frozenset[str], rules: _Rules) -> str:
    if rules.has_spaces:
        return " ".join(word for word in asked if word not in silent)
    line = "".join(asked)
    for word in sorted(silent, key=len, reverse=True):
        line = line.replace(word, "")
    return line


@cache
def _table() -> dict[str, dict[str, list[str]]]:
    found: dict[str, dict[str, list[str]]] = {}
    for part in _TABLE.read_text(encoding="utf-8").split("\n[")[1:]:
        head, _, listed = part.partition("]\n")
        language, kind = head.split()
        found.setdefault(language, {})[kind] = listed.strip().splitlines()
    return found


@cache
def _rules(language: str) -> _Rules:
    kinds = _table()[language]
    has_spaces = is_spelled_with_spaces(" ".join(kinds["filler"]))
    if language == ENGLISH:
        named = sorted(en.STARTS)
    else:
        named = [listed for section, listed in tables()[language].items() if section not in _NOT_TIMES]
    listed = (kinds["filler"], named, function_words(language), talk_words(language))
    filler, times, function, talk = (_listed(" ".join(one), has_spaces=has_spaces) for one in listed)
    patterns: dict[str, list[Callable[[], re.Pattern[str]]]] = {ENDED: [], OPEN: []}
    known: set[str] = set()
    for kind, found in patterns.items():
        for line in kinds[kind]:
            # An apostrophe stands between two words or is missing.
            plain = fold(line.rsplit(" | ", 2)[0]).translate(_UNMARKED)
            pattern = plain.replace("'", " ?")
            found.append(lazy(rf"(?<!\S)(?:{pattern})(?!\S)" if has_spaces else pattern))
            both = " ".join(plain.replace("'", joint) for joint in ("", " "))
            for word, is_optional in _PATTERN_WORD().findall(both):
                known.update((word, word[:-1]) if is_optional else (word,))
    idle = filler | times | talk | function
    letters = frozenset(" ") if has_spaces else frozenset("".join(function))
    known |= idle
    return _Rules(
        patterns,
        frozenset(known if has_spaces else "".join(known)),
        idle,
        letters,
        (frozenset(), filler, filler | (times - function), filler | times),
        has_spaces,
    )


def _listed(text: str, *, has_spaces: bool) -> frozenset[str]:
    text = text.replace("_", " ").replace("~", "").replace("?", "").replace("|", " ")
    return frozenset(_split(text, has_spaces=True) if has_spaces else fold(text).split())


def _split(text: str, *, has_spaces: bool) -> list[str]:
    """The words of a text, without marks and apostrophes; in a script without spaces, its letters."""
    if has_spaces:
        return " ".join(words(text)).translate(_UNMARKED).replace("'", " ").split()
    return [letter for letter in fold(text) if letter.isalnum()]
