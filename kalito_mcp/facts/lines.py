"""Which of two statements about the same subject and attribute stands. Pure."""

import re
from typing import Final

from kalito_mcp.domain.facts import ANY, Polarity, Relation
from kalito_mcp.facts.attributes import is_certain, is_multiple, is_open
from kalito_mcp.facts.vocabulary import WEEKDAY, stems
from kalito_mcp.text.analysis import stem
from kalito_mcp.text.lazy_pattern import lazy

Stated = tuple[str, Polarity]
"""The value of a statement, folded, and how it holds."""


def relation(attribute: str, older: Stated, newer: Stated, *, is_change: bool) -> Relation:
    """What the newer statement means for the older one. `is_change`: the newer one says that something changed.

    A negation ends the value that it denies, and no other. Another value ends the older one if a thing has only one at
    a time (`attributes`), or if something changed; otherwise both stand, as a conflict.
    """
    (old_value, old_polarity), (value, polarity) = older, newer
    is_same = is_same_value(old_value, value)
    if polarity is not Polarity.IS:
        denies = is_same or value == ANY if polarity is Polarity.NOT else is_same and is_change
        return Relation.SUPERSEDES if denies and old_polarity is Polarity.IS else Relation.UNRELATED
    if old_polarity is Polarity.NOT:
        return Relation.SUPERSEDES if is_same or old_value == ANY else Relation.UNRELATED
    if is_same:
        return Relation.SAME
    if is_open(attribute):
        return Relation.UNRELATED
    if old_polarity is Polarity.WAS or is_multiple(attribute) or is_certain(attribute) or is_change:
        return Relation.SUPERSEDES
    return Relation.CONFLICT


def is_same_value(one: str, other: str) -> bool:
    """Whether two values are equal, or one only says more (Berlin, Berlin Mitte). With digits they must be equal."""
    if one == other:
        return True
    if any(map(str.isdigit, one + other)):
        return False
    words, more = set(one.split()), set(other.split())
    return bool(words and more) and (words <= more or more <= words)


def names(named: str, subject: str, attribute: str, value: str) -> bool:
    """Whether words that name what ended mean this statement: all of them are in it (the Canon, a Canon camera).

    A place or a person is named by its first word: York is not New York.
    """
    wanted = stems(named).split()
    if is_multiple(attribute):
        return (
            bool(wanted)
            and value == "yes"
            and set(attribute.split()[1:]) <= set(wanted) <= {stem(word) for word in attribute.split()}
        )
    words = stems(value).split()
    if not wanted or not words or set(wanted).isdisjoint(words) or not set(wanted) <= {*words, *subject.split()}:
        return False
    return words[0] in wanted or attribute not in _PROPER


def is_ambiguous(named: str) -> bool:
    """Whether the words alone may mean several things: a number, a weekday."""
    return _BARE().fullmatch(named.strip()) is not None


_PROPER: Final = frozenset("home move employer boss address spouse roommate landlord name city".split())
_BARE: Final = lazy(rf"[\d.:, ]+|{WEEKDAY}", re.IGNORECASE)
