"""Regular expressions that are compiled at their first use. Pure.

Compiling those of this package takes longer than importing all the rest of it, and most commands use none of them.
"""

import re
from collections.abc import Callable
from functools import cache


def lazy(pattern: str, flags: re.RegexFlag = re.NOFLAG) -> Callable[[], re.Pattern[str]]:
    """A function that gives the compiled pattern, the same one every time."""

    @cache
    def compiled() -> re.Pattern[str]:
        return re.compile(pattern, flags)

    return compiled
