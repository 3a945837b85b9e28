"""How a record loses rank with age. Pure: computed on each read, never stored.

    retention = 2 ^ (-days since it was last used / half-life)
    half-life = half_life_days * (1 + importance_weight * importance) * (1 + log2(1 + usage_count))

Decay only orders hits: it never hides or removes a record. A critical record does not decay.
"""

import math
from dataclasses import dataclass
from typing import Final

from kalito_mcp.domain.validation import Policy, bounded

# Keeps the result above 0: 2 ** -1074 is the smallest positive float.
_MOST_HALVINGS: Final = 1_000.0


@dataclass(frozen=True, slots=True)
class DecayPolicy(Policy):
    """How fast and how far rank falls. `floor` is the share that even the oldest record keeps.

    `half_life_days` is for an unused record of importance 0. At importance 1 it is `1 + importance_weight` times as
    long.
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
    """The share of its rank that a record keeps, in (0, 1]; 1 for a critical record.

    `age_days` counts from its last use, or from its creation if never used. A negative age or NaN counts as 0.
    `importance` is clamped to [0, 1], NaN to 0. It never raises, because every hit of a search needs it.
    """
    if is_critical or not age_days > 0:
        return 1.0
    # With the arguments in this order, NaN becomes 0.
    clamped = min(1.0, max(0.0, importance))
    half_life_days = policy.half_life_days * (1 + policy.importance_weight * clamped)
    half_life_days *= 1 + math.log2(1 + max(0, usage_count))
    return float(2.0 ** -min(_MOST_HALVINGS, age_days / half_life_days))


def decayed(score: float, retention: float, policy: DecayPolicy = DEFAULT_DECAY) -> float:
    """The score, which must be 0 or more, after decay: all of it at retention 1, at least `floor` of it always."""
    return score * (policy.floor + (1 - policy.floor) * retention)
