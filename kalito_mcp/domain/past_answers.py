"""The values of past answers: an earlier question that asks the same, the replies to it, and the feedback on both."""

from dataclasses import dataclass
from typing import Any, Final

from kalito_mcp.domain.time import to_iso

_DECIMALS: Final = 4


@dataclass(frozen=True, slots=True)
class AnswerFound:
    """One reply. `record_ids` are the messages that say it, newest first. `given_at` is when it was said last;
    `feedback` sums its labels: up +1, down -1, retry -0.5."""

    text: str
    record_ids: tuple[str, ...]
    given_at: int
    feedback: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {
            "text": self.text,
            "message_ids": list(self.record_ids),
            "given_at": to_iso(self.given_at),
            "feedback": round(self.feedback, _DECIMALS),
        }


@dataclass(frozen=True, slots=True)
class PastAnswer:
    """A question asked before, in its newest wording, with its answers, best liked first. `record_ids` are the messages
    that ask it, newest first. `similarity` is how far it asks the same, in [0, 1]. `up`, `down` and `retry` count the
    feedback on it and on all replies to it."""

    question: str
    record_ids: tuple[str, ...]
    similarity: float
    answers: tuple[AnswerFound, ...]
    up: int = 0
    down: int = 0
    retry: int = 0

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {
            "question": self.question,
            "answers": [one.to_dict() for one in self.answers],
            "message_ids": list(self.record_ids),
            "similarity": round(self.similarity, _DECIMALS),
            "up": self.up,
            "down": self.down,
            "retry": self.retry,
        }
