"""What a check of a memory has found. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

_SHOWN: Final = 5


class Verdict(StrEnum):
    """How a check ended."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "FAILED"


@dataclass(frozen=True, slots=True)
class Finding:
    """One check, how it ended, and what to do about it."""

    check: str
    verdict: Verdict
    detail: str


def finding_of(check: str, faults: Sequence[str], fine: str, remedy: str = "restore a backup") -> Finding:
    """The finding of a check that lists faults. `fine` says what holds if there are none."""
    if not faults:
        return Finding(check, Verdict.OK, fine)
    more = f" and {len(faults) - _SHOWN} more" if len(faults) > _SHOWN else ""
    return Finding(check, Verdict.FAILED, f"wrong: {'; '.join(faults[:_SHOWN])}{more}. To repair it, {remedy}")
