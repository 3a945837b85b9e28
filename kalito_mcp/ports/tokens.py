"""How long a text is for a language model."""

from dataclasses import dataclass
from typing import Protocol

from kalito_mcp.domain.validation import Policy


@dataclass(frozen=True, slots=True)
class TokenPolicy(Policy):
    """Which counter counts: `calibrated`, `chars`, `tiktoken` or `tiktoken:<encoding>`. `safety_factor` is by how
    much the calibrated one counts above its best estimate; None leaves that to it."""

    counter: str = "calibrated"
    safety_factor: float | None = None


class TokenCounter(Protocol):
    """Counts tokens; the same text always gives the same count.

    Counts add up safely over lines: `count(a + "\\n" + b) <= count(a) + count("\\n") + count(b)`, so a context
    that was packed by the counts of its lines fits when it is counted whole.
    """

    @property
    def name(self) -> str:
        """What counts: `calibrated`, `chars`, `tiktoken:o200k_base`."""
        ...

    def count(self, text: str) -> int:
        """Tokens of the text, at least 0; the empty text has none."""
        ...
