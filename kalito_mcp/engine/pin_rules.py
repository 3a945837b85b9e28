"""The shapes of sentences that are worth a pin. Pure.

A rule is tried where one of its trigger words stands in the sentence; it holds where its pattern matches and, where
it has one, its second pattern matches too. The first rule that holds decides, so the rules are in order of
importance. Patterns read one sentence, are linear in its length, and see `'` for every apostrophe.
"""

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from kalito_mcp.domain.records import PinType

HEALTH_IMPORTANCE: Final = 0.78
IDENTITY_IMPORTANCE: Final = 0.76
DECISION_IMPORTANCE: Final = 0.74
CONTACT_IMPORTANCE: Final = 0.72
DATE_IMPORTANCE: Final = 0.72
PREFERENCE_IMPORTANCE: Final = 0.7
FACT_IMPORTANCE: Final = 0.66
CONCEPT_IMPORTANCE: Final = 0.56


@dataclass(frozen=True, slots=True)
class PinRule:
    """One shape. Without `triggers` it is tried on every sentence of a message that is searched at all."""

    name: str
    importance: float
    triggers: frozenset[str]
    pattern: re.Pattern[str]
    pin_type: PinType = PinType.AUTO
    also: re.Pattern[str] | None = None
    for_assistant: bool = False
