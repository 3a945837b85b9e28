"""What an English clause says has ended, named by its value: switched from X, quit X, sold the X, done with X. Pure.

Whatever the value was a value of, its statement has ended (`facts.lines.names`).
"""

import re
from collections.abc import Iterator
from typing import Final

from kalito_mcp.facts.vocabulary import WEEKDAY, stems
from kalito_mcp.text.lazy_pattern import lazy

_MINE: Final = r"(?:(?:my|the|our|all my|all our|any|an?|his|her|their|this|that|using|being(?: an?)?) )?"
_UNTIL: Final = (
    r"(?=\s*$|\s*[,.;:!?(]| (?:on|in|at|after|for|from|to|with|since|because|last|this|yesterday|today|and|but|when|so|"
    r"already|over|as|now|completely|altogether|entirely|instead|until|by|during|which|who|too|again|as well|lol|down|"
    r"up|early|any|before|months?|weeks?|right|thing|is|are|it|we|these|works?|every|each)\b)"
)
_V: Final = rf"{_MINE}(?P<v>[\w.+#&/'-]+(?: [\w.+#&/'-]+){{0,3}}?){_UNTIL}"
_HAVE: Final = r"(?:have |has |had )?"
_GET: Final = r"(?:(?:was|were|got|am|is|are|have been|has been) )?"
_WE: Final = r"(?:(?:i|we|they|he|she|you|my doctor|my team|the team|it) )"
_CHANGED: Final = (
    "switched|migrated|moved|changed|converted|upgraded|updated|bumped|downgraded|went|raised|lowered|cut|shifted|"
    "rescheduled|postponed|pushed|extended|renamed|transitioned|ported|shortened"
)
_DROPPED: Final = (
    "ditched|dropped|abandoned|scrapped|removed|retired|decommissioned|binned|axed|threw out|thrown out|kicked out|"
    "got rid of|gotten rid of|get rid of|phased out|turned off|gave up on|given up on|gave up|given up|moved on from|"
    "moved away from|moved off|switched away from|went off|gone off|"
    "pulled out of|dropped out of|withdrew from|cancelled|canceled|"
    "unsubscribed from|closed (?:my|our|the) accounts? (?:with|at)|sold|traded in|donated|lost|returned|parted with|"
    "broke up with|split up with|split from|separated from|divorced|stopped using|stopped seeing|quit|"
    "quit using|moved out of|stepped down as|resigned from|resigned as|retired from|decided against|voted against|"
    "outgrew|swore off|weaned off|came off|threw away|gave away|scrubbed|rejected|uninstalled|deleted|"
    r"(?:handed|put|gave|given|turned) in (?:my|his|her|our|their) (?:notice|resignation) (?:at|to|with)|"
    r"(?:gave|given) (?:my |his |her )?notice (?:at|to)|moved (?:everything|all of it|it all) (?:off|away from|out of)"
)
_LEAVING: Final = r"(?:let go|fired|laid off|sacked|made redundant|dismissed) (?:by|from|at)"

_PREDICATES: Final[tuple[str, ...]] = (
    rf"(?:{_HAVE}|{_GET})(?:{_CHANGED})(?P<thing> (?!my |his |her |their )[\w.+#' -]{{1,30}}?)?,? (?:away )?from {_V}",
    rf"{_HAVE}(?:replaced|swapped(?: out)?|traded|substituted|exchanged) {_V}",
    rf"{_HAVE}(?:{_DROPPED}) {_V}",
    rf"{_HAVE}(?:(?:am|are|is) )?(?:all )?(?:(?:done|finished|through) with|finished(?: reading| watching| playing)?|"
    rf"completed) (?:(?:the )?(?P<v>(?-i:[A-Z])[\w.&'-]*(?: (?-i:[A-Z])[\w.&'-]*){{0,3}})|"
    rf"being an? (?P<role>[\w-]+)){_UNTIL}",
    rf"{_GET}{_LEAVING} {_V}",
    rf"(?:am|is|are) (?:separated|divorced) from {_V}",
    rf"{_HAVE}(?:gave|given|sold) {_V} (?:away|to)\b",
    rf"{_HAVE}(?:had to )?put {_V} (?:down|to sleep)\b",
    rf"{_HAVE}(?:took|taken|weaned) me off {_V}",
    rf"{_HAVE}left {_MINE}(?P<v>(?-i:[A-Z])[\w.&'-]*(?: (?-i:[A-Z])[\w.&'-]*){{0,3}})"
    r"(?=\s*$|[,.;]| (?:after|in (?:\d{4}|[A-Z])|for good|last|this|to join|because)\b)",
)
_ANYWHERE: Final[tuple[str, ...]] = (
    rf"\b(?:no more|goodbye,?|farewell,?|bye bye,?) {_V}",
    rf"\b(?:forget|ignore|disregard|scrap|scratch) (?:what i said about|(?:the|that|my) (?:thing|part|bit) about) {_V}",
    r"\b(?:scrap|scratch) the (?P<v>[\w-]+(?: [\w-]+){0,2}) (?:thing|idea|plan)\b",
    r"\bnot allergic to (?P<v>[\w ]{2,30}?) after all\b",
    r"\blast day (?:at|with) (?P<v>(?-i:[A-Z])[\w.&'-]*(?: (?-i:[A-Z])[\w.&'-]*){0,3})",
)
_PARTED: Final[tuple[str, ...]] = (
    r"\b(?:me|i|we) and (?P<v>(?-i:[A-Z])[\w-]+) (?:have )?(?:broke up|split(?: up)?|broken up|parted ways)\b",
    r"\b(?P<v>(?-i:[A-Z])[\w-]+) and (?:me|i|we) (?:have )?(?:broke up|split(?: up)?|broken up|parted ways)\b",
)
_INSTEAD: Final[tuple[str, ...]] = (rf"\b(?:instead of|rather than|in place of) (?:on )?{_V}",)
_LASTING: Final = lazy(
    r"\b(?:from now on|from here on|after all|now|nowadays|these days|going forward|ended up|switched|decided|"
    r"any ?more|chose|went with|as of|always)\b",
    re.IGNORECASE,
)
_ONCE: Final = lazy(r"\b(?:today|tonight|yesterday|this (?:morning|time|once)|last night|for once)\b", re.IGNORECASE)
_DENIED: Final[tuple[str, ...]] = (
    rf"(?:^|,? )not (?:on |at |in )?(?P<v>{WEEKDAY}|\d[\w.:]*|(?-i:[A-Z])[\w.+#-]*)(?=\s*$|\s*[,.;!])",
)
_SUBJECTS: Final[tuple[str, ...]] = (
    rf"(?:^|, ){_MINE}(?P<v>[\w.+#-]+(?: [\w.+#-]+){{0,2}}?)(?: code)?(?:'s| is| are)(?: all)? "
    r"(?:out(?=\s*$|[,.;])|gone\b(?! to)|history\b|no longer\b|not (?:my|our)\b.*any ?more|off the table)",
    rf"(?:^|, ){_MINE}(?P<v>[\w.+#-]+(?: [\w.+#-]+){{0,2}}?) (?:is not|isn't|are not|aren't|was not|wasn't) "
    r"(?:my|our)\b.*\b(?:any ?more|any longer)",
    rf"(?:^|, )(?P<v>{WEEKDAY}) (?:do not|don't|does not|doesn't|no longer) works?\b.*",
    rf"(?:^|, ){_MINE}(?P<v>[\w-]+(?: [\w-]+)?) (?:(?:has|have) )?(?:got|was|were|been) (?:stolen|totalled|"
    r"written off|sold|scrapped|dropped|replaced)\b",
    r"(?:^|, )(?P<v>(?-i:[A-Z])[\w-]+) (?:has |have )?moved out\b",
    r"(?:^|, )(?P<v>[\w-]+) (?:got|was|has been) replaced by\b",
)
_CUES: Final = frozenset(
    """switched migrated moved changed converted upgraded updated bumped downgraded went raised lowered cut shifted
    rescheduled postponed pushed extended renamed transitioned ported shortened replaced swapped traded substituted
    exchanged ditched dropped abandoned scrapped removed retired decommissioned binned axed threw thrown kicked got
    gotten get phased turned gave given gone finished completed pulled withdrew cancelled canceled unsubscribed closed
    sold donated lost returned parted broke broken split separated divorced stopped quit stepped resigned decided voted
    outgrew swore weaned came rejected uninstalled deleted handed put done through fired let laid sacked made took taken
    left instead rather place more goodbye farewell bye forget ignore disregard scrap scratch not last out history
    longer table aren't isn't don't doesn't wasn't stolen dismissed""".split()
)
_WORD: Final = lazy(r"[a-z]+(?:'t)?")
_VAGUE: Final = frozenset(
    """it that this them these those him her one thing stuff everything all something anything nothing job work home
    house team company school city project place side way time day week bit lot plan idea""".split()
)
_BAD_FIRST: Final = frozenset("to by being it them him her that what how why if where when you me us".split())


def _any_of(patterns: tuple[str, ...]) -> "list[re.Pattern[str]]":
    return [re.compile(pattern, re.IGNORECASE) for pattern in patterns]


_COMPILED: Final = {
    "predicate": _any_of(_PREDICATES),
    "anywhere": _any_of(_ANYWHERE),
    "whole": _any_of(_SUBJECTS),
    "denied": _any_of(_DENIED),
    "instead": _any_of(_INSTEAD),
    "parted": _any_of(_PARTED),
}


def may_end(text: str) -> bool:
    """Whether a text has any of the words that these expressions begin with."""
    return not _CUES.isdisjoint(_WORD().findall(text.lower()))


def ended_by_predicate(predicate: str) -> Iterator[str]:
    """The values that a predicate in the affirmative ends."""
    yield from _values("predicate", predicate, starts=True)


def ended_by_words(whole: str, *, is_change: bool) -> Iterator[str]:
    """The values that a clause ends wherever it says so: instead of X; if something changed, also not X."""
    yield from _values("anywhere", whole, starts=False)
    if _LASTING().search(whole) and not _ONCE().search(whole):
        yield from _values("instead", whole, starts=False)
    if is_change:
        yield from _values("denied", whole, starts=False)


def parted_from(sentence: str) -> Iterator[str]:
    """With whom the speaker is no longer together."""
    if " and " in sentence:
        yield from _values("parted", sentence, starts=False)


def ended_subjects(whole: str) -> Iterator[str]:
    """The values that a clause is about, and which it says are over: X is out, X is gone."""
    yield from _values("whole", whole, starts=False)


def _values(kind: str, text: str, *, starts: bool) -> Iterator[str]:
    for pattern in _COMPILED[kind]:
        found = pattern.match(text) if starts else pattern.search(text)
        if found is None:
            continue
        value, thing = (found["v"] or found["role"]).strip(" .,"), (found.groupdict().get("thing") or "").strip()
        if value.split()[0].lower() in _BAD_FIRST or value.lower().removeprefix("the ") in _VAGUE or not stems(value):
            continue
        is_number = value[0].isdigit()
        yield f"{thing} {value}" if is_number and thing and thing[0].isupper() else value
