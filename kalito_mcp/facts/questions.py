"""Which attribute of which subject a question asks for: "Where does Ann work?". Pure. English."""

import re
from functools import cache
from typing import Final, NamedTuple

from kalito_mcp.domain.facts import USER_SUBJECT
from kalito_mcp.facts.vocabulary import DIETS, VERBS, activity_of, head_of, named_attribute
from kalito_mcp.text.analysis import fold

_MAX_CHARS: Final = 200
"""Of a question. A longer one tells more than it asks."""


class Asked(NamedTuple):
    """A subject, and the attributes that answer the question."""

    subject: str
    attributes: tuple[str, ...]


_PERSON: Final = r"i|we|the user|user|the (?:customer|patient|client)|(?-i:[A-Z])[\w.-]*(?: (?-i:[A-Z])[\w.-]*)?"
_WHO: Final = rf"(?P<who>{_PERSON})"
_WHOSE: Final = rf"(?P<who>my|our|(?:{_PERSON})'s)"
_AUX: Final = r"(?:do|does|did|am|is|are|was|were|has|have)"
_SOON: Final = r"(?: (?:currently|now|still|actually|mainly))?"
_WHAT: Final = r"\b(?:what|which|who)(?:'s| is| are| was)? "
_PATTERNS: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    (rf"\bwhere {_AUX} {_WHO}{_SOON} (?:live|living|reside|based)\b", ("address", "home")),
    (rf"{_WHAT}{_WHOSE}{_SOON} (?:current |home )?(?:address|city|place of residence|home)\b", ("address", "home")),
    (rf"\b(?:where|who) {_AUX} {_WHO}{_SOON} (?:work|working|employed)\b", ("employer",)),
    (rf"\bwhat {_AUX} {_WHO}{_SOON} do for (?:work|a living)\b", ("employer", "role")),
    (rf"\b{_AUX} {_WHO}{_SOON} (?:work|working) (?:at|for)\b", ("employer",)),
    (rf"{_WHAT}{_WHOSE}{_SOON} (?:current )?(?:job|employer|company|occupation|profession)\b", ("employer", "role")),
    (rf"\b{_AUX} {_WHO}{_SOON} (?:married|single|engaged|divorced)\b", ("marital",)),
    (rf"{_WHAT}{_WHOSE}{_SOON} (?:current )?(?:marital|relationship) status\b", ("marital",)),
    (rf"{_WHAT}{_WHOSE}{_SOON} (?:current )?diet\b", ("diet",)),
    (rf"\b{_AUX} {_WHO}{_SOON} (?:an? )?(?:{DIETS})\b", ("diet",)),
    (rf"\b(?:what|which) (?:theme|mode) {_AUX} {_WHO}\b", ("theme",)),
    (rf"\b(?:what|which) (?:plan|tier|subscription) {_AUX} {_WHO}\b", ("plan",)),
    (rf"\bwhom? {_AUX} {_WHO}{_SOON} report", ("boss",)),
    (rf"\b(?:what|which) (?:car|vehicle) {_AUX} {_WHO}\b", ("vehicle",)),
    (rf"\bwhat {_AUX} {_WHO}{_SOON} driv(?:e|ing)\b", ("vehicle", "commute")),
    (rf"{_WHAT}{_WHOSE}{_SOON} (?:current )?(?:political )?(?:registration|party)\b", ("registration",)),
)
_DAY: Final = (
    rf"\b(?:what|which|on what|on which) days? {_AUX} {_WHO}{_SOON} (?P<act>[\w -]{{2,40}}?)[?.! ]*$",
    rf"\bwhen {_AUX} {_WHO}{_SOON} (?P<act>(?:go|have|take|play|attend) [\w -]{{2,40}}?)[?.! ]*$",
)
_SLOT: Final = (
    rf"{_WHAT}{_WHOSE}{_SOON} (?P<slot>[\w' -]{{2,40}}?)(?: now| at the moment| currently| these days)?[?.! ]*$"
)
_ITEM: Final = (
    rf"\b{_AUX} {_WHO}{_SOON} (?P<verb>have|own|use|drink|eat|speak|play|smoke|like|need) (?:an? |any |the )?"
    r"(?P<v>[\w -]{2,30}?)(?: any ?more| now)?[?.! ]*$"
)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


def asked_fact(query: str) -> Asked | None:
    """The subject and attributes that a question asks for; None if it asks for something else."""
    if len(query) > _MAX_CHARS:
        return None
    plain = " ".join(query.replace("’", "'").split())
    for pattern, attributes in _PATTERNS:
        found = _compiled(pattern).search(plain)
        if found:
            return Asked(_subject(found["who"]), attributes)
    for pattern in _DAY:
        found = _compiled(pattern).search(plain)
        if found:
            return Asked(_subject(found["who"]), (f"day {activity_of(found['act'])}",))
    found = _compiled(_SLOT).search(plain)
    if found:
        thing, attribute = named_attribute(found["slot"].removeprefix("current "))
        return Asked(_subject(found["who"]), (attribute,)) if attribute and not thing else None
    found = _compiled(_ITEM).search(plain)
    if found and (head := head_of(found["v"])):
        return Asked(_subject(found["who"]), (f"{VERBS[found['verb'].lower()]} {head}",))
    return None


def _subject(who: str) -> str:
    """As the statements name it."""
    bare = fold(who).removesuffix("'s").removeprefix("the ")
    return USER_SUBJECT if bare in ("i", "we", "my", "our", "user") else bare
