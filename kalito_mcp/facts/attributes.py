"""The attributes that things have one of at a time, and words that ask for them. Pure.

An attribute that is not listed as certain is only superseded by words that say that something changed. Of two
statements about a certain one, the newer stands in any case: nobody has two ages or marital statuses.
"""

from typing import Final

CERTAIN: Final = frozenset(
    """home address marital boss age name diet theme timezone version manager landlord phone email deadline status
    birthday title""".split()
)
CERTAIN_PREFIXES: Final = ("favorite ", "day ")

MULTIPLE: Final = frozenset(
    """drink eat smoke like love enjoy hate have own speak play need practice attend take teach study learn read watch
    use colleague run lead""".split()
)
"""Attributes with any number of values. Each value is a line of its own, which is true or no longer true."""

_ASKING_WORDS: Final = {
    "home": "live lives living lived home address city town reside residence residing moved move located where based",
    "address": "live lives living address street home reside residence where moved move",
    "employer": "work works working worked job employer company employed employment employee career joined join where",
    "role": "role job position title profession work working occupation do",
    "marital": "married marital single wife husband spouse partner divorced engaged relationship status",
    "household": "live lives living alone household roommate with",
    "diet": "diet dietary eat eats eating vegan vegetarian food",
    "theme": "theme mode dark light appearance color colour prefer prefers",
    "boss": "boss manager supervisor report reports reporting lead",
    "colleague": "work works working colleague colleagues coworker coworkers team who with",
    "vehicle": "car drive drives driving vehicle own",
    "plan": "plan subscription subscribed tier",
    "decision": "decide decided decision choose chose use using",
    "have": "have has own pet pets",
    "eat": "eat eats eating food diet",
    "drink": "drink drinks drinking beverage",
    "speak": "speak speaks speaking language languages",
    "registration": "registered registration party political",
    "day": "day when what weekly schedule",
}


HOLDS: Final = "holds"
"""Begins the attribute of what somebody has, uses, reads or does. A newer value ends no other."""
WISH: Final = "wish"
"""The attribute of how the user wants to be answered. A newer wish ends no other."""


def is_open(attribute: str) -> bool:
    """Whether values stand side by side, until one is named as ended."""
    return attribute == WISH or attribute.startswith(f"{HOLDS} ")


def is_certain(attribute: str) -> bool:
    """Whether a thing has one value of the attribute at a time, so that a newer one stands without further words."""
    return attribute in CERTAIN or attribute.startswith(CERTAIN_PREFIXES)


def is_multiple(attribute: str) -> bool:
    """Whether a thing may have many values of the attribute."""
    return attribute.partition(" ")[0] in MULTIPLE


def asking_words(attribute: str) -> frozenset[str]:
    """The words that a question about the attribute may have, besides those of the statement."""
    words = attribute.split()
    return frozenset(_ASKING_WORDS.get(words[0], "").split()).union(words)
