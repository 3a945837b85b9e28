"""The shapes of sentences that are worth a pin. Pure.

A rule is tried where one of its words or phrases stands in the sentence; it holds where its pattern matches and,
where it has one, its second pattern matches too. The first rule that holds decides, so they stand in order of
importance. Patterns see `'` for every apostrophe; every repetition in them is bounded, so that a sentence is read in
linear time.
"""

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class PinKind(StrEnum):
    """What a rule finds; the policy gives each kind its importance."""

    HEALTH = "health"
    IDENTITY = "identity"
    DECISION = "decision"
    CONTACT = "contact"
    DATE = "date"
    PREFERENCE = "preference"
    FACT = "fact"
    CONCEPT = "concept"


@dataclass(frozen=True, slots=True)
class PinRule:
    """One shape. `words` are lower-case words, `phrases` lower-case substrings for words that are too common."""

    kind: PinKind
    words: frozenset[str]
    phrases: tuple[str, ...]
    pattern: re.Pattern[str]
    also: re.Pattern[str] | None


@dataclass(frozen=True, slots=True)
class RuleSet:
    """The rules for one role, and the words and phrases without all of which a message has no pin."""

    rules: tuple[PinRule, ...]
    words: frozenset[str]
    phrases: tuple[str, ...]


def _rule(
    kind: PinKind, pattern: str, *, words: str = "", phrases: tuple[str, ...] = (), also: str | None = None
) -> PinRule:
    second = re.compile(also, re.IGNORECASE) if also else None
    return PinRule(kind, frozenset(words.split()), phrases, re.compile(pattern, re.IGNORECASE), second)


def _rule_set(rules: tuple[PinRule, ...]) -> RuleSet:
    words = frozenset(word for rule in rules for word in rule.words)
    phrases = dict.fromkeys(phrase for rule in rules for phrase in rule.phrases)
    return RuleSet(rules, words, tuple(phrases))


def _any(words: str) -> str:
    return f"(?:{'|'.join(words.split())})"


_NAMED: Final = r"(?-i:[A-Z][\w'.-]{0,40})"
_LATELY: Final = r"(?: (?:all|both|finally|now|just|also|already|recently|then|mutually))?"
_RELATIVES: Final = (
    "mother father mom dad mum parents sister brother son daughter wife husband partner fiance fiancé fiancee fiancée "
    "girlfriend boyfriend aunt uncle cousin niece nephew grandma grandpa grandmother grandfather granddaughter "
    "grandson stepmother stepfather stepson stepdaughter roommate boss manager landlord neighbor neighbour doctor "
    "dentist therapist dog cat puppy kitten rabbit parrot horse"
)
_RELATIVE: Final = _any(_RELATIVES)
_STATE: Final = (
    r"(?:lives?|lived|works?|worked|is (?:called|named|an?|the|from|in|\d|getting married|pregnant|moving|retired)|"
    r"was (?:born|named|diagnosed)|has (?:an?|been|\d|two|three|four)|teaches|studies|studied|moved|passed away|died|"
    r"turns|turned|takes|owns|graduated|retired|got married)\b"
)
_MONTH: Final = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|"
    r"nov(?:ember)?|dec(?:ember)?)"
)
_CLOCK: Final = r"(?:\d{1,2}(?::\d\d)? ?[ap]\.?m\b|\d{1,2}:\d\d\b|noon\b|midnight\b)"
_WEEKDAY: Final = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_DATE: Final = (
    rf"\b\d{{4}}-\d\d-\d\d\b|\b\d{{1,2}}[./]\d{{1,2}}[./]\d{{2,4}}\b|\b{_MONTH}\.? \d{{1,2}}(?:st|nd|rd|th)?\b|"
    rf"\b\d{{1,2}}(?:st|nd|rd|th)?(?: of)? {_MONTH}\b|\b{_WEEKDAY},? (?:\w{{1,12}} ){{0,2}}{_CLOCK}|"
    rf"{_CLOCK} (?:on |next |this )?{_WEEKDAY}\b"
)
_EVENTS: Final = (
    "appointment appointments deadline meeting flight interview exam surgery birthday wedding anniversary launch "
    "launches demo conference checkup check-up dentist doctor dr reservation booked scheduled rescheduled concert "
    "graduation presentation submission expires renewal ceremony recital tournament funeral trial hearing marathon "
    "consultation workshop arrives departs"
)
_SYSTEMS: Final = (
    "api app server service database db backend frontend website repo repository cluster endpoint queue cache stack "
    "codebase pipeline container bucket dashboard worker staging production"
)
_PROFESSIONS: Final = (
    "engineer developer teacher nurse doctor student manager designer writer lawyer accountant producer architect "
    "scientist researcher programmer consultant chef artist musician freelancer electrician professor analyst"
)
_WORKING_VERBS: Final = (
    "use include provide format add write put run answer reply call commit deploy push ask show give respond explain "
    "mention send check test return assume suggest recommend speak translate round list quote cite store log"
)

_HEALTH: Final = (
    _rule(
        PinKind.HEALTH,
        r"\b(?:i'm|i am|we're|we are|he's|she's|is|are|patient) (?:\w{1,12} )?(?<!not )"
        r"(?:allergic to|[\w-]{3,12}[- ]intolerant\b)"
        r"|\b(?:have|has) (?:an? )?(?:[\w-]{1,14} ){0,2}(?:allerg(?:y|ies)|intolerance)\b",
        words="allergic allergy allergies intolerant intolerance",
    ),
    _rule(
        PinKind.HEALTH,
        r"\b(?:was|were|been|got|is) (?:just |recently )?diagnosed with \w"
        r"|\b(?:i'm|i am|she's|he's|she is|he is) (?:(?:type \d )?diabetic|asthmatic|celiac|coeliac|pregnant)\b"
        rf"|\b(?:i have|i've got|(?:she|he|{_NAMED}|my {_RELATIVE}) has) (?:type \d )?"
        r"(?:diabetes|asthma|celiac disease|coeliac disease|epilepsy|a pacemaker)\b",
        words="diagnosed diabetic diabetes asthma asthmatic celiac coeliac epilepsy pregnant pacemaker",
    ),
    _rule(
        PinKind.HEALTH,
        rf"\b(?:i|he|she|my {_RELATIVE}|{_NAMED})(?:'m on| am on| is on| (?:\w{{1,12}} )?takes?| (?:was|is) prescribed)\b"
        r".{0,80}\d ?(?:mg|mcg|ml|pills|tablets)\b",
        words="mg mcg ml pills tablets",
    ),
)
_IDENTITY: Final = (
    _rule(
        PinKind.IDENTITY,
        r"\bmy (?:(?:full|last|first|middle|real) )?name(?:'s| is) (?!on\b|in\b|not\b|the\b)\w",
        phrases=("name is", "name's"),
    ),
    _rule(PinKind.IDENTITY, rf"^(?:please |just |you can |everyone ){{0,2}}calls? me {_NAMED}", phrases=("call me",)),
    _rule(
        PinKind.IDENTITY,
        rf"(?-i:\bI(?:'m| am)) {_NAMED}(?: {_NAMED})?(?:, (?:and i'm |and i am )?(?:an?|the) \w|,? from {_NAMED})",
        phrases=(", a ", ", an ", ", the ", " from "),
    ),
)
_DECISIONS: Final = (
    _rule(
        PinKind.DECISION,
        rf"\bwe(?:'ve| have)?{_LATELY} (?:decided|agreed|settled|opted) (?:to|on|that|not|against|for|upon|we)\b"
        rf"|\bwe(?:'ve| have)?{_LATELY} cho(?:se|sen) (?!to (?:believe|think))\w",
        words="decided agreed chose chosen settled opted",
    ),
    _rule(
        PinKind.DECISION,
        r"\b(?:the|our|final) (?:final )?decision (?:is|was) (?:to|that|not|against|made to)\b|^decision: \w"
        r"|^(?:it's )?(?:decided|agreed): \w|\bit (?:was|is|has been) (?:decided|agreed) (?:to|that|on)\b",
        words="decision decided agreed",
    ),
    _rule(
        PinKind.DECISION,
        r"\bwe(?:'ll| will|'re going to| are going to) (?:all )?(?:go with|stick (?:with|to)|switch to|move to|"
        r"migrate to|adopt|drop|deploy (?:to|on)|launch on|release on|postpone|reschedule)\b",
        phrases=("we'll ", "we will ", "we're going to ", "we are going to ", "we’ll ", "we’re going to "),
    ),
)
_OWN_DECISIONS: Final = (
    _rule(
        PinKind.DECISION,
        rf"\bi(?:'ve| have)?{_LATELY} (?:decided|opted|settled) (?:to|on|that|not|against|for|upon)\b",
        words="decided opted settled",
    ),
    _rule(
        PinKind.DECISION,
        r"^let'?s (?:all )?(?:go (?:ahead )?with (?!the flow)|use|stick (?:with|to)|stay with|switch to|"
        r"move to|migrate to|adopt|drop|rename|postpone|choose|pick|settle on) \w",
        words="let's lets let’s",
    ),
)
_CONTACTS: Final = (
    _rule(
        PinKind.CONTACT,
        r"\b(?:my|our) (?:[\w-]{1,14} ){0,2}(?:e-?mail|phone|number|address|zip(?: code)?|postcode|username|handle|plate|"
        r"github|extension)(?: address| number)?(?:'s| is|:) (?:at )?\S{0,40}[\d@/]",
        words="email e-mail phone zip postcode username handle plate github extension",
        phrases=("number is", "address is"),
    ),
)
_DATES: Final = (
    _rule(PinKind.DATE, rf"\b{_any(_EVENTS)}\b|\bdue (?:on|by|date)\b", words=_EVENTS + " due", also=_DATE),
)
_PREFERENCES: Final = (
    _rule(
        PinKind.PREFERENCE,
        rf"\b(?:i|we|my {_RELATIVE}|{_NAMED})(?:'d| would| do)?(?: \w{{1,10}}ly| much| always)? prefers? "
        r"(?!not to (?:say|talk)|(?:it|that|this)\b)\w",
        words="prefer prefers",
    ),
    _rule(
        PinKind.PREFERENCE,
        rf"^(?:please,? )?(?:always|never) (?:{_any(_WORKING_VERBS)}|make sure)\b(?! up| in)"
        r"|^please (?:only|do not|don't) (?!worry|hesitate|tell|forget|be|let|go|stop|give up)\w"
        rf"|^(?:please )?(?:don't|do not) (?:ever )?{_any(_WORKING_VERBS)} (?!it\b|that\b|this\b|up\b|me\b|yourself)\w"
        r"|^(?:please )?avoid (?:using|including|adding|mentioning)\b|^from now on,? \w"
        r"|^(?:please )?(?:remember|note|keep in mind) that (?:i'm|i|we|we're|my|our|the|all|it's)\b",
        words="please always never",
        phrases=(
            "don't use",
            "do not use",
            "don't add",
            "don't include",
            "don't suggest",
            "don't recommend",
            "don't call",
            "avoid using",
            "from now on",
            "remember that",
            "note that",
            "keep in mind",
        ),
    ),
    _rule(
        PinKind.PREFERENCE,
        rf"\b(?:i'm|i am|(?:my {_RELATIVE}|{_NAMED}) is) (?:an? )?(?:strict )?(?:vegan|vegetarian|pescatarian|left-handed)\b"
        r"|\bi (?:can't|cannot|don't|do not|never|only) (?:eat|drink) (?!it\b|that\b|this\b|them\b|much\b|enough\b|to\b)\w"
        r"|\bi (?:can't|cannot) stand (?!it\b|that\b|this\b|by\b|when\b|to\b|up\b|the thought)\w",
        words="vegan vegetarian pescatarian stand eat drink left-handed",
    ),
    _rule(
        PinKind.PREFERENCE,
        r"\b(?:my|our) (?:all-time )?favou?rites? (?:[\w-]{1,16} ){1,4}(?:is|are) (?!when|that|the way|to|about)\w",
        words="favorite favourite favorites favourites",
    ),
)
_FACTS: Final = (
    _rule(
        PinKind.FACT,
        rf"\b(?:my|our) (?:[\w-]{{1,14}} ){{0,2}}{_RELATIVE},? {_NAMED}(?: {_NAMED})?,? "
        rf"(?:(?:who|also|just|now|still) ){{0,2}}{_STATE}"
        rf"|\b(?:my|our) (?:[\w-]{{1,14}} ){{0,2}}{_RELATIVE}(?:'s name is| is (?:called|named)| named| called),? {_NAMED}"
        r"|\bmy (?:(?:older|younger|big|little|oldest|youngest|elder|late|twin|best) )?"
        rf"{_RELATIVE} (?:also |just |now |still )?"
        r"(?:lives|works (?:as|at|for|in)|was born|studies|teaches|moved (?:to|from)|passed away|died|turned \d|"
        r"turns \d|is \d|is from|is an? (?!bit|little|lot|great|good|huge|big|real|true|joy|blessing|gem|handful|star)"
        r"[\w-]{3,})\b",
        words=_RELATIVES,
    ),
    _rule(
        PinKind.FACT,
        rf"\b(?:i|we)(?:'ve got| have| got| adopted)(?: just)? (?:an?|two|three|\d) (?:[\w-]{{1,14}} ){{0,3}}"
        rf"(?:named|called) {_NAMED}"
        r"|\bi(?:'ve got| have) (?:an? |one |two |three |four |five |six |\d{1,2} )(?:[\w-]{1,14} ){0,2}"
        r"(?:kids|children|sisters?|brothers?|dogs?|cats?|sons?|daughters?|siblings)\b",
        words="kids children sisters brothers dogs cats sons daughters siblings sister brother son daughter dog cat "
        "named called",
    ),
    _rule(
        PinKind.FACT,
        r"\b(?:i|we)(?: currently| now| still| actually)? (?:live|grew up|was born|was raised) (?:in|at|near|on) "
        r"(?!peace|fear|the moment|a world)\w"
        rf"|\b(?:i|we)(?:'ve| have)?{_LATELY} moved (?:here |back |away )?(?:to|from|into) (?:the )?{_NAMED}"
        rf"|\b(?:i'm|i am|we're|we are) (?:currently |now |still )?living (?:in|near) {_NAMED}",
        words="live born grew raised moved living",
    ),
    _rule(
        PinKind.FACT,
        rf"\b(?:i'm|i am|we're|we are) (?:originally )?from {_NAMED}",
        phrases=("'m from ", "’m from ", " am from ", "originally from ", "'re from "),
    ),
    _rule(
        PinKind.FACT,
        r"\bi(?: currently| now| also| still)? work (?:as (?:an?|the)|at|for) (?!it\b|that\b|this\b|them\b|my best|home)\w"
        rf"|\bi(?:'m| am) working (?:as an?|at {_NAMED}|for {_NAMED})\b"
        rf"|\bi(?:'ve| have)?{_LATELY} (?:started|got|landed|accepted) (?:an?|my|the) (?:new )?job (?:as|at|in|with)\b",
        words="job",
        phrases=("work as ", "work at ", "work for ", "working as ", "working at ", "working for "),
    ),
    _rule(
        PinKind.FACT,
        rf"\bi(?:'m| am) (?:an?|the) (?:[\w/-]{{1,18}} ){{0,4}}{_any(_PROFESSIONS)}\b"
        r"|\bi(?:'m| am| just turned) \d{1,3} years old\b",
        words=_PROFESSIONS,
        phrases=("years old",),
    ),
    _rule(
        PinKind.FACT,
        rf"\b(?:our|my|the) (?:[\w-]{{1,18}} ){{0,3}}{_any(_SYSTEMS)} (?:\w{{1,12}}ly |now )?"
        r"(?:(?:runs|listens|lives|sits|is (?:hosted|deployed|running|stored|located|written|built|served|backed)) "
        r"(?:on|at|in|with|under|behind|by|from) (?!it\b|that\b|this\b|time\b|the background\b|me\b)\w"
        rf"|uses (?:{_NAMED}|`)|is at \S{{0,60}}[/.:\d])",
        words=_SYSTEMS,
    ),
    _rule(
        PinKind.FACT,
        r"\b(?:runs?|running|listens?|listening|is|exposed|served|available) (?:[\w-]{1,12} ){0,2}port \d{2,5}\b",
        words="port",
    ),
    _rule(
        PinKind.FACT,
        r"\bwe(?:'re| are)? (?:currently |now |all )?(?:use|using|run on|deploy(?:ing)? (?:to|on|with)|"
        rf"host(?:ing)? (?:on|with)) (?:an? )?(?:{_NAMED}|`)"
        rf"|\bi(?:'m| am) using {_NAMED}(?: {_NAMED})? (?:version )?v?\d[\w.]{{0,12}}",
        phrases=("we use ", "we're using ", "we are using ", "we run on", "we deploy ", "i'm using ", "i am using "),
    ),
)
_TERM: Final = (
    r"(?:an? (?:[\w-]{2,24} ){1,3}|the (?:[\w-]{2,24} ){2,3}|(?-i:[A-Z])[\w.+#-]{1,24}(?: [\w.+#-]{1,24}){0,3} "
    r"|[\"“`'][\w .+#-]{2,40}[\"”`'] )"
)
_NO_TERM: Final = (
    r"(?!(?:this|that|it|he|she|there|here|what|my|your|our|his|her|their|they|these|those|one|everything|everyone|"
    r"life|today|i|we|you|another|some|each|every|the (?:only|best|first|next|last|main|most|key|goal|idea|problem|"
    r"issue|reason|point|thing|good|bad|result|answer|rest|other|above|following|code|output|error))\b)"
)
_CONCEPTS: Final = (
    _rule(PinKind.CONCEPT, r"^by [\"'“`]?[\w -]{2,40}[\"'”`]?,? (?:we|i) mean\b", phrases=("we mean", "i mean")),
    _rule(
        PinKind.CONCEPT,
        rf"^{_NO_TERM}{_TERM}is (?:an?|the) (?!great|good|nice|bit|lot|must|common|valuable|crucial|key|solid|fantastic|"
        r"powerful|perfect|excellent|more|very|big|step|ways?\b)(?:[\w-]{1,18} ){1,5}"
        r"(?:that|which|who|used (?:to|for|in|by))\b",
        phrases=(" is a ", " is an ", " is the "),
    ),
    _rule(
        PinKind.CONCEPT,
        rf"^{_NO_TERM}(?:an? |the )?[\w`\"'.+#-]{{2,24}}(?: [\w`\"'.+#-]{{2,24}}){{0,2}} (?:refers to|stands for|is short for|is defined as) ",
        phrases=("refers to ", "stands for ", "short for ", "defined as "),
    ),
)

USER_RULES: Final = _rule_set(
    (*_HEALTH, *_IDENTITY, *_DECISIONS, *_OWN_DECISIONS, *_CONTACTS, *_DATES, *_PREFERENCES, *_FACTS, *_CONCEPTS)
)
ASSISTANT_RULES: Final = _rule_set((*_DECISIONS, *_CONCEPTS))
