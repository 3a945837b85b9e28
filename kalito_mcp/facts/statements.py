"""What a text states about things: subject, attribute, value, and where in the text. Pure.

Only what is stated as true: no questions, conditions, plans, quotes or code (`clauses`). First person means the
speaker. English is read by its grammar (`english`), other languages by patterns of the commonest attributes
(`other_languages`).
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from kalito_mcp.domain.facts import ANY, USER_SUBJECT, Polarity, Statement
from kalito_mcp.facts.attributes import HOLDS, WISH, is_multiple
from kalito_mcp.facts.clauses import Clause, clauses, is_unsure, mask, sentences
from kalito_mcp.facts.endings import ended_by_predicate, ended_by_words, ended_subjects, may_end, parted_from
from kalito_mcp.facts.english import NO, YES, Reading, readings
from kalito_mcp.facts.holdings import held
from kalito_mcp.facts.other_languages import foreign_statements
from kalito_mcp.facts.vocabulary import ADVERBS, NEGATIONS, NO_MORE, named_attribute, stems
from kalito_mcp.facts.wishes import ended_wish, may_wish, wish_of
from kalito_mcp.text.analysis import fold
from kalito_mcp.text.lazy_pattern import lazy

HERE: Final = "@here"
"""Begins a subject that means a thing of its session: `the deadline`."""

RULES_VERSION: Final = 2
"""Stored with the facts. Opening a database with those of other rules rebuilds them."""

_MOST: Final = 12
"""Statements of one text. A longer text tells a story rather than facts."""

_FIRST: Final = frozenset("i we me us user".split())
_POSSESSIVE: Final = frozenset(("my", "our", "user's", "users"))
_NOBODY: Final = frozenset(
    """it this that these those there he she they you who which what everyone everybody someone somebody nobody
    people one anyone here something everything nothing him her them and or as to for of by with from yesterday
    today tomorrow please""".split()
)
_NAMES: Final = lazy(r"[A-Z][\w.@-]*(?: [A-Z][\w.-]*){0,2}(?:(?:, | and |, and )[A-Z][\w.-]*(?: [A-Z][\w.-]*){0,2})*")
_BETWEEN_NAMES: Final = lazy(r", and |, | and ")
_IS: Final = lazy(
    r"(?:is|are|was|changed to|became|has changed to|has become|=|moved to|is called)\s+(.+)", re.IGNORECASE
)
_OF: Final = lazy(r"(?:the )?(?P<slot>[\w -]{2,30}?) (?:of|for) (?P<thing>.+)", re.IGNORECASE)
_USED_TO: Final = lazy(r"used to (?!live|work)", re.IGNORECASE)
_VALUE_END: Final = lazy(
    r"(?=\s(?:since|because|as of|instead|from now on|anymore|any more|these days|so|if|when|after|before|who|"
    r"which|that|"
    r"but|and (?:not|no)|not|rather than|until|starting|for now|too|again|by the way|permanently)\b|[,;()]|\.(?:\s|$))",
    re.IGNORECASE,
)
_OURS: Final = lazy(
    r"(?:our|the|this) (?:[\w-]+ ){0,2}(?:project|services?|app|apps|api|servers?|blog|site|website|backend|frontend|"
    r"product|system|platform|repo|codebase|pipeline|builds?|database|backups?|shop|stack|tracker|code|library|cli|"
    r"team|tests?|deployment|hosting|cluster|worker|bot|proxy|queue|cache|editor|crm)",
    re.IGNORECASE,
)
_WITHIN: Final = lazy(
    r"(?:(?:for|in|on|at|as|with|since|yesterday|today|so|after|big news|then|last|this|by) .*|"
    r"so |then |team )\b(?:I|we)"
    r"|(?:the |our )?team|[A-Z]\w+ and I",
    re.IGNORECASE,
)
_TAKEN_BACK: Final = lazy(
    r"\s*(?:please |ok,? |oh,? )*(?:forget|ignore|disregard|scratch|scrap) (?:what i said|the|that)\b", re.IGNORECASE
)
_ARTICLE: Final = lazy(r"^(?:an?|the|to|on|at|in|called|named|about|only)\s+", re.IGNORECASE)
_MAX_VALUE: Final = 60
_MAX_VALUE_WORDS: Final = 7
_QUALIFIED: Final = frozenset("that it why how what when where being having important good bad great".split())


def statements(text: str, speaker: str | None = None) -> list[Statement]:
    """The statements of a text, in order; of a speaker with this name, who says `I`."""
    me = fold(speaker) if speaker else USER_SUBJECT
    masked = mask(text)
    found: list[Statement] = []
    for start, sentence in sentences(masked):
        foreign = list(foreign_statements(start, sentence, me))
        if foreign:
            found += foreign
        else:
            parts = list(clauses(start, sentence))
            found += [*_remarks(start, sentence, me, has_clauses=bool(parts)), *_english(parts, me)]
        if len(found) >= _MOST:
            break
    return list(dict.fromkeys(found))[:_MOST]


def _english(parts: Sequence[Clause], me: str) -> list[Statement]:
    return [
        _statement(subject, reading, clause)
        for clause in parts
        for subject, reading in (*_readings(clause, me), *_endings(clause, me))
        if subject and value_of(reading.value)
    ]


def _remarks(start: int, sentence: str, me: str, *, has_clauses: bool) -> list[Statement]:
    """What a sentence states that has no subject and verb: goodbye Cork; always answer in French."""
    if not (may_wish(sentence) or may_end(sentence)):
        return []
    is_taken_back = _TAKEN_BACK().match(sentence) is not None
    if is_unsure(sentence) and not is_taken_back:
        return []
    wishes = [] if (wish := wish_of(sentence)) is None else [wish]
    begin = start + len(sentence) - len(sentence.lstrip())
    whole = Clause(
        "", "", is_change=False, start=begin, end=start + len(sentence.rstrip(" .!")), whole=sentence.strip()
    )
    ended = [*ended_wish(sentence), *parted_from(sentence)]
    is_read = bool(wishes) or (not is_taken_back and has_clauses)
    if not is_read and may_end(whole.whole):
        ended += list(ended_by_words(whole.whole, is_change=True))
    return [_statement(me, one, whole) for one in (*map(_ended, ended), *(Reading(WISH, wish) for wish in wishes))]


def _statement(subject: str, reading: Reading, clause: Clause) -> Statement:
    return Statement(
        subject,
        reading.attribute,
        value_of(reading.value),
        reading.value,
        clause.start,
        clause.end,
        reading.polarity,
        reading.is_change or clause.is_change,
    )


def value_of(written: str) -> str:
    """A value as it is compared: folded, without articles, white space and punctuation at its ends."""
    if written == ANY:
        return ANY
    return " ".join(_ARTICLE().sub("", fold(written).strip(" .,;:!\"'")).split())


def _readings(clause: Clause, me: str) -> Iterator[tuple[str, Reading]]:
    predicate, negated = _without_negation(clause.predicate)
    is_past = _USED_TO().match(predicate) is not None
    if is_past:
        predicate = predicate[len("used to ") :]
    named = list(_named(clause.subject, predicate, me))
    if named:
        yield from ((subject, _settled(one, negated=negated, is_past=is_past)) for subject, one in named)
        return
    for subject in _subjects(clause.subject, me):
        read = list(readings(predicate, is_change=clause.is_change))
        for one in read:
            owner, settled = _owner(subject, one, me), _settled(one, negated=negated, is_past=is_past)
            yield owner, settled
        told = {one.attribute.rpartition(" ")[2] for one in read} | {stems(one.value) for one in read}
        for value in held(predicate):
            if value not in told:
                yield _held(clause, subject, value, me, is_ended=negated or is_past)


def _held(clause: Clause, subject: str, value: str, me: str, *, is_ended: bool) -> tuple[str, Reading]:
    """What the subject has, uses or does; or what it no longer does. What our things use, we use."""
    if is_ended:
        return subject, _ended(value) if clause.is_change else Reading(ANY, "")
    return me if _is_ours(clause.subject) else subject, Reading(f"{HOLDS} {value.rpartition(' ')[2]}", value)


def _endings(clause: Clause, me: str) -> Iterator[tuple[str, Reading]]:
    """The values that a clause says have ended. What the project drops, we drop."""
    if not may_end(clause.whole):
        return
    predicate, negated = _without_negation(clause.predicate)
    for subject in [me] if _is_ours(clause.subject) or " me " in predicate else _subjects(clause.subject, me):
        for value in () if negated else ended_by_predicate(predicate):
            yield subject, _ended(value)
    is_other = clause.subject.lower() in ("he", "she") or _subjects(clause.subject, me) not in ([], [me])
    if not is_other or _is_ours(clause.subject):
        for value in ended_by_words(clause.whole, is_change=clause.is_change):
            yield me, _ended(value)
    for value in ended_subjects(clause.whole):
        yield me, _ended(value)


def _ended(value: str) -> Reading:
    return Reading(ANY, value, Polarity.NOT, is_change=True)


def _is_ours(subject: str) -> bool:
    """Whether a thing that we work on is meant: the project, our API."""
    return _OURS().fullmatch(subject) is not None


def _without_negation(predicate: str) -> tuple[str, bool]:
    bare = ADVERBS().sub("", predicate).strip()
    found = NEGATIONS().match(bare)
    bare, more = NO_MORE().subn("", bare[found.end() :] if found else bare)
    return ADVERBS().sub("", bare).replace(" ,", ",").strip(), found is not None or more > 0


def _settled(reading: Reading, *, negated: bool, is_past: bool) -> Reading:
    """The reading under its negation: `not drink coffee` is no, `not live in Rome` denies Rome.

    Without a value if two negations leave nothing stated: who does not eat fish may be a vegetarian or not.
    """
    if is_past and is_multiple(reading.attribute):
        return reading._replace(value=NO, is_change=True)
    if is_past:
        return reading._replace(polarity=Polarity.WAS, is_change=True)
    if not negated:
        return reading
    if is_multiple(reading.attribute):
        return reading._replace(value=NO if reading.value == YES else YES)
    if reading.polarity is Polarity.NOT:
        return reading._replace(value="")
    return reading._replace(polarity=Polarity.NOT)


def _subjects(words: str, me: str) -> list[str]:
    """Whom the words before the verb mean: several for `Ann and Ben`, none for a pronoun."""
    lowered = words.lower().strip(" ,")
    bare = lowered.removeprefix("the ")
    if bare in _FIRST or bare.partition(" ")[0] in ("i", "we") or _WITHIN().fullmatch(words.strip(" ,")):
        return [me]
    first, _, rest = lowered.partition(" ")
    if bare in _NOBODY or first in _NOBODY:
        return []
    if first in _POSSESSIVE or bare.startswith("user's "):
        owned = stems(rest.removeprefix("user's ") if first == "the" else rest)
        return [f"{me} {owned.split()[0]}"] if owned else []
    if _NAMES().fullmatch(words.strip(" ,")):
        return [fold(name) for name in _BETWEEN_NAMES().split(words.strip(" ,")) if name]
    named = stems(words)
    if first in ("the", "this", "that") and " " not in named and rest.islower():
        return [f"{HERE} {named}"] if named else []
    return [named] if named else []


def _named(words: str, predicate: str, me: str) -> Iterator[tuple[str, Reading]]:
    """`My boss is Ann`, `the API version is 2.1`, `Ann is my boss`: the subject names the attribute, or the value."""
    found = _IS().match(predicate)
    if not found:
        return
    said = found[1]
    boss_of = re.match(r"(my|our|[A-Z]\w+'s) (?:new |current )?([\w ]{2,20})$", said)
    if boss_of and _NAMES().fullmatch(words.strip()):
        attribute = named_attribute(boss_of[2])[1]
        if attribute in _HELD_BY_PERSONS:
            owner = me if boss_of[1].lower() in ("my", "our") else fold(boss_of[1][:-2])
            yield owner, Reading(attribute, words, is_change="new " in boss_of[0])
        return
    owner_words, attribute = _slot(words)
    if attribute in _HELD_BY_PERSONS and not found[0].lower().startswith(("is ", "are ", "was ", "were ")):
        return  # my wife moved to Paris
    end = _VALUE_END().search(said)
    value = (said[: end.start()] if end else said).strip()
    is_value = value and len(value) <= _MAX_VALUE and len(value.split()) <= _MAX_VALUE_WORDS
    if attribute and is_value and value.split()[0].lower() not in _QUALIFIED and _is_value_of(attribute, value):
        owner = _owner_of_slot(words, owner_words, me)
        if owner:
            yield owner, Reading(attribute, value)


def _is_value_of(attribute: str, value: str) -> bool:
    """Whether it is a value, not a quality: my boss is Hanna, but not my boss is nice."""
    if attribute in _HELD_BY_PERSONS:
        return value[0].isupper()
    is_thing = value[0].isupper() or any(map(str.isdigit, value)) or "@" in value
    if attribute in ("phone", "email", "age", "address", "home"):
        return is_thing
    return is_thing or attribute in _WORDED or attribute.startswith("favorite ") or _ARTICLE().match(value) is not None


_WORDED: Final = frozenset(
    "status diet theme plan language timezone instrument major username nickname name color".split()
) | {"payment method"}
"""Attributes whose values are common words."""


def _slot(words: str) -> tuple[str, str]:
    of = _OF().fullmatch(words)
    if of:
        _, attribute = named_attribute(of["slot"])
        return (of["thing"], attribute) if attribute else ("", "")
    return named_attribute(re.sub(r"(?<=\w)'s\b", "", words.removeprefix("User's ").removeprefix("The user's ")))


def _owner_of_slot(words: str, thing: str, me: str) -> str:
    """Whose attribute it is: the speaker's, a named one's, or a thing of this session (`the deadline`)."""
    first = words.split(maxsplit=1)[0].lower()
    is_mine = first in _POSSESSIVE or words.lower().startswith(("the user's", "i "))
    if not thing:
        return me if is_mine else "" if first[0].isupper() else f"{HERE}"
    if first in ("his", "her", "their", "its", "your"):
        return ""
    things = fold(thing) if _NAMES().fullmatch(thing) else stems(thing)
    return f"{me} {things}" if is_mine and things else things


def _owner(subject: str, reading: Reading, me: str) -> str:
    """The subject of a reading that names a thing (upgraded Postgres), or is about a part (Lena's swimming)."""
    if reading.thing:
        return stems(reading.thing)
    return subject


_HELD_BY_PERSONS: Final = frozenset(
    "boss landlord dentist doctor therapist roommate mentor coach spouse girlfriend boyfriend partner accountant "
    "lawyer vet trainer tutor".split()
)
