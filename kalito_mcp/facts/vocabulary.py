"""Pieces of the English patterns of statements, and the names of attributes. Pure."""

import re
from typing import Final

from kalito_mcp.text.analysis import STOP_WORDS, stem, words
from kalito_mcp.text.lazy_pattern import lazy

WEEKDAY: Final = r"(?:mon|tues|wednes|thurs|fri|satur|sun)days?"
MONTH: Final = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sep(?:tember)?|oct(?:ober)?|"
    r"nov(?:ember)?|dec(?:ember)?)"
)
WHEN: Final = (
    rf"(?:the )?(?:{WEEKDAY}(?:(?: at| ,)? \d{{1,2}}(?::\d\d)?(?: ?[ap]m)?)?|{MONTH} \d{{1,2}}(?:st|nd|rd|th)?|"
    rf"\d{{1,2}}(?:st|nd|rd|th)? (?:of )?{MONTH}|\d{{1,2}}(?::\d\d| ?[ap]m)\b(?: ?[ap]m)?|\d{{4}}-\d\d-\d\d)"
)
COLORS: Final = (
    "red|blue|green|crimson|black|white|purple|amber|yellow|magenta|brown|silver|teal|orange|pink|gray|grey|violet|"
    "indigo|turquoise|gold|beige|navy|maroon|lavender|cyan"
)
DIETS: Final = (
    "vegetarian|vegan|pescatarian|keto|ketogenic|paleo|gluten-free|carnivore|mediterranean|omnivore|omnivorous|"
    "low-carb|dairy-free|raw food|halal|kosher|plant-based"
)
PEOPLE: Final = (
    "boss|manager|supervisor|team lead|landlord|landlady|dentist|doctor|therapist|roommate|flatmate|mentor|coach|"
    "wife|husband|girlfriend|boyfriend|fiance|fiancee|partner|accountant|lawyer|vet|trainer|tutor|piano teacher"
)
SLOTS: Final = (
    f"{PEOPLE}|name|age|phone number|phone|number|email|e-mail|email address|home address|address|birthday|username|"
    "nickname|title|job|job title|employer|city|car|phone plan|plan|budget|timezone|time zone|version|deadline|"
    "release date|due date|launch date|price|rate|port|editor|ide|shell|operating system|laptop|status|owner|capital|"
    "payment method|database|framework|language|theme|password manager|weight|height|salary|rent|bank|gym|school|"
    "insurance|size|goal|target|start date|end date|diet|time|day|meeting time|office|desk|room|venue|location|color|"
    "colour|commute|instrument|major|branch|provider|cloud provider|browser|shift|limit|timeout|capacity|party"
)
ALIASES: Final = {
    "manager": "boss",
    "supervisor": "boss",
    "team lead": "boss",
    "e-mail": "email",
    "email address": "email",
    "phone number": "phone",
    "number": "phone",
    "home address": "address",
    "colour": "color",
    "time zone": "timezone",
    "job title": "role",
    "job": "role",
    "title": "role",
    "city": "home",
    "due date": "deadline",
    "landlady": "landlord",
    "flatmate": "roommate",
    "wife": "spouse",
    "husband": "spouse",
    "ide": "editor",
}
ADVERB: Final = (
    "now|nowadays|just|recently|currently|finally|also|still|already|really|officially|actually|definitely|permanently|"
    "mostly|always|usually|normally|exclusively|only|directly|happily|strictly|fully|completely|lately|"
    "both|all|even|firmly|entirely|newly|basically"
)
ADVERBS: Final = lazy(rf"\b(?:{ADVERB})\b(?! (?:in|from) \d)\s*", re.IGNORECASE)
NEGATIONS: Final = lazy(
    r"^(?:(?:do|does|did|am|is|are|was|were|has|have|had|can|will)\s+)?"
    r"(?:not|no longer|never)\s+(?:(?:any ?more|longer)\s+)?(?:be |been )?"
    r"|^(?:stopped|stop|quit|given up|gave up|give up|ceased|have stopped|has stopped|have quit|"
    r"has quit)\s+(?=\w+ing\b)"
    r"|^(?:refuses?|declines?)\s+to\s+",
    re.IGNORECASE,
)
NO_MORE: Final = lazy(r",?\s*\b(?:not )?(?:any ?more|any longer)\b", re.IGNORECASE)
END: Final = (
    r"(?=$|[.,;:(]| (?:since|from|until|till|with|for|as|in (?:\d{4}|(?:the )?(?:spring|summer|autumn|fall|winter)|"
    + MONTH
    + r")|last|this|next|because|"
    r"(?:a|two|three|four|five|six|a few|some|\d+) (?:days?|weeks?|months?|years?)|"
    r"after|before|when|where|who|which|that|on \d|at the|every|each|now|anymore|any more|and|but|or|to|permanently|"
    r"again|instead|except|unless|over|under|by|around|during|today|yesterday|ago|strictly|while|so|directly|rather)\b)"
)
NAME: Final = r"(?-i:[A-Z0-9ÀÖØ-Þ][\w.&'/-]*)(?:[ ](?-i:(?:of |de |la |am |the )?[A-Z0-9ÀÖØ-Þ][\w.&'/-]*)){0,4}"
PLACE: Final = rf"(?P<v>(?:the )?{NAME})"
ORG: Final = (
    rf"(?P<v>(?:the )?{NAME}|(?:an?|the) (?:[\w-]+ ){{0,4}}?(?:lab|labs|startup|start-up|company|nonprofit|firm|bank|"
    r"agency|university|college|school|hospital|studio|fund|restaurant|bakery|clinic|museum|library|shop|consultancy))"
)
STREET: Final = (
    r"(?P<v>(?:\d{1,5}[a-z]? )(?-i:[A-Z][\w'.-]*)(?: (?-i:[A-Z][\w'.-]*)){0,3}|(?-i:[A-Z][\w'-]*) "
    r"(?:street|avenue|road|lane|drive|square|boulevard|way|court)(?: \d{1,5})?)"
)
FREE: Final = r"(?P<v>[^,;()]{1,60}?)"
VERSION: Final = r"(?:version |release |v\.? ?)?(?P<v>\d+(?:\.\d+)+[\w.-]*|(?<=version )\d+|(?<= v)\d+)"

VERBS: Final = {
    form: base
    for base, forms in {
        "drink": "drink drinks drinking",
        "eat": "eat eats eating",
        "smoke": "smoke smokes smoking",
        "like": "like likes love loves enjoy enjoys loving liking enjoying",
        "hate": "hate hates dislike dislikes",
        "have": "have has own owns adopted bought got having owning keep keeps",
        "speak": "speak speaks speaking",
        "play": "play plays playing",
        "need": "need needs",
        "practice": "practice practices practicing",
        "attend": "attend attends attending",
        "take": "take takes taking",
        "teach": "teach teaches teaching",
        "study": "study studies studying",
        "learn": "learn learns learning",
        "watch": "watch watches watching",
        "use": "use uses using",
        "lead": "lead leads leading",
    }.items()
    for form in forms.split()
}
"""The verb of an attribute with many values, by its forms."""

_SLOT_WORDS: Final = lazy(
    rf"(?:(?:the|my|our|this|current|new|latest|own|his|her|their|main|primary) )*(?P<thing>(?:[\w'./-]+ )*?)"
    rf"(?P<slot>{SLOTS})",
    re.IGNORECASE,
)
_FAVORITE: Final = lazy(
    r"(?:(?:the|my|our|this|current|new) )*(?P<thing>(?:[\w'./-]+ )*?)(?:all-time )?"
    r"(?:favou?rite|preferred|go-to) (?P<noun>[\w -]{2,30})",
    re.IGNORECASE,
)
_INSIDE: Final = lazy(r"\b(?:my|our|the|his|her|their|a|an)\b", re.IGNORECASE)
"""In front of a named attribute, these begin another phrase: losing my job."""

_LESSON: Final = frozenset("lesson class session practice training course".split())


def named_attribute(phrase: str) -> tuple[str, str]:
    """What a phrase names, as the thing and its attribute: `the API version` is the version of API. Both are empty if
    it names none."""
    favorite = _FAVORITE().fullmatch(phrase)
    if favorite:
        noun = stems(favorite["noun"].lower().replace("colour", "color"))
        return favorite["thing"].strip(), f"favorite {noun}"
    found = _SLOT_WORDS().fullmatch(phrase)
    if not found or _INSIDE().search(found["thing"]):
        return "", ""
    slot = found["slot"].lower()
    return found["thing"].strip(), ALIASES.get(slot, slot)


def stems(phrase: str) -> str:
    """The stemmed words of a phrase without function words."""
    return " ".join(stem(word.partition("'")[0]) for word in words(phrase) if word not in STOP_WORDS)


def head_of(phrase: str) -> str:
    """The stem of the last word of a noun phrase; empty if it has none."""
    return stems(phrase).rpartition(" ")[2]


def activity_of(phrase: str) -> str:
    """What is done, without words such as lesson: `the swimming class` is `swim`."""
    return " ".join(word for word in stems(phrase).split() if word not in _LESSON and word != "go")


def plain_day(written: str) -> str:
    """A weekday in the singular; anything else as it is."""
    return written[:-1] if written.lower().endswith("days") else written
