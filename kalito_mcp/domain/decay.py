"""How a record loses rank with age. Pure; computed when it is read, never stored, and nothing sweeps.

    retention = 2 ^ (-days since it was last used / half-life)
    half-life = half_life_days * (1 + importance_weight * importance) * (1 + log2(1 + usage_count))

Decay orders what is found, and nothing more: a record that has faded is found as before, and never hidden or removed
for it. A critical record does not fade.
"""

import math
from dataclasses import dataclass
from typing import Final

from kalito_mcp.domain.validation import Policy, bounded

# 2 ** -1074 is the smallest number above 0.
_MOST_HALVINGS: Final = 1_000.0


@dataclass(frozen=True, slots=True)
class DecayPolicy(Policy):
    """How fast rank falls, and how far: to `floor` of what it would be, for what is endlessly old.

    `half_life_days` is that of a record of importance 0 which was never used; one of importance 1 lasts
    `1 + importance_weight` times as long.
    """

    half_life_days: float = bounded(90.0, above=0)
    importance_weight: float = 4.0
    floor: float = bounded(0.9, most=1)


DEFAULT_DECAY: Final = DecayPolicy()


def retention(
    *,
    importance: float,
    usage_count: int,
    age_days: float,
    is_critical: bool,
    policy: DecayPolicy = DEFAULT_DECAY,
) -> float:
    """How much of a record time has left, in (0, 1]; 1 where it is critical.

    `age_days` counts from its last use, or from its creation where it has none; a moment to come, or NaN, counts as
    now. An importance outside [0, 1] is clamped, NaN to 0. It never raises: it is read for every hit of a search.
    """
    if is_critical or not age_days > 0:
        return 1.0
    # In this order NaN becomes 0.
    clamped = min(1.0, max(0.0, importance))
    half_life_days = policy.half_life_days * (1 + policy.importance_weight * clamped)
    half_life_days *= 1 + math.log2(1 + max(0, usage_count))
    return float(2.0 ** -min(_MOST_HALVINGS, age_days / half_life_days))


def decayed(score: float, retention: float, policy: DecayPolicy = DEFAULT_DECAY) -> float:
    """What is left of a score of at least 0: all of it at retention 1, and never less than `floor` of it."""
    return score * (policy.floor + (1 - policy.floor) * retention)
