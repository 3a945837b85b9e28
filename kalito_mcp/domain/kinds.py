"""The kinds of sentences in a conversation."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final


class Kind(StrEnum):
    """Kinds of sentences, in the order of the columns of `kinds/weights.npy`."""

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

DIGEST: Final[Mapping[str, frozenset[Kind]]] = {
    "Decided": frozenset({Kind.DECISION, Kind.RULE, Kind.CHANGE}),
    "Learned": frozenset({Kind.FACT}),
    "Done": frozenset({Kind.OUTCOME}),
    "Open": frozenset({Kind.OPEN, Kind.PLAN}),
}
"""The headings of a session's digest in their order, and what stands below each."""

LASTING: Final = frozenset({Kind.RULE, Kind.DECISION, Kind.FACT, Kind.CHANGE})
"""Kinds that hold until somebody says otherwise."""

OF_ITS_SESSION: Final = frozenset({Kind.OPEN, Kind.OUTCOME})
"""The state at the end of a conversation: its digest says it, and later conversations may have changed it."""
