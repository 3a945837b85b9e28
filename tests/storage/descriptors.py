"""What files this process has open."""

import os
from contextlib import suppress
from pathlib import Path


def open_below(path: Path) -> list[str]:
    """The files open at `path` or below it, once a descriptor. Threads may close others while this looks."""
    found = []
    for link in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):
            found.append(os.readlink(link))  # noqa: PTH115 - pathlib would make a path of "pipe:[…]"
    return [target for target in found if Path(target) == path or path in Path(target).parents]
