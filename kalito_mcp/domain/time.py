"""Time at the border. Inside, a moment is an int: milliseconds since 1970-01-01T00:00:00Z. Pure."""

import re
from datetime import UTC, datetime, timedelta
from typing import Final

from kalito_mcp.errors import InvalidInput

_DAY_MS: Final = 86_400_000
_MINUTE_MS: Final = 60_000
_SECOND_MS: Final = 1_000
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
    """The last millisecond of what an ISO 8601 text names: of a day, a minute or a second; a fraction is exact.

    Raises:
        InvalidInput: as `from_iso`.
    """
    moment = from_iso(text, field)
    clock = re.split("[ T]", text.strip(), maxsplit=1)[1:]
    if not clock:
        return moment + _DAY_MS - 1
    digits = re.split("[Z+-]", clock[0], maxsplit=1)[0]
    if "." in digits or "," in digits:
        return moment
    is_to_the_second = digits.count(":") > 1 or len(digits.replace(":", "")) > len("HHMM")
    return moment + (_SECOND_MS if is_to_the_second else _MINUTE_MS) - 1
