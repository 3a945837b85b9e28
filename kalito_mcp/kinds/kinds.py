"""The kinds of sentences, and what is said of one."""

from enum import StrEnum
from typing import Final, NamedTuple


class Kind(StrEnum):
    """What a sentence of a conversation does. The order is that of the columns of the weights (`kinds.head`)."""

    RULE = "rule"
    DECISION = "decision"
    FACT = "fact"
    OPEN = "open"
    OUTCOME = "outcome"
    PLAN = "plan"
    CHANGE = "change"
    REQUEST = "question_or_request"
    CHATTER = "chatter"


PASSING: Final = frozenset({Kind.REQUEST, Kind.CHATTER})
"""Nobody keeps these."""


class Sentence(NamedTuple):
    """A sentence, and whether the assistant said it."""

    text: str
    is_assistant: bool = False


class Judged(NamedTuple):
    """What a sentence is: its likeliest kind among those that are kept, how likely somebody would keep it, and how
    likely it is the person's rather than the project's (both 0 to 1)."""

    kind: Kind
    worth: float
    is_personal: float
