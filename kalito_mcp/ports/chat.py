"""Language models: one question, one answer, a time limit."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One completion. `max_tokens` limits the answer. `temperature` is in [0, 2]."""

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

    async def complete(self, request: ChatRequest) -> str:
        """Return the text of the answer, without surrounding white space.

        Raises:
            ModelUnavailable: the server cannot be reached, is too slow or refuses, or the circuit breaker is open.
            ModelReplyInvalid: the server did not return a chat completion.
        """


class ChatModels(Protocol):
    """Which server answers for which model id."""

    def find(self, model_id: str) -> ChatModel | None:
        """The server configured for the model id, or None."""
