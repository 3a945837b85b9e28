"""Language models, as far as kalito uses them: one question, one answer, a time limit."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One completion. `max_tokens` bounds the answer, `temperature` lies in [0, 2]."""

    model: str
    system: str
    prompt: str
    temperature: float
    max_tokens: int


class ChatModel(Protocol):
    """One configured model server."""

    @property
    def is_local(self) -> bool:
        """Whether the text stays on this machine or in this network."""
        ...

    async def complete(self, request: ChatRequest) -> str:
        """The answer's text, stripped.

        Raises:
            ModelUnavailable: not reachable, too slow, refused, or the circuit breaker is open.
            ModelReplyInvalid: the answer is not a chat completion.
        """
        ...


class ChatModels(Protocol):
    """Which server answers for which model id."""

    def find(self, model_id: str) -> ChatModel | None:
        """The server configured for the model id; None where there is none."""
        ...
