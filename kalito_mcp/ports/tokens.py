"""How long a text is for a language model."""

from dataclasses import dataclass
from typing import Protocol

from kalito_mcp.domain.validation import Policy


@dataclass(frozen=True, slots=True)
class TokenPolicy(Policy):
    """Which counter is used: `calibrated`, `chars`, `tiktoken` or `tiktoken:<encoding>`. The calibrated counter
    multiplies its best estimate by `safety_factor`; None means its default."""

    counter: str = "calibrated"
    safety_factor: float | None = None


class TokenCounter(Protocol):
    """Counts tokens. The same text always has the same count.

    Counts add up safely over lines: `count(a + "\\n" + b) <= count(a) + count("\\n") + count(b)`, so a context
    packed by the counts of its lines also fits as a whole.
    """

    @property
    def name(self) -> str:
        """The counter's name, such as `calibrated`, `chars` or `tiktoken:o200k_base`."""

    def count(self, text: str) -> int:
        """The number of tokens in the text; 0 for an empty text."""
