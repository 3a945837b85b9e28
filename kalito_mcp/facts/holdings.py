"""What somebody has, uses, reads or does at present, as values that only their own names end. Pure. English."""

import re
from collections.abc import Iterator
from typing import Final

from kalito_mcp.facts.vocabulary import stems
from kalito_mcp.text.lazy_pattern import lazy

_DOING: Final = (
    "reading|watching|learning|studying|playing|using|seeing|dating|taking|driving|riding|wearing|training for|"
    "listening to|working on|building|renting|running|writing|attending|renovating|growing|going out with|eating"
)
_DO: Final = (
    "reads?|watch(?:es)?|learns?|study|studies|plays?|uses?|takes?|drives?|rides?|wears?|owns?|has|have|"
    "(?:have|has) got|banks? with|deploys? (?:\\w+ )?(?:to|on)|hosts? (?:\\w+ )?(?:on|at|in|with)|"
    "runs?(?: on)?|smokes?|drinks?|eats?|"
    "prefers?|likes?|loves?|hates?|need|needs|want|wants|"
    "stores? [\\w ]{2,20} (?:in|on)|meets? on|goes to|go to|rel(?:y|ies) on|subscribes? to|"
    "started(?: using| reading| watching| learning)|bought|adopted"
)
_CHOSE: Final = (
    "chose|picked|went with|settled on|(?:ended up )?going with|decided (?:to use|to go with|on|to ship with|to)|"
    "agreed (?:on|to use)|opted for|adopted|standardi[sz]ed on|chosen"
)
_MADE: Final = r"(?:is|are) (?:written|built|hosted|deployed|running|based|made) (?:in|on|with|at)|runs? on|uses?"
_BE: Final = r"(?:am|is|are|was|were|have been|has been)"
_STATE: Final = (
    rf"{_BE} (?:allergic to|engaged to|married to|with|a member of|fluent in|into|addicted to|registered with)"
)
_PERFECT: Final = (
    r"(?:\w{2,}ed|been|them|him|her|it|that|this|me|us|you|"
    r"given|grown|got|left|gone|done|taken|broken|lost|sold|put|to|no|not)\b"
)
_ITEM: Final = r"[\w.+#&/'-]+(?: [\w.+#&/'-]+){0,4}?"
_END: Final = (
    r"(?=\s*$|\s*[,.;:!?()]| (?:for|on|in|at|as|to|with|since|because|every|each|when|while|where|who|that|which|and|"
    r"or|but|now|again|this|last|by|of|from|after|before|until|called|named|so|if|than|about|during|these|right|too|most|"
    r"via|instead|once|twice|everywhere|today|black)\b)"
)
_LIST: Final = rf"(?P<v>{_ITEM}{_END}(?:(?:, | and |, and | & ){_ITEM}{_END}){{0,4}})"
_RULES: Final = lazy(
    rf"(?:(?:(?:{_BE} )?(?:{_DOING}))|(?:have |has )?(?:{_CHOSE})|{_STATE}|{_MADE}|{_DO}) (?!{_PERFECT}){_LIST}",
    re.IGNORECASE,
)
_ALONE: Final = lazy(
    r"(?:smoke|smokes|smoking|vape|drink|run|running|swim|cycle|meditate|surf|ski|dance|sing)"
    r"(?=\s*$|[.,;]| (?:every|each|daily|a lot))",
    re.IGNORECASE,
)
_NAMED: Final = lazy(r"\b(?:called|named) (?P<v>(?-i:[A-Z])[\w-]+)", re.IGNORECASE)
_VERSIONED: Final = lazy(r"\d\.\d|^\W*(?:mon|tues|wednes|thurs|fri|satur|sun)days?", re.IGNORECASE)
_SEPARATOR: Final = lazy(r",? and |, | & ")
_LEADING: Final = lazy(
    r"^(?:(?:my|the|our|an?|some|any|two|three|four|use|using|to|both|got|also|mostly|lots of)\b ?)+",
    re.IGNORECASE,
)
_VAGUE: Final = frozenset(
    """it that this them him her one thing stuff everything all something anything nothing time lot way you idea
    question problem issue feeling chance reason sense trouble look part place fun break bit things""".split()
)
_MOST_WORDS: Final = 4


def held(predicate: str) -> Iterator[str]:
    """The values of a predicate, as stems: `reading Middlemarch` has `middlemarch`."""
    alone = _ALONE().match(predicate)
    if alone:
        yield stems(alone[0])
        return
    found = _RULES().match(predicate)
    if found is None:
        return
    named = _NAMED().search(predicate, found.end())
    for item in (*_SEPARATOR().split(found["v"]), *([named["v"]] if named else [])):
        if _VERSIONED().search(item):
            continue
        plain = _LEADING().sub("", item)
        value = stems(plain)
        if (
            value
            and _VAGUE.isdisjoint((value, value.rpartition(" ")[2]))
            and len(value.split()) <= _MOST_WORDS
            and not plain.lower().startswith("to ")
        ):
            yield value
