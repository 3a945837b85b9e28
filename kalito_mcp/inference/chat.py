"""Language model servers over HTTP: Ollama's `/api/chat` and the OpenAI-compatible `/chat/completions`."""

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from kalito_mcp.inference.http import HttpModel
from kalito_mcp.ports.chat import ChatRequest

_THINKING: Final = ("<think>", "</think>")


class _HttpChat(HttpModel):
    """Shared by the two kinds of server."""

    _ANSWER: ClassVar[tuple[str | int, ...]]

    async def complete(self, request: ChatRequest) -> str:
        """The answer's text, stripped, without the leading thoughts of a reasoning model; may be empty.

        At most 1 + `max_retries` calls reach the server, and all end within `total_timeout_s`.

        Raises:
            ModelUnavailable: not reachable, too slow, refused, or the circuit breaker is open.
            ModelReplyInvalid: the answer is too large or not a chat completion.
        """
        return await self._ask(self._payload(request), request.model, self._text_in)

    def _payload(self, request: ChatRequest) -> Mapping[str, Any]:
        messages = [{"role": "system", "content": request.system}, {"role": "user", "content": request.prompt}]
        return {"model": request.model, "messages": messages, "stream": False} | self._options(request)

    def _options(self, request: ChatRequest) -> dict[str, Any]:
        raise NotImplementedError

    def _text_in(self, answer: Any) -> str:
        for step in self._ANSWER:
            answer = _item(answer, step)
        if not isinstance(answer, str):
            raise self._invalid("its answer is JSON, but not a chat completion")
        text = answer.strip()
        opening, closing = _THINKING
        if text.startswith(opening):
            _, closed, text = text.partition(closing)
            if not closed:
                what = "it spent all its tokens on thinking and did not answer"
                raise self._invalid(what, "use a model that does not think")
        return text.strip()


class OllamaChat(_HttpChat):
    """Ollama's own chat endpoint; `url` is like http://127.0.0.1:11434."""

    _PATH = "/api/chat"
    _ANSWER = ("message", "content")

    def _options(self, request: ChatRequest) -> dict[str, Any]:
        return {"options": {"temperature": request.temperature, "num_predict": request.max_tokens}}


class OpenAIChat(_HttpChat):
    """Any OpenAI-compatible server; `url` is like https://api.openai.com/v1."""

    _PATH = "/chat/completions"
    _ANSWER = ("choices", 0, "message", "content")

    def _options(self, request: ChatRequest) -> dict[str, Any]:
        return {"temperature": request.temperature, "max_tokens": request.max_tokens}


def _item(value: Any, step: str | int) -> Any:
    if isinstance(value, dict):
        return value.get(step)
    return value[step] if isinstance(value, list) and isinstance(step, int) and step < len(value) else None
