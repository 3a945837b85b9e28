"""How important a message is: a score in [0, 1]. Pure.

It reads only surface signs of one message, never the conversation, so it is cheap enough for every message.
Source: `scoreMessageImportance` of the memory manager's reference.
"""

from dataclasses import dataclass
from typing import Final

from kalito_mcp.domain.records import Role
from kalito_mcp.domain.validation import Policy, bounded

_QUESTION_OPENERS: Final = ("what", "how", "why")
# Sums of these bonuses miss their decimal value by a few ulp: 0.5 + 0.2 + 0.1 + 0.05 is 0.8500000000000001.
_DECIMALS: Final = 6


@dataclass(frozen=True, slots=True)
class ImportancePolicy(Policy):
    """A message's base score, and what each sign adds to it. A text of more than `long_from` characters is long."""

    base: float = bounded(0.5, most=1)
    question: float = bounded(0.2, most=1)
    code: float = bounded(0.15, most=1)
    problem: float = bounded(0.1, most=1)
    length: float = bounded(0.1, most=1)
    long_from: int = 200
    assistant: float = bounded(0.05, most=1)


DEFAULT_IMPORTANCE: Final = ImportancePolicy()


def score_importance(role: Role, text: str, policy: ImportancePolicy = DEFAULT_IMPORTANCE) -> float:
    """The policy's base plus a bonus for each sign in the lower-cased text, at most 1.0.

    Signs are substrings, as in the specification: `classroom` counts as code. Rounded to six decimals.
    """
    lowered = text.lower()
    score = policy.base
    if "?" in lowered or lowered.startswith(_QUESTION_OPENERS):
        score += policy.question
    if "```" in lowered or "function" in lowered or "class" in lowered:
        score += policy.code
    if "error" in lowered or "problem" in lowered or "issue" in lowered:
        score += policy.problem
    if len(text) > policy.long_from:
        score += policy.length
    if role == Role.ASSISTANT:
        score += policy.assistant
    return min(round(score, _DECIMALS), 1.0)
