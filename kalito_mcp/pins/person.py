"""What is plainly about the person who says it: body, home, family, name, and how they like to be answered. Pure.

Only this leaves a project. Every sentence must say it in the first person, or to the assistant, and name nothing of the
work at hand: in doubt it is the project's. Reads English; of other languages only what `pins.elsewhere` knows of body,
name and home, said by "I".
"""

import re
from collections.abc import Callable
from typing import Final

from kalito_mcp.pins.rule_sets import SPACED_RULES, UNSPACED_RULES
from kalito_mcp.pins.rules import PinKind
from kalito_mcp.text.lazy_pattern import lazy
from kalito_mcp.text.sentences import split_sentences, without_opener

_ILL: Final = (
    r"(?:allerg\w+|[\w-]*intoleran\w+|vegan|vegetarian|pescatarian|diabet\w+|asthma\w*|dyslexi\w+|"
    r"colou?r-?\s?blind\w*|deaf|hard of hearing|migraines?|epilep\w+|pregnant|insulin|adhd|autis\w+|left-handed|"
    r"insomnia|tinnitus|rsi|arthritis|anxiety|depression|coeliac|celiac)"
)
_RELATIVE: Final = (
    r"(?:wife|husband|fianc\w+|(?:girl|boy)friend|(?:step|grand)?(?:mother|father|son|daughter|parents|kids?|children)|"
    r"(?:mother|father|sister|brother)-in-law|mum|mom|dad|sister|brother|siblings?|baby|toddler|twins|aunt|uncle|"
    r"cousin|niece|nephew|grandma|grandpa|family|dog|cat|puppy)"
)
_OURS: Final = r"(?:kids?|child|children|sons?|daughters?|baby|twins|dogs?|cats?)"
# What is said of their lives, not of what they do in a project.
_LIVES: Final = (
    r"(?:lives?|(?:has|have|had) (?!the\b|to\b|\d)|was born|moved|started school|goes to|turn(?:s|ed)|died|passed away|"
    r"can't|doesn't|don't|suffers?|speaks?|(?:is|are|was|were) (?!the\b|our\b|my\b|on\b|in charge)\w)"
)
_BRIEF: Final = r"(?:brief|concise|terse|direct|blunt|honest|formal|informal|casual|polite|short|shorter)"
_ANSWERS: Final = r"(?:answers?|repl(?:y|ies)|responses?|explanations?)"
_ANSWER: Final = r"(?:answer|reply|respond|explain|talk|speak)"
_FRILLS: Final = r"(?:emojis?|bullet points?|small talk|flattery|greetings?|pleasantries|disclaimers?|apologies)"
_END: Final = r"(?=[.,;:!?]|$| please| and| so| in your)"

_PLAINLY: Final[tuple[Callable[[], re.Pattern[str]], ...]] = (
    # body
    lazy(
        rf"\bI(?:'m|'ve| am| have| got| take| need| was diagnosed with)(?: [\w'-]+){{0,2}}? {_ILL}\b"
        rf"|^{_ILL}(?: to\b|[.!]?$)"
        r"|\bI (?:can't|cannot|don't|do not|never|only) (?:eat|drink) |\bI (?:have|'ve got) an? (?:bad|sore|broken) \w"
        r"|\bmy (?:\w+ )?(?:back|knees?|wrists?|hands?|eyes|ears?|hips?|shoulders?|legs?|blood pressure|eyesight"
        r"|hearing) (?:is|are|hurts?|aches?) (?!on\b)",
        re.IGNORECASE,
    ),
    # home
    lazy(
        r"\b(?:I|we)(?:'m|'re| am| are)? (?:now |currently |still |both )*(?:live|living|grew up|was born) "
        r"(?:in|at|near|on|by|alone)\b(?! (?:fear|peace|hope)\b)"
        r"|\bI(?:'m| am) originally from\b|\bI (?:mostly )?work from home\b"
        r"|\bmy (?:home address|house|flat|apartment|garden|landlord|landlady|neighbou?rs?|home ?town|time ?zone)"
        r"(?: is| are| has|'s)\b",
        re.IGNORECASE,
    ),
    # family
    lazy(
        rf"\b(?:my (?:\w+ )?{_RELATIVE}|our (?:\w+ )?{_OURS})"
        rf"(?:,? [A-Z]\w+,?)? (?:also |just |now |both |recently )?(?:{_LIVES}\b|and I live )"
        r"|\b(?:I|we)(?:'ve| have|'re having| are having)? (?:had |got |have )?(?:(?:an?|one|two|three|four|\d) )?"
        rf"(?:[\w-]+ )?(?:{_OURS}|sisters?|brothers?)(?:{_END}| (?:in|at|named|called)\b)"
        r"|\bI(?:'m| am) (?:married|divorced|single|engaged|widowed)\b"
        r"|\bI(?:'m| am) a (?:single )?(?:mother|father|mum|mom|dad|parent)\b",
        re.IGNORECASE,
    ),
    # name and language
    lazy(
        r"\bmy (?:full |first |last |real )?name(?:'s| is)\b|\bcall me \w"
        r"|\bmy (?:pronouns|birthday|mother tongue|native language)\b|\bI(?:'m| am) \d{1,3} years old\b"
        r"|\bI(?:'m| am) (?:an? )?native \w+ speaker\b",
        re.IGNORECASE,
    ),
    # answers: orders at the beginning of a clause, then wishes
    lazy(
        r"(?:^|, )(?:(?:please|always|never|just|don't|do not|from now on,?|can you|could you) )*(?:"
        rf"{_ANSWER}(?: to me| me| things| everything| (?:all )?my questions)?(?: always| only)? "
        r"(?:in|with(?! me)|without|like|as|briefly|concisely|directly|slowly?|step)\b(?! \d)"
        rf"|be (?:more |less |very )?{_BRIEF}(?:{_END}| (?:with|to) me\b)"
        rf"|keep (?:your |all )?{_ANSWERS} {_BRIEF}\b"
        rf"|(?:no|skip|drop|avoid|leave out|without|don't use) (?:the |any |all )?{_FRILLS}\b"
        r"(?! (?:in|on|from)\b(?! your)))",
        re.IGNORECASE,
    ),
    lazy(
        rf"\byour {_ANSWERS}\b|\bwhen(?:ever)? you {_ANSWER}\b|\bI (?:like|prefer|hate) it when you\b"
        rf"|\b(?:use|be|speak|talk|go) (?:\w+ )?(?:with|to) me{_END}"
        r"|\bI(?:'d| would| really| always| much)? (?:prefer|like|love|want|hate|dislike|appreciate|can't stand|"
        rf"don't (?:like|want|need)) (?:(?!the\b)[\w,'-]+ ){{0,4}}?(?:{_ANSWERS}|{_FRILLS})\b"
        r"(?! (?:of|from|to|in the|on the)\b)",
        re.IGNORECASE,
    ),
)
_AT_HAND: Final = lazy(
    r"\b(?:here|there|this|on site|clients?|customers?|users?|patients|tenants?|vendors?|suppliers?|agency|agencies|"
    r"contracts?|invoices?|tickets?|teams?|repo(?:sitory)?|branch(?:es)?|commits?|merg\w+|deploy\w*|releases?|staging|"
    r"production|database|api|servers?|endpoints?|http|json|pull requests?|PRs?|project|cover|chapters?)\b",
    re.IGNORECASE,
)
_OF_OTHER_LANGUAGES: Final = frozenset({PinKind.HEALTH, PinKind.IDENTITY})
_I: Final = lazy(
    r"\b(?:ich|meine?[mnrs]?|je|j'|mon|ma|mes|suis|ai|yo|mi|mis|me|soy|tengo|vivo|estoy|я|меня|мо[йяеё]|живу)\b|[我私僕俺]",
    re.IGNORECASE,
)
_GOES_ON: Final = lazy(r"(?:she|he) ", re.IGNORECASE)
ASKED_TO_REMEMBER: Final = lazy(
    r"(?:please )?(?:remember|note|keep in mind|don't forget|fyi|btw)(?: that|:|,)? ", re.IGNORECASE
)
"""How a sentence begins that asks for what it says to be remembered."""


def is_about_the_person(said: str) -> bool:
    """Whether every sentence of this text is plainly about the person who says it."""
    found = False
    for sentence in split_sentences(said):
        plain = ASKED_TO_REMEMBER().sub("", without_opener(sentence), count=1).replace("’", "'")
        if _AT_HAND().search(plain):
            return False
        if any(pattern().search(plain) for pattern in _PLAINLY) or _is_said_elsewhere(plain):
            found = True
        elif not (found and _GOES_ON().match(plain)):
            return False
    return found


def _is_said_elsewhere(plain: str) -> bool:
    """The same in another language."""
    if not _I().search(plain):
        return False
    tried = (*SPACED_RULES.worth_trying(plain), *UNSPACED_RULES.worth_trying(plain))
    return any(
        (rule.kind in _OF_OTHER_LANGUAGES or rule.subject == "home") and rule.pattern().search(plain) for rule in tried
    )
