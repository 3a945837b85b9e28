"""What of a parametrized test runs in each check, and what only at length in `make campaigns`."""

from collections.abc import Iterable
from typing import Any

import pytest

LATER = pytest.mark.campaign


def first_of(cases: Iterable[Any], count: int = 1) -> list[Any]:
    """The cases, of which all but the first `count` are marked `campaign`. A tuple is the arguments of one case."""
    return [
        one if place < count else pytest.param(*(one if isinstance(one, tuple) else (one,)), marks=LATER)
        for place, one in enumerate(cases)
    ]
