"""What a check of a memory has found. Pure."""

from dataclasses import dataclass
from enum import StrEnum


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
