"""INTERIM: to be replaced as a whole by the calibrated counters."""

import math
import re

from kalito_mcp.errors import ConfigurationError
from kalito_mcp.ports.tokens import TokenCounter

_PIECE = re.compile(r"[A-Za-z]{1,7}|\d{1,3}|[^\sA-Za-z\d]|\n")


class CharsCounter:
    name = "chars"

    def count(self, text: str) -> int:
        return math.ceil(len(text) * 0.75)


class CalibratedCounter:
    name = "calibrated"

    def __init__(self, safety_factor: float = 1.1) -> None:
        self._factor = safety_factor

    def count(self, text: str) -> int:
        return math.ceil(self._factor * len(_PIECE.findall(text)))


def token_counter(name: str, *, safety_factor: float | None = None) -> TokenCounter:
    if name == "chars":
        return CharsCounter()
    if name == "calibrated":
        return CalibratedCounter(safety_factor or 1.1)
    raise ConfigurationError(f"unknown counter {name}")
