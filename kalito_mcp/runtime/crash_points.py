"""Points where a test can kill the process, to check that its work is resumed. Off unless KALITO_CRASH_POINT is set."""

import os
import signal
from typing import Final

VARIABLE: Final = "KALITO_CRASH_POINT"


def crash_point(name: str) -> None:
    """Kill this process as `kill -9` does, if the environment variable names this point."""
    if os.environ.get(VARIABLE) == name:
        os.kill(os.getpid(), getattr(signal, "SIGKILL", signal.SIGTERM))
