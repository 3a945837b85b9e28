"""Where a pin is known, if nobody says so: in its session, in its project, or everywhere. Pure.

Code, dates and what is of the moment are their session's. In a project, only what is plainly about the person leaves
it (`pins.person`); everything else is the project's. Outside any project, health, family, biography and preferences are
the person's, and what fits no rule stays in its session. The rules read English.
"""

import re
from typing import Final

from kalito_mcp.domain.records import Origin, PinType, Reach
from kalito_mcp.pins.person import is_about_the_person
from kalito_mcp.pins.rule_sets import USER_RULES
from kalito_mcp.pins.rules import PinKind
from kalito_mcp.text.lazy_pattern import lazy

_LONGEST_NOTE: Final = 400
"""Characters, above which a note is not taken for a fact about the person."""

_MAX_READ: Final = 2_000
_OF_PERSON: Final = frozenset(
    {PinKind.WISH, PinKind.HEALTH, PinKind.IDENTITY, PinKind.CONTACT, PinKind.PREFERENCE, PinKind.FACT, PinKind.LIKING}
)
_TIMELESS: Final = frozenset({PinKind.WISH, PinKind.PREFERENCE, PinKind.LIKING})
_OF_SESSION: Final = frozenset({PinKind.DATE, PinKind.CODE})

_MOMENT: Final = lazy(
    r"\b(?:today|tonight|tomorrow|yesterday|right now|at the moment|"
    r"(?:this|next|last) (?:morning|afternoon|evening|night|week|weekend|month|\w{3,6}day)|"
    r"(?:in|within) (?:an?|one|two|three|\d{1,3}) (?:minutes?|hours?|days?|weeks?)|"
    r"(?:flying|travell?ing|driving) (?:back )?to)\b",
    re.IGNORECASE,
)
_ON_A_DAY: Final = lazy(r"\bon \w{3,6}day\b", re.IGNORECASE)
_WISH: Final = lazy(
    r"\b(?:answers?|repl(?:y|ies)|responses?|explanations?|bullet(?:s| points?)|emojis?|small talk|"
    r"step by step|(?:answer|reply|respond|write|speak|explain) (?:\w{1,12} ){0,3}in [A-Z]\w+|"
    r"(?:be|is|are|more|less|very|being) (?:concise|brief|terse|verbose|formal|informal|direct))\b",
)
_WISHING: Final = lazy(
    r"\b(?:wants?|prefers?|likes?|loves?|hates?|dislikes?|expects?|asks?|asked|needs?|keep|give|answer|reply|respond|"
    r"write|speak|explain|use|avoid|please|always|never|only|without|don't|do not)\b",
    re.IGNORECASE,
)
_TECHNICAL: Final = lazy(
    r"\b(?:repo(?:sitory)?|branch(?:es)?|commits?|committing|merg(?:e|es|ing)|deploy(?:s|ed|ing|ment)?|tests?|"
    r"pytest|builds?|release[sd]?|staging|production|database|schema|migrations?|endpoints?|api|server|"
    r"codebase|tabs|indent(?:ation)?|code|modules?|functions?|classes|type hints|lint(?:er|ing)?|docker|pipeline|"
    r"pull requests?|(?:this|the|our) project)\b",
    re.IGNORECASE,
)
_YEARLY: Final = lazy(r"\b(?:birthday|anniversary)\b", re.IGNORECASE)
_STANDING: Final = lazy(r"^(?:please,? )?(?:always|never|only|don't|do not|avoid|from now on)\b", re.IGNORECASE)
_DECIDED: Final = lazy(r"\b(?:decided|decision|agreed|chose|chosen|settled on|conventions?|policy)\b", re.IGNORECASE)
_LIKING: Final = lazy(
    r"\bI (?:really |strongly |much )?(?:prefer|like|love|enjoy|dislike|hate|speak|live|work)\b|"
    r"\b(?:allergic|allergy|vegetarian|vegan|pescatarian|intolerant|diabetic)\b|"
    r"\bmy (?:[\w-]{1,14} ){0,2}(?:name|birthday|wife|husband|partner|daughter|son|mother|father|sister|brother|"
    r"family|timezone|time zone|pronouns|job|hobby|hobbies)\b"
)
_ABOUT_PERSON: Final = lazy(r"\bI\b|\bI'm\b|\b[Mm]y\b|\b[Mm]e\b")
# What an assistant writes about the user, as the user would say it: the rules of `english` read that.
_THIRD_PERSON: Final = (
    (lazy(r"\b[Tt]he [Uu]ser's\b|\b[Uu]ser's\b"), "my"),
    (lazy(r"\b(?:[Tt]he )?[Uu]ser is\b"), "I am"),
    (lazy(r"\b(?:[Tt]he )?[Uu]ser has\b"), "I have"),
    (lazy(r"\b(?:[Tt]he )?[Uu]ser does(?: not|n't)\b"), "I don't"),
    (lazy(r"\b(?:[Tt]he )?[Uu]ser ((?:\w+ly|also|never|always|only|now|still) )?(\w+?)(?<!s)s\b"), r"I \1\2"),
    (lazy(r"\b[Tt]he [Uu]ser\b|^[Uu]ser\b"), "I"),
    (lazy(r"^(Prefer|Like|Want|Need|Live|Work|Speak|Own|Hate|Love|Dislike)s\b"), r"I \1"),
)


def reach_of(
    text: str,
    *,
    has_project: bool,
    kind: PinKind | None = None,
    pin_type: PinType = PinType.MANUAL,
    origin: Origin = Origin.ASSISTANT,
) -> Reach:
    """Where this pin is known. `kind` is what a rule found it as; without one it is looked for. Words of tools,
    documents and imports stay in their session."""
    if pin_type is PinType.CODE or origin.distrust >= Origin.TOOL.distrust:
        return Reach.SESSION
    said = as_said(text)
    kind = kind or kind_of(said)
    is_passing = kind in _OF_SESSION or (kind is not PinKind.HEALTH and _MOMENT().search(said) is not None)
    # A liking that comes with a plan for Saturday is not kept for good: nobody knows later which Saturday.
    is_passing = is_passing or (kind in _TIMELESS and _ON_A_DAY().search(said) is not None)
    if is_passing and not _YEARLY().search(said):
        return Reach.SESSION
    if is_about_the_person(said):
        return Reach.PERSON
    if has_project:
        return Reach.PROJECT
    is_convention = kind is PinKind.PREFERENCE and _STANDING().search(said) and _TECHNICAL().search(said)
    is_personal = kind in _OF_PERSON or (kind is None and _ABOUT_PERSON().search(said)) or _YEARLY().search(said)
    return Reach.PERSON if is_personal and not is_convention else Reach.SESSION


def reach_of_note(text: str, *, has_project: bool) -> Reach | None:
    """PERSON if this note says something lasting of the person, in a few words; else None."""
    if len(text) > _LONGEST_NOTE:
        return None
    found = reach_of(text, has_project=has_project)
    return found if found is Reach.PERSON else None


def kind_of(text: str) -> PinKind | None:
    """What kind of fact a text in the first person states; None if no rule fits."""
    plain = text[:_MAX_READ].replace("’", "'")
    if _WISH().search(plain) and _WISHING().search(plain):
        return PinKind.WISH
    for rule in USER_RULES.worth_trying(plain):
        if rule.pattern().search(plain) and (rule.also is None or rule.also().search(plain)):
            return rule.kind
    if _LIKING().search(plain):
        return PinKind.PREFERENCE if " prefer" in plain or " like" in plain else PinKind.FACT
    return PinKind.DECISION if _DECIDED().search(plain) else None


def as_said(text: str) -> str:
    """What an assistant wrote about "the user", in the first person; other texts as they are."""
    said = text[:_MAX_READ].strip()
    for pattern, replacement in _THIRD_PERSON:
        said = pattern().sub(replacement, said)
    return said
