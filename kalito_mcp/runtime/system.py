"""The machine's clocks, and ids from its randomness."""

import secrets
import time
from typing import Final

_ALPHABET: Final = "0123456789abcdefghijklmnopqrstuvwxyz"
_RECORD_ID_LENGTH: Final = 9


class SystemClock:
    """The machine's clocks."""

    def now_ms(self) -> int:
        """Wall time."""
        return time.time_ns() // 1_000_000

    def steady_s(self) -> float:
        """Monotonic time."""
        return time.monotonic()


class RandomIds:
    """Ids from the operating system's randomness."""

    def record_id(self, prefix: str, now_ms: int) -> str:
        """`pin_1730131234567_abc123xyz`."""
        return f"{prefix}_{now_ms}_{''.join(secrets.choice(_ALPHABET) for _ in range(_RECORD_ID_LENGTH))}"

    def session_id(self) -> str:
        """`session_` and 64 random bits."""
        return f"session_{secrets.token_hex(8)}"
