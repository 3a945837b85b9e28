"""What the predicate of an English clause states. Pure.

Each rule is matched at the beginning of a predicate, after its adverbs and its negation were taken away. All rules that
match count, except that of several for one attribute only the first does.
"""

import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Final, NamedTuple

from kalito_mcp.domain.facts import ANY, Polarity
from kalito_mcp.facts.vocabulary import (
    COLORS,
    DIETS,
    END,
    FREE,
    NAME,
    ORG,
    PEOPLE,
    PLACE,
    SLOTS,
    STREET,
    VERBS,
    VERSION,
    WEEKDAY,
    WHEN,
    activity_of,
    head_of,
    named_attribute,
    plain_day,
    stems,
)
from kalito_mcp.text.analysis import stem

YES: Final = "yes"
NO: Final = "no"
_MOST_ITEMS: Final = 4


class Reading(NamedTuple):
    """What a predicate says of its subject. `thing`, if not empty, is the subject instead, or a part of it."""

    attribute: str
    value: str
    polarity: Polarity = Polarity.IS
    is_change: bool = False
    thing: str = ""


Match = re.Match[str]
Reader = Callable[[Match, bool], Iterator[Reading]]
"""From a match, and whether the sentence speaks of a change, to readings."""


def _of(attribute: str, polarity: Polarity = Polarity.IS, *, change: bool = False, value: str = "") -> Reader:
    """Read one attribute. The value is the group `v`, if there is one."""

    def read(found: Match, is_change: bool) -> Iterator[Reading]:
        yield Reading(attribute, value or found.groupdict().get("v") or ANY, polarity, change)

    return read


def _home(attribute: str) -> Reader:
    def read(found: Match, is_change: bool) -> Iterator[Reading]:
        is_past = re.match(r"(?:lived|resided|used)", found[0], re.IGNORECASE) is not None
        yield Reading(attribute, found["v"], Polarity.WAS if is_past else Polarity.IS)

    return read


def _moved(found: Match, is_change: bool) -> Iterator[Reading]:
    """To a place, or to an employer: which one is decided by what is known of the subject."""
    if found.groupdict().get("old"):
        yield Reading(ANY, found["old"], Polarity.NOT, True)
    yield Reading("move", found["v"], Polarity.IS, True)


def _left(found: Match, is_change: bool) -> Iterator[Reading]:
    yield Reading("employer", ANY, Polarity.NOT, True)
    yield Reading("colleague", NO, Polarity.IS, True)


_MARITAL: Final = ("divorc", "engaged", "separated", "widow", "single", "marri")


def _marital(found: Match, is_change: bool) -> Iterator[Reading]:
    said = found[0].lower()
    value = next(state for state in _MARITAL if state in said)
    yield Reading("marital", value, Polarity.WAS if re.match(r"w(?:as|ere) single", said) else Polarity.IS)


def _not_vegan(found: Match, is_change: bool) -> Iterator[Reading]:
    """Who eats fish is no vegetarian."""
    is_animal = found["food"].lower() not in ("cheese", "eggs", "dairy", "honey")
    for diet in ("vegan", "plant-based", *(["vegetarian"] if is_animal else [])):
        yield Reading("diet", diet, Polarity.NOT, True)


def _changed(found: Match, is_change: bool) -> Iterator[Reading]:
    """Changed the deadline from May to June."""
    thing, attribute = named_attribute(found["slot"])
    if attribute:
        yield Reading(attribute, found["v"], Polarity.IS, True, thing)


def _replaced(found: Match, is_change: bool) -> Iterator[Reading]:
    """One value for another: the old one has ended, whatever it was the value of."""
    yield Reading(ANY, found["old"], Polarity.NOT, True)


def _version(found: Match, is_change: bool) -> Iterator[Reading]:
    yield Reading("version", found["v"], thing=found["thing"] or "")


def _chosen(found: Match, is_change: bool) -> Iterator[Reading]:
    yield Reading(f"choice {stems(found['what'])}", found["v"])


def _day(found: Match, is_change: bool) -> Iterator[Reading]:
    """On Thursdays, every Thursday, or a date. On Thursday is one Thursday only, unless something changed."""
    groups = found.groupdict()
    written = groups.get("v") or groups.get("each") or ""
    is_once = re.fullmatch(WEEKDAY[:-2], written.split()[0], re.IGNORECASE) and not groups.get("each")
    if is_change or not is_once:
        yield Reading(f"day {activity_of(groups.get('act') or '')}".strip(), plain_day(written))


def _moved_day(found: Match, is_change: bool) -> Iterator[Reading]:
    yield Reading(
        f"day {activity_of(found.groupdict().get('act') or '')}".strip(), plain_day(found["v"]), is_change=True
    )


_VAGUE: Final = frozenset(map(stem, "time lot thing way day bit one something anything kind people fun idea".split()))
"""Nouns of which two need not be the same: a good time, a long day."""


def _items(found: Match, is_change: bool) -> Iterator[Reading]:
    """Drinks coffee and tea: each is a line of its own."""
    verb = VERBS[found["verb"].lower()]
    for item in re.split(r"\s+(?:and|or)\s+|,\s*", found["v"])[:_MOST_ITEMS]:
        head = head_of(item)
        is_doing = " " in item and item.split()[0].endswith("ing")
        if head and head not in _VAGUE and not is_doing:
            yield Reading(f"{verb} {head}", YES)


def _has_none(found: Match, is_change: bool) -> Iterator[Reading]:
    if head := head_of(found["v"]):
        yield Reading(f"have {head}", NO)


def _gone(found: Match, is_change: bool) -> Iterator[Reading]:
    """Sold the car."""
    if head := head_of(found["v"]):
        yield Reading(f"have {head}", NO, Polarity.IS, True)
        if head in _VEHICLES:
            yield Reading("vehicle", ANY, Polarity.NOT, True)


def _job(found: Match, is_change: bool) -> Iterator[Reading]:
    """A nurse at St Mary's."""
    if re.search(rf"(?:{_OCCUPATIONS})$", found["r"], re.IGNORECASE):
        yield Reading("employer", found["v"])
        yield Reading("role", found["r"])


_OCCUPATIONS: Final = (
    "developer|engineer|nurse|teacher|barista|florist|lawyer|doctor|designer|manager|accountant|analyst|consultant|"
    "scientist|architect|chef|cook|waiter|waitress|librarian|mechanic|electrician|plumber|carpenter|pilot|driver|"
    "journalist|editor|professor|lecturer|researcher|therapist|pharmacist|dentist|vet|tester|programmer|administrator|"
    "secretary|intern|lead|director|officer|clerk|cashier|farmer|baker|photographer|translator|tutor|paramedic"
)
_VEHICLES: Final = ("car", "truck", "van", "motorcycle", "motorbike")
_BE: Final = r"(?:am|is|are|was|were|be|been|became|become|has been|have been|has become)"
_HAVE: Final = r"(?:have |has )?"
_FROM: Final = rf"(?:from (?P<old>{NAME}) )?"
_TO: Final = rf"(?:back |over |house |home |cities )?{_FROM}(?:in)?to"
_SHIFTED: Final = r"(?:moved|rescheduled|shifted|postponed|pushed(?: back)?|extended|slipped|brought forward)"
_JOB: Final = r"(?:an? |my |the |his |her )?(?:new )?(?:job|role|position|offer)"
_RULES: Final[tuple[tuple[str, Reader], ...]] = (
    (
        rf"(?:live|lives|living|lived|reside|resides|used to live|{_HAVE}lived|{_BE} living) (?:in|at|"
        rf"on) {STREET}{END}",
        _home("address"),
    ),
    (
        rf"(?:live|lives|living|lived|resides?|resided|used to live|{_HAVE}(?:been )?liv(?:ed|ing)|"
        rf"{_BE} (?:living|based))(?: (?:here|over))? (?:in|at|near) {PLACE}{END}",
        _home("home"),
    ),
    (
        rf"(?:live|lives|living|{_BE} living) (?P<v>alone|with (?:(?:my|his|her|their|a|an|two|three) )?\w+)"
        rf"(?:{END}|(?= in (?-i:[A-Z])))",
        _of("household"),
    ),
    (rf"(?:live|lives|living|{_BE} living) in (?:an?|our|my|the) [\w -]{{2,30}}? in {PLACE}{END}", _home("home")),
    (rf"{_HAVE}(?:made the move to|settled (?:in|into [\w ]{{2,20}} in)) {PLACE}{END}", _moved),
    (rf"{_HAVE}(?:moved|relocated) {_TO} {STREET}{END}", _of("address", change=True)),
    (
        rf"(?:{_BE} |got |{_HAVE})(?:{_SHIFTED}|changed)(?: (?P<act>(?:the|my|"
        rf"our) [\w -]{{1,30}}?))? (?:from [^,;]{{1,30}} )?(?:to|until) (?P<v>{WHEN})",
        _moved_day,
    ),
    (rf"{_HAVE}(?:moved|relocated|transferred) {_TO} {PLACE}{END}", _moved),
    (rf"{_HAVE}left {PLACE}{END}", _of(ANY, Polarity.NOT, change=True)),
    (
        rf"{_HAVE}(?:left|quit)(?: (?:the|my|our|her|his|their) (?:team|company|job|firm|group|band))?(?=$|"
        rf"[,.;]| (?:and|last|this|in|entirely|yesterday|today)\b)",
        _left,
    ),
    (
        rf"{_HAVE}(?:left|quit) (?:the )?\w+(?: industry)?(?= entirely|$| industry)",
        _of("employer", Polarity.NOT, change=True),
    ),
    (
        rf"work(?:s|ing)? with (?:me|us){END}|{_BE} (?:my|our) (?:colleague|coworker|co-worker|teammate)s?{END}",
        _of("colleague", value=YES),
    ),
    (rf"(?:works?|working|{_BE} (?:working|employed)) (?:at|for|with|by) {ORG}{END}", _of("employer")),
    (rf"(?:used to work|worked) (?:at|for|with) {ORG}{END}", _of("employer", Polarity.WAS)),
    (
        rf"{_HAVE}(?:joined|joining|started (?:working )?(?:at|for|with)|began (?:working )?at|(?:was |got |"
        rf"been )?hired by|"
        rf"(?:got|took|accepted|started|landed|found) {_JOB} (?:at|with|from)) {ORG}{END}",
        _of("employer", change=True),
    ),
    (rf"{_BE} at {ORG} as of", _of("employer", change=True)),
    (
        rf"{_BE} (?:retired|unemployed|between jobs)\b|{_HAVE}retired(?=$|[,.;]| (?:last|in|this|from)\b)",
        _of("employer", Polarity.NOT, change=True),
    ),
    (
        rf"{_HAVE}(?:resigned|departed|(?:was |got |been )?(?:laid off|fired))(?: (?:from|by) (?P<v>{NAME}))?",
        _of("employer", Polarity.NOT, change=True),
    ),
    (rf"(?:works?|working|{_BE} working) as (?:an? |the )[\w -]{{2,40}}? (?:at|for|with) {ORG}{END}", _of("employer")),
    (rf"(?:works?|working|{_BE} working) as (?:an? |the )(?P<v>[\w -]{{2,40}}?)(?: at\b|{END})", _of("role")),
    (rf"(?:was |got |been )?promoted to (?P<v>[\w -]{{2,40}}?){END}", _of("role", change=True)),
    (
        rf"(?:{_BE}|{_HAVE}got|gets?) (?:single|married|engaged|divorced|separated|widowed)(?=$|[.,;]| (?:in|to|"
        rf"now|and|since|for|with|again|last|this|on)\b)",
        _marital,
    ),
    (
        rf"{_HAVE}(?:(?:filed for|finali[sz]ed|went through|got)(?: an?| my| the| their| his| her)? divorced?|"
        rf"divorced|married(?= [A-Z]| in\b| last\b|$))",
        _marital,
    ),
    (
        rf"(?:{_BE}|went|turned|eats?|follow(?:s|ed)?|switched (?:from [\w-]+ )?to|started|"
        rf"consumes?) (?:on )?(?:an? |the )?(?:strict )?"
        rf"(?P<v>{DIETS})(?=$|[.,;]| (?:diet|style|now|and|since|for|in|because|as|food|again|this|last)\b)",
        _of("diet"),
    ),
    (
        r"(?:eats?|eating|consumes?|started eating) (?:some )?(?P<food>meat|fish|chicken|beef|pork|steak|"
        r"seafood|cheese|eggs|dairy|honey)\b",
        _not_vegan,
    ),
    (r"(?:prefers?|likes?|uses?|switched to|changed to|went) (?:the )?(?P<v>[\w-]+) (?:mode|theme)\b", _of("theme")),
    (
        rf"(?:switched|changed|prefers?)(?: (?:from )?(?:{COLORS}))? ?(?:to )?(?:the color )?(?P<v>{COLORS}){END}",
        _of("favorite color", change=True),
    ),
    (
        rf"(?:changed|updated|switched|set|moved|raised|lowered|increased|bumped|extended|cut) (?:the |my |our |"
        rf"their |his |her )?"
        rf"(?P<slot>(?:[\w'-]+ ){{0,3}}?(?:{SLOTS}))(?: from [^,;]{{1,40}}?)? to {FREE}{END}",
        _changed,
    ),
    (rf"(?:reports?|reporting|{_BE} reporting) to (?P<v>(?:the )?{NAME}){END}", _of("boss")),
    (
        rf"(?:(?:is|are|{_BE} (?:on|at)|on|uses?|using|runs?|running|{_BE} (?:using|"
        rf"running)) )(?:(?P<thing>(?-i:[A-Z])[\w+#-]+) )?{VERSION}(?=$|[\s,;)])",
        _version,
    ),
    (
        rf"(?:upgraded|updated|bumped|downgraded|migrated|moved|"
        rf"switched)(?: (?P<thing>(?-i:[A-Z])[\w+#-]*(?: (?-i:[A-Z])[\w+#-]*)?))?"
        rf"(?: from [\w. ]{{1,20}}?)? to {VERSION}",
        _version,
    ),
    (
        rf"(?:upgraded|updated|bumped|downgraded|migrated|moved|switched) to (?P<thing>(?-i:[A-Z])[\w+#-]*) {VERSION}",
        _version,
    ),
    (r"(?:switched|migrated|changed|moved|converted) from (?P<old>[\w.+#-]+(?: [\w.+#-]+)?) to \w", _replaced),
    (r"replaced (?P<old>[\w.+#-]+(?: [\w.+#-]+)?) with \w", _replaced),
    (
        rf"{_HAVE}(?:decided (?:to use|to go with|on|to switch to)|agreed (?:on|to use)|will use|will go with|"
        rf"chose|uses?|using|"
        rf"{_BE} using|switched to) (?P<v>[\w.+#-]+(?: [\w.+#-]+)?) (?:for|as (?:our|the|my|its)) (?:the |our |"
        rf"my )?(?P<what>[\w -]{{2,30}}?){END}",
        _chosen,
    ),
    (
        rf"(?:{_BE}|{_HAVE}(?:downgraded|upgraded|switched|subscribed|signed up|moved)) (?:to|for|"
        rf"on) (?:the )?(?P<v>[\w-]+) (?:plan|tier|subscription)\b",
        _of("plan"),
    ),
    (
        rf"(?:{_BE} )?(?:a )?(?:registered|re-registered) (?:as )?(?:an? )?(?P<v>[A-Za-z]+){END}",
        _of("registration", change=True),
    ),
    (
        rf"(?:drives?|leases?|leasing|{_BE} (?:driving|leasing)|started (?:leasing|driving)) (?P<v>(?:an?|"
        rf"my) [\w -]{{2,40}}?){END}",
        _of("vehicle"),
    ),
    (
        rf"(?:upgraded|switched) to (?P<v>an? (?:[\w-]+ ){{0,3}}(?:truck|car|van|suv|ev|motorcycle|sedan)){END}",
        _of("vehicle", change=True),
    ),
    (rf"{_BE} (?:an?|the) (?P<r>[\w -]{{2,30}}?) (?:at|for) {ORG}{END}", _job),
    (
        rf"{_BE} (?:an?|the) (?P<v>(?:[\w-]+ ){{0,2}}(?:{_OCCUPATIONS}))(?=$|[.,;]| (?:as of|now|by|in|at|for|and)\b)",
        _of("role"),
    ),
    (
        rf"(?:{_BE}|turned|turning) (?P<v>\d{{1,3}})(?: years old)?(?=$|[.,;]| (?:now|yesterday|today|last|this|on)\b)",
        _of("age"),
    ),
    (rf"{_HAVE}(?:got )?an? new (?P<slot>{PEOPLE})(?:,| called| named|:) (?P<v>{NAME}){END}", _changed),
    (rf"commutes? by (?P<v>\w+){END}", _of("commute")),
    (rf"pays? (?:by|via|with|per) (?P<v>[\w ]{{2,30}}?){END}", _of("payment method")),
    (
        rf"(?:go(?:es)?(?: to)?|see|sees|meet|has|have|plays?|attends?|do(?:es)?|"
        rf"takes?) (?P<act>[\w -]{{2,40}}?) (?:on (?P<v>{WEEKDAY})|(?:every|each) (?P<each>{WEEKDAY}))(?!\w)",
        _day,
    ),
    (
        rf"(?:is|are|takes? place|meets?|happens?) (?:held |planned |due |set )?(?:(?:on|at|for) (?P<v>{WHEN})|"
        rf"(?:every|each) (?P<each>{WEEKDAY}))(?!\w)",
        _day,
    ),
    (rf"(?:have|has) no (?:known )?(?P<v>[\w -]{{2,40}}?){END}", _has_none),
    (
        rf"{_HAVE}(?:sold|lost|gave away|cancelled|canceled|got rid of|dropped|returned) (?:my|the|our|his|her|"
        rf"their|an?) (?P<v>[\w -]{{2,30}}?){END}",
        _gone,
    ),
    (
        rf"{_HAVE}(?:(?:started|begun|been) )?(?P<verb>{'|'.join(sorted(VERBS, key=len, reverse=True))}) "
        r"(?P<v>(?!\w{3,}ed\b|(?:given|grown|left|gone|done|taken|broken|got|lost|sold|put)\b"
        r"|(?:to|been|it|that|this|them|me|you|a lot|no)\b)[\w' /-]{2,60}?)"
        r"(?=$|[.,;:(]| (?:at|in|on|"
        r"with|for|since|every|each|"
        r"because|when|before|after|as|from|to|instead|except|again|now|named|called|who|that|which|last|this|"
        r"under|over|by|of|daily|"
        r"twice|once|regularly|per|while|during|about)\b)",
        _items,
    ),
)


@cache
def _compiled() -> tuple[tuple[re.Pattern[str], Reader], ...]:
    return tuple((re.compile(pattern, re.IGNORECASE), reader) for pattern, reader in _RULES)


_INSTEAD: Final = {"address": "place", "home": "place", "move": "place", "day": "place"}
"""Attributes of which a predicate states only one."""


def readings(predicate: str, *, is_change: bool) -> Iterator[Reading]:
    """What the predicate states, each attribute once."""
    seen: set[str] = set()
    for pattern, reader in _compiled():
        found = pattern.match(predicate)
        if found:
            read = [one for one in reader(found, is_change) if _INSTEAD.get(one.attribute, one.attribute) not in seen]
            seen.update(_INSTEAD.get(one.attribute, one.attribute.partition(" ")[0]) for one in read)
            yield from read
