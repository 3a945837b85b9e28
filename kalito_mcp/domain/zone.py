"""A time zone: which day of the calendar a moment is in, and when a day begins. Stored moments stay in UTC.

A day is a proleptic Gregorian ordinal: 1 is January 1 of the year 1. A moment is milliseconds since 1970. Where a clock
is moved, a day has 23 or 25 hours.
"""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import lru_cache
from typing import Final

DAY_MS: Final = 86_400_000
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
EPOCH_DAY: Final = EPOCH.toordinal()
MILLISECOND: Final = timedelta(milliseconds=1)
OLDEST_MS: Final = (datetime.min.replace(tzinfo=UTC) - EPOCH) // MILLISECOND
NEWEST_MS: Final = (datetime.max.replace(tzinfo=UTC) - EPOCH) // MILLISECOND
"""The years 1 to 9999: only these moments have an ISO 8601 date."""

_LAST_DAY: Final = date.max.toordinal()
_OUT_OF_RANGE: Final = (OverflowError, OSError, ValueError)
"""Errors of an operating system's clock for a year that it does not know."""


@dataclass(frozen=True, slots=True)
class Zone:
    """The zone of `rules`; None means the one that the operating system is set to.

    Every result is within the years 1 to 9999. For a year that the operating system's clock does not know, UTC is used.
    """

    rules: tzinfo | None = UTC

    def offset_ms(self, moment_ms: int) -> int:
        """How far clocks are ahead of UTC at the moment; negative if behind."""
        if self.rules is UTC:
            return 0
        try:
            local = (EPOCH + timedelta(milliseconds=moment_ms)).astimezone(self.rules)
        except _OUT_OF_RANGE:
            return 0
        return (local.utcoffset() or timedelta()) // MILLISECOND

    def day(self, moment_ms: int) -> int:
        """The day that the moment is in."""
        return _day(self, moment_ms)

    def date(self, moment_ms: int) -> str:
        """The day that the moment is in, as `2026-03-04`."""
        return date.fromordinal(self.day(moment_ms)).isoformat()

    def first_ms(self, day: int) -> int:
        """The first moment of the day."""
        return OLDEST_MS if day <= 1 else self.moment_ms(datetime.fromordinal(day))

    def last_ms(self, day: int) -> int:
        """The last moment of the day; its first one if clocks skipped the whole day."""
        if day >= _LAST_DAY:
            return NEWEST_MS
        return max(self.first_ms(day), self.first_ms(day + 1) - 1)

    def moment_ms(self, local: datetime) -> int:
        """The moment at which clocks show this date and time.

        Ambiguous times are the first of the two; skipped times move forward by the gap.
        """
        try:
            # Without rules, a datetime without a zone is read by the operating system's clock.
            moment = local.astimezone() if self.rules is None else local.replace(tzinfo=self.rules)
        except _OUT_OF_RANGE:
            moment = local.replace(tzinfo=UTC)
        return max(OLDEST_MS, min((moment - EPOCH) // MILLISECOND, NEWEST_MS))

    def local(self, moment_ms: int) -> datetime:
        """The moment as clocks show it, with their offset."""
        moment = EPOCH + timedelta(milliseconds=moment_ms)
        try:
            return moment.astimezone(self.rules)
        except _OUT_OF_RANGE:
            return moment

    def offset(self, moment_ms: int) -> str:
        """The offset at the moment, as `+02:00`."""
        minutes = self.offset_ms(moment_ms) // 60_000
        return f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02d}:{abs(minutes) % 60:02d}"

    def minute(self, moment_ms: int) -> str:
        """The moment as clocks show it, as `2026-03-04 05:06`."""
        return self.local(moment_ms).isoformat(" ", "minutes")[:16]


@lru_cache(maxsize=4_096)
def _day(zone: Zone, moment_ms: int) -> int:
    # Contexts name the days of the same messages many times, and the operating system's clock takes microseconds.
    return max(1, min((moment_ms + zone.offset_ms(moment_ms)) // DAY_MS + EPOCH_DAY, _LAST_DAY))


UTC_ZONE: Final = Zone()
