"""Which noun a question asks for: the airline of "With which airline do I fly?". Pure. English only.

A memory that knows the thing but never mentions such a noun, nor an instance of it, has no answer.
"""

from collections.abc import Sequence
from typing import Final

from kalito_mcp.text.analysis import stem, words

_AUXILIARIES: Final = frozenset(
    """am are can could did do does had has have is may might must of shall should was were will would""".split()
)
_BE: Final = frozenset("are is was were".split())
_ENDS: Final = _AUXILIARIES | frozenset(
    """about after again and at before by currently during for from in like now of on or since so then there these this
    to today when where which while who with without""".split()
)
_DETERMINERS: Final = frozenset("her his its my our the their your".split())
_GENERAL: Final = frozenset(
    map(
        stem,
        """amount answer approach area aspect brand case category characteristic circumstance condition
        content date day detail difference effect event example experience factor feature figure form impact
        information issue item kind level lot medium method month name number object one order part people
        percent percentage person piece place point position problem process purpose reaction reason
        relation result role sentence sentiment set side sign situation size sort spot state status step
        style subject substance substitution technique term thing time title tool topic total transformation
        type value version way week weekday word year""".split(),
    )
)
"""The stems of nouns that say little of what is asked for."""

_NAMING: Final = frozenset("name number time type".split())
"""Those of which the word before says more: family name, blood type."""

_PLAIN: Final = frozenset(
    "actual best complete correct current exact full last main new next old original own real right same total".split()
)
"""What stands before them without saying what is asked for."""

_BEGINNING: Final = 4
"""Words of a question among which its question word is. After a longer beginning it asks within a situation."""

_MOST: Final = 5
"""Words that a noun may have before it."""


def asked_attribute(text: str) -> str | None:
    """The noun that the question asks for, as a word of `analysis.words`; None if it asks otherwise."""
    asked = words(text)
    for place, word in enumerate(asked[:_BEGINNING]):
        bare, _, ending = word.partition("'")
        following = asked[place + 1 : place + 2 + _MOST]
        if bare in {"what", "which", "who", "when"} and (ending == "s" or (following and following[0] in _BE)):
            return _after_be(following if ending == "s" else following[1:])
        if bare in {"what", "which"} and not ending:
            return _noun(_until_end(following, _AUXILIARIES)) if _has_auxiliary(following) else None
        if bare == "how" and following[:1] == ["many"]:
            return _noun(_until_end(following[1:], _AUXILIARIES)) if _has_auxiliary(following[1:]) else None
    return None


def _after_be(following: Sequence[str]) -> str | None:
    """The noun of `my blood type`, `the colour of the car`, `Ann's dentist`."""
    phrase = _until_end(following, _ENDS)
    possessors = [at for at, word in enumerate(phrase) if word in _DETERMINERS or word.endswith("'s")]
    return _noun(phrase[possessors[-1] + 1 :]) if possessors else None


def _has_auxiliary(following: Sequence[str]) -> bool:
    return any(word in _AUXILIARIES for word in following)


def _until_end(following: Sequence[str], ends: frozenset[str]) -> list[str]:
    ended = next((at for at, word in enumerate(following) if word in ends), len(following))
    return list(following[:ended])


def _noun(phrase: Sequence[str]) -> str | None:
    """The last noun of a phrase, or the word before it, if that says more; None if neither says much."""
    if not phrase or stem(phrase[-1]) not in _GENERAL:
        return phrase[-1] if phrase and phrase[-1] not in _DETERMINERS else None
    before = phrase[-2] if len(phrase) > 1 and phrase[-1] in _NAMING else None
    return None if before is None or before in _PLAIN | _DETERMINERS or stem(before) in _GENERAL else before
