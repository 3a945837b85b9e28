"""Regular expressions that are compiled at their first use. Pure.

Compiling all of them takes longer than importing the rest of this package, and most commands use none.
"""

import re
from collections.abc import Callable
from functools import cache


def lazy(pattern: str, flags: re.RegexFlag = re.NOFLAG) -> Callable[[], re.Pattern[str]]:
    """A function that returns the compiled pattern, the same object every time."""

    @cache
    def compiled() -> re.Pattern[str]:
        return re.compile(pattern, flags)

    return compiled
