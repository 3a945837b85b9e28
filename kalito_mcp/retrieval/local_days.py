"""The days of many moments in a time zone. Pure."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from kalito_mcp.domain.zone import DAY_MS, EPOCH_DAY, Zone

_QUARTER_MS: Final = 900_000
"""Clocks are moved at a quarter of an hour of UTC, except before 1972 in a few places."""


def local_days(zone: Zone, moments: NDArray[np.int64]) -> NDArray[np.int64]:
    """The day of each moment, as an ordinal. The zone is asked once for each day of UTC, where the whole day has one
    offset, and else once for each quarter of an hour."""
    days, of_day = np.unique(moments // DAY_MS, return_inverse=True)
    first, last = (
        np.array([zone.offset_ms(int(day) * DAY_MS + later) for day in days], dtype=np.int64)
        for later in (0, DAY_MS - 1)
    )
    offsets = first[of_day]
    is_moved = (first != last)[of_day]
    quarters, of_quarter = np.unique(moments[is_moved] // _QUARTER_MS, return_inverse=True)
    moved = np.array([zone.offset_ms(int(quarter) * _QUARTER_MS) for quarter in quarters], dtype=np.int64)
    offsets[is_moved] = moved[of_quarter]
    found: NDArray[np.int64] = (moments + offsets) // DAY_MS + EPOCH_DAY
    return found
