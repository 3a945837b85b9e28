"""Time and identity from outside, so that tests can script them."""

from typing import Protocol


class Clock(Protocol):
    """Wall time for timestamps, steady time for durations."""

    def now_ms(self) -> int:
        """Milliseconds since 1970-01-01T00:00:00Z."""

    def steady_s(self) -> float:
        """Seconds since some fixed point. Never goes back."""


class IdSource(Protocol):
    """New ids."""

    def record_id(self, prefix: str, now_ms: int) -> str:
        """`<prefix>_<now_ms>_<nine random characters of 0-9a-z>`."""

    def session_id(self) -> str:
        """An unguessable session handle of at least 128 random bits."""
