"""ISO 8601 in and out. Inside, a moment is an int: milliseconds since 1970-01-01T00:00:00Z. Pure."""

import re
from datetime import UTC, date, datetime, timedelta
from typing import Final

from kalito_mcp.errors import InvalidInput

DAY_MS: Final = 86_400_000
# The groups are what may follow the hour: minute, second, fraction. The zone is not captured.
_CLOCK: Final = re.compile(r"\D\d\d(:?\d\d)?(:?\d\d)?([.,]\d+)?(?:Z|[+-][\d:.]+)?$")
_LENGTHS_MS: Final = (3_600_000, 60_000, 1_000, 1)
"""Length of a time written to the hour, minute, second or fraction."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)
OLDEST_MS: Final = (datetime.min.replace(tzinfo=UTC) - _EPOCH) // _MILLISECOND
NEWEST_MS: Final = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _MILLISECOND
"""The years 1 to 9999: only these moments have an ISO 8601 date."""


def to_iso(moment_ms: int) -> str:
    """The moment in UTC, as `2026-03-04T05:06:07.089Z`."""
    moment = _EPOCH + timedelta(milliseconds=moment_ms)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}Z".zfill(24)


def from_iso(text: str, field: str = "created_at") -> int:
    """Parse an ISO 8601 date or date-time into milliseconds since 1970. Without an offset it is UTC.

    Raises:
        InvalidInput: the text is not ISO 8601, or is outside the years 1 to 9999.
    """
    try:
        moment = datetime.fromisoformat(text.strip())
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        moment_ms = (moment - _EPOCH) // _MILLISECOND
    except (ValueError, OverflowError):
        moment_ms = NEWEST_MS + 1
    # An offset can move a moment of the year 1 or 9999 outside these years.
    if not OLDEST_MS <= moment_ms <= NEWEST_MS:
        raise InvalidInput(
            f"{field}={text[:40]!r} is not an ISO 8601 time between the years 1 and 9999; "
            "write it like 2026-03-04T05:06:07Z"
        )
    return moment_ms


def last_moment(text: str, field: str) -> int:
    """The last millisecond of the day, hour, minute or second that an ISO 8601 text names. A fraction of a second is
    exact. A week without a day means its Monday.

    Raises:
        InvalidInput: the text is not ISO 8601, or is outside the years 1 to 9999.
    """
    return min(from_iso(text, field) + _length_ms(text.strip()) - 1, NEWEST_MS)


def _length_ms(text: str) -> int:
    """The length of the day, hour, minute, second or moment that the text names."""
    try:
        date.fromisoformat(text)
    except ValueError:
        clock = _CLOCK.search(text)
        return 1 if clock is None else _LENGTHS_MS[sum(part is not None for part in clock.groups())]
    return DAY_MS
