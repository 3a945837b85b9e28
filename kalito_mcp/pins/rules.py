"""Rules that find what is worth a pin, and the cheap test of which of them to try. Pure.

A rule is tried if the message contains one of its words, its phrase or its opening. It applies to a sentence that
its pattern matches, and its second pattern too if it has one. The first rule that applies decides. The rules
themselves are in `pins.english`, `pins.lives` and `pins.elsewhere`.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from kalito_mcp.text.lazy_pattern import lazy


class PinKind(StrEnum):
    """What a rule finds."""

    HEALTH = "health"
    IDENTITY = "identity"
    DECISION = "decision"
    CONTACT = "contact"
    DATE = "date"
    PREFERENCE = "preference"
    WISH = "wish"
    FACT = "fact"
    TECHNICAL = "technical"
    LIKING = "liking"
    CODE = "code"
    CONCEPT = "concept"


# All below the 0.8 of a pin that somebody asked for. What does most harm when it is forgotten comes first.
IMPORTANCE: Final[Mapping[PinKind, float]] = {
    PinKind.HEALTH: 0.78,
    PinKind.IDENTITY: 0.76,
    PinKind.DECISION: 0.74,
    PinKind.CONTACT: 0.72,
    PinKind.DATE: 0.72,
    PinKind.PREFERENCE: 0.7,
    PinKind.WISH: 0.7,
    PinKind.FACT: 0.66,
    PinKind.TECHNICAL: 0.66,
    PinKind.LIKING: 0.6,
    PinKind.CODE: 0.58,
    PinKind.CONCEPT: 0.56,
}


DOUBT: Final = lazy(
    r"\b(?:if|unless|suppose|supposing|imagine|pretend|hypothetically|might|maybe|perhaps|possibly|probably|could|"
    r"wish|wished|wonder|wondering|hope|hoping|(?:not|n't) (?:really )?(?:sure|certain)|n't know|thinking (?:of|about)|"
    r"considering|should (?:i|we)|would (?:i|we|you)|want(?:ed)? to (?:know|ask)|for example|e\.g|joking|"
    r"kidding|used to be|said|says|told|asked|asks|claims|according to)\b",
    re.IGNORECASE,
)
"""English words of doubt, and of others' words."""


@dataclass(frozen=True, slots=True, eq=False)
class PinRule:
    """One shape, tried on a message with one of its words, its phrase or its opening. Empty ones match no message."""

    kind: PinKind
    words: tuple[str, ...]
    phrase: str
    opening: Callable[[], re.Pattern[str]] | None
    pattern: Callable[[], re.Pattern[str]]
    also: Callable[[], re.Pattern[str]] | None
    subject: str
    """What there is only one of: a newer pin about it replaces the older. The group `of` in the pattern, if there is
    one, says of what. Empty: there may be many."""
    doubt: Callable[[], re.Pattern[str]]
    """A sentence with one of these words is not pinned."""


@dataclass(frozen=True, slots=True)
class RuleSet:
    """The rules for one role, looked up by the words, phrases and openings in a message.

    Most messages match no rule, so the lookup must cost next to nothing. That is why words are compared as written,
    in lower case or capitalised, and phrases and openings are few.
    """

    rules: tuple[PinRule, ...]
    by_word: Mapping[str, tuple[PinRule, ...]]
    by_phrase: tuple[tuple[str, PinRule], ...]
    by_opening: tuple[tuple[Callable[[], re.Pattern[str]], PinRule], ...]

    def worth_trying(self, text: str) -> list[PinRule]:
        """The rules that may apply to the message, in their order; usually none."""
        flat = text.replace("’", "'")
        spaced = flat.replace(",", " ").replace(".", " ").replace("!", " ").replace('"', " ").replace("(", " ")
        # An instruction is recognised by its capital, so the first word of the message is given one.
        words = (spaced[:1].upper() + spaced[1:]).split()
        found: list[PinRule] = []
        if not self.by_word.keys().isdisjoint(words):
            for word in words:
                found.extend(self.by_word.get(word, ()))
        for phrase, rule in self.by_phrase:
            if phrase in flat:
                found.append(rule)
        for opening, rule in self.by_opening:
            if opening().search(flat):
                found.append(rule)
        return [rule for rule in self.rules if rule in found] if found else found


def shape(
    kind: PinKind,
    pattern: str,
    *,
    words: str = "",
    phrase: str = "",
    opening: str = "",
    also: str = "",
    subject: str = "",
    doubt: Callable[[], re.Pattern[str]] = DOUBT,
) -> PinRule:
    """A rule. Its words in lower case also match their capitalised forms."""
    forms = tuple(dict.fromkeys(form for word in words.split() for form in (word, word[0].upper() + word[1:])))
    return PinRule(
        kind,
        forms,
        phrase,
        lazy(opening) if opening else None,
        lazy(pattern, re.IGNORECASE),
        lazy(also, re.IGNORECASE) if also else None,
        subject,
        doubt,
    )


def rule_set(rules: tuple[PinRule, ...]) -> RuleSet:
    """Index the rules by their words, phrases and openings."""
    by_word: dict[str, tuple[PinRule, ...]] = {}
    for rule in rules:
        for word in rule.words:
            by_word[word] = (*by_word.get(word, ()), rule)
    by_phrase = tuple((rule.phrase, rule) for rule in rules if rule.phrase)
    by_opening = tuple((rule.opening, rule) for rule in rules if rule.opening)
    return RuleSet(rules, by_word, by_phrase, by_opening)
