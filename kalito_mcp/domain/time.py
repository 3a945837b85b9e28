"""ISO 8601 in and out. Inside, a moment is an int: milliseconds since 1970-01-01T00:00:00Z. Pure."""

import re
from datetime import date, datetime, timedelta, timezone
from math import isfinite
from typing import Any, Final

from kalito_mcp.domain.zone import DAY_MS, EPOCH, MILLISECOND, NEWEST_MS, OLDEST_MS, UTC_ZONE, Zone
from kalito_mcp.errors import InvalidInput

__all__ = ["DAY_MS", "NEWEST_MS", "OLDEST_MS", "from_iso", "last_moment", "moment_as_text", "to_iso", "zone_of"]
# The groups are what may follow the hour: minute, second, fraction. The zone is not captured.
_CLOCK: Final = re.compile(r"\D\d\d(:?\d\d)?(:?\d\d)?([.,]\d+)?(?:Z|[+-][\d:.]+)?$")
_UTC: Final = re.compile(r"\s*(?:UTC|GMT)$", re.IGNORECASE)
_NUMBER: Final = re.compile(r"(\d{9,10}|\d{12,13})(?:\.\d*)?", re.ASCII)
_LEAST_NUMBER: Final = 100_000_000
_MOST_DIGITS_OF_SECONDS: Final = 10
_LENGTHS_MS: Final = (3_600_000, 60_000, 1_000, 1)
"""Length of a time written to the hour, minute, second or fraction."""


def to_iso(moment_ms: int) -> str:
    """The moment in UTC, as `2026-03-04T05:06:07.089Z`."""
    moment = EPOCH + timedelta(milliseconds=moment_ms)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}Z".zfill(24)


def from_iso(text: str, field: str = "created_at", zone: Zone = UTC_ZONE) -> int:
    """Parse an ISO 8601 date or date-time into milliseconds since 1970. Without an offset it is a time of the zone. UTC
    may be written out, and the moment may be a number: seconds since 1970 in 9 or 10 digits, milliseconds in 12 or 13.

    Raises:
        InvalidInput: the text is not ISO 8601, or is outside the years 1 to 9999.
    """
    plain = _plain(text)
    try:
        moment = datetime.fromisoformat(plain)
        moment_ms = zone.moment_ms(moment) if moment.tzinfo is None else (moment - EPOCH) // MILLISECOND
    except (ValueError, OverflowError):
        moment_ms = NEWEST_MS + 1
    # An offset can move a moment of the year 1 or 9999 outside these years.
    if not OLDEST_MS <= moment_ms <= NEWEST_MS:
        raise InvalidInput(
            f"{field}={text[:40]!r} is not an ISO 8601 time between the years 1 and 9999; "
            "write it like 2026-03-04T05:06:07Z"
        )
    return moment_ms


def moment_as_text(given: Any) -> Any:
    """A number of seconds or milliseconds since 1970 as a text for `from_iso`; anything else as it is."""
    if isinstance(given, float) and isfinite(given):
        given = round(given)
    return str(given) if type(given) is int and _LEAST_NUMBER <= given <= NEWEST_MS else given


def last_moment(text: str, field: str, zone: Zone = UTC_ZONE) -> int:
    """The last millisecond of the day, hour, minute or second that an ISO 8601 text names. A fraction of a second is
    exact. A week without a day means its Monday. Without an offset it is a time of the zone.

    Raises:
        InvalidInput: the text is not ISO 8601, or is outside the years 1 to 9999.
    """
    try:
        return zone.last_ms(date.fromisoformat(text.strip()).toordinal())
    except ValueError:
        return min(from_iso(text, field, zone) + _length_ms(_plain(text)) - 1, NEWEST_MS)


def zone_of(text: str, moment_ms: int, zone: Zone) -> Zone:
    """The zone of somebody who writes the moment like this: one with the text's offset, or else `zone`.

    `Z` says that the moment is given in UTC, and nothing about where somebody is (RFC 9557). If clocks of `zone` have
    the text's offset at the moment, it is `zone`, which also knows when clocks are moved.
    """
    try:
        offset = datetime.fromisoformat(_plain(text)).utcoffset()
    except ValueError:  # in words
        return zone
    if offset is None or _plain(text)[-1:] in "zZ" or offset // MILLISECOND == zone.offset_ms(moment_ms):
        return zone
    return Zone(timezone(offset))


def _plain(text: str) -> str:
    """The text as ISO 8601 writes it: `2026-03-04 12:00 UTC` and numbers of seconds or milliseconds with a Z."""
    text = text.strip()
    if (number := _NUMBER.fullmatch(text)) is not None:
        is_of_seconds = len(number[1]) <= _MOST_DIGITS_OF_SECONDS
        return to_iso(int(number[1]) * (1_000 if is_of_seconds else 1))
    return _UTC.sub("Z", text)


def _length_ms(text: str) -> int:
    """The length of the hour, minute, second or moment that the text names."""
    clock = _CLOCK.search(text)
    return 1 if clock is None else _LENGTHS_MS[sum(part is not None for part in clock.groups())]
