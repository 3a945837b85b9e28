"""Where tests end a process, to see that what was begun is resumed. Off unless KALITO_CRASH_POINT names one."""

import os
import signal
from typing import Final

VARIABLE: Final = "KALITO_CRASH_POINT"


def crash_point(name: str) -> None:
    """End this process as `kill -9` does where the environment names this point."""
    if os.environ.get(VARIABLE) == name:
        os.kill(os.getpid(), getattr(signal, "SIGKILL", signal.SIGTERM))
