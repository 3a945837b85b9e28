"""Time at the border. Inside, a moment is an int: milliseconds since 1970-01-01T00:00:00Z. Pure."""

import re
from datetime import UTC, date, datetime, timedelta
from typing import Final

from kalito_mcp.errors import InvalidInput

_DAY_MS: Final = 86_400_000
# What follows the hour: minute, second, fraction; then the zone, which is no part of them.
_CLOCK: Final = re.compile(r"\D\d\d(:?\d\d)?(:?\d\d)?([.,]\d+)?(?:Z|[+-][\d:.]+)?$")
_LENGTHS_MS: Final = (3_600_000, 60_000, 1_000, 1)
"""Of what is written to the hour, the minute, the second, and exactly."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)
OLDEST_MS: Final = (datetime.min.replace(tzinfo=UTC) - _EPOCH) // _MILLISECOND
NEWEST_MS: Final = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _MILLISECOND
"""The moments that have a date: the years 1 to 9999."""


def to_iso(moment_ms: int) -> str:
    """`2026-03-04T05:06:07.089Z`."""
    moment = _EPOCH + timedelta(milliseconds=moment_ms)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}Z".zfill(24)


def from_iso(text: str, field: str = "created_at") -> int:
    """Milliseconds since the epoch of an ISO 8601 date or date-time; without an offset it is read as UTC.

    Raises:
        InvalidInput: not ISO 8601, or outside the years 1 to 9999.
    """
    try:
        moment = datetime.fromisoformat(text.strip())
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        moment_ms = (moment - _EPOCH) // _MILLISECOND
    except (ValueError, OverflowError):
        moment_ms = NEWEST_MS + 1
    # The offset may carry a moment of these years out of them.
    if not OLDEST_MS <= moment_ms <= NEWEST_MS:
        raise InvalidInput(
            f"{field}={text[:40]!r} is not an ISO 8601 time between the years 1 and 9999; "
            "write it like 2026-03-04T05:06:07Z"
        )
    return moment_ms


def last_moment(text: str, field: str) -> int:
    """The last millisecond of what an ISO 8601 text names: of a day, an hour, a minute or a second; a fraction is
    exact. A week without a day is its Monday.

    Raises:
        InvalidInput: as `from_iso`.
    """
    return min(from_iso(text, field) + _length_ms(text.strip()) - 1, NEWEST_MS)


def _length_ms(text: str) -> int:
    """How long what an ISO 8601 text names lasts."""
    try:
        date.fromisoformat(text)
    except ValueError:
        clock = _CLOCK.search(text)
        return 1 if clock is None else _LENGTHS_MS[sum(part is not None for part in clock.groups())]
    return _DAY_MS
