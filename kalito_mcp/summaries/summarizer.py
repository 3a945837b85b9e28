"""Writes summaries with the session's model, or without a model.

A conversation with a local model is summarised by that model, so that its text stays local; any other by the
configured cloud model. Every answer is validated. If the model has no server, fails, or does not return a summary, the
deterministic extractive summary is used. So there is always a summary, in time. It stores nothing, and no message
text reaches the log.
"""

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import anyio

from kalito_mcp.domain.records import ConversationSummary, MessageWithImportance, SummaryMethod
from kalito_mcp.domain.validation import Policy
from kalito_mcp.errors import ModelError
from kalito_mcp.ports.chat import ChatModel, ChatModels, ChatRequest
from kalito_mcp.summaries.digester import Digester
from kalito_mcp.summaries.extractive import keep_informative
from kalito_mcp.summaries.prompts import CLOUD_SUMMARY, LOCAL_SUMMARY, SUMMARY_OF_SUMMARIES, Prompt, fit_lines
from kalito_mcp.summaries.validation import ValidationPolicy, find_flaw

_log: Final = logging.getLogger("kalito.summaries")

_SHORT: Final = 240
"""Characters that a summary without a model may have, however short its messages are."""


_TEMPERATURE: Final = 0.1
_LOCAL_TOKENS, _CLOUD_TOKENS = 100, 300
"""Of a model's answer, at most."""

_LOCAL, _CLOUD = ValidationPolicy(max_characters=300), ValidationPolicy(max_characters=1_800)
"""Limits of an answer. The latter admits the 200 words that the cloud prompt asks for."""

_LOCAL_PROMPT, _CLOUD_PROMPT = 6_000, 48_000
"""Characters of the conversation in a prompt, at most: a long range fits into a small context."""

_MOST, _SHARE = 800, 0.205
"""Characters of a summary of messages without a model, and its share of their length, which may be `_SHORT`."""

_FOLD_MOST, _FOLD_MORE = 900, 1_100
"""The same of a summary of summaries, and for each further level."""


@dataclass(frozen=True, slots=True)
class SummaryPolicy(Policy):
    """`cloud_model` summarises sessions whose own model is not local."""

    cloud_model: str = "gpt-4.1-mini"


def length_of_summary(messages: Sequence[MessageWithImportance]) -> int:
    """The most characters of a summary of these messages without a model."""
    return min(_MOST, max(_SHORT, int(_SHARE * sum(len(message.text) for message in messages))))


def length_of_fold(summaries: Sequence[ConversationSummary]) -> int:
    """The most characters of a summary of these summaries without a model: more, the higher its level."""
    return _FOLD_MOST + _FOLD_MORE * max((summary.level for summary in summaries), default=0)


@dataclass(frozen=True, slots=True)
class WrittenSummary:
    """A summary's text and who wrote it.

    `model_id` is None unless a model wrote it. `flaw` says why the model's answer was not used; else it is None.
    """

    text: str
    method: SummaryMethod
    model_id: str | None
    flaw: str | None


class Summarizer:
    """Summarises messages, and folds summaries.

    `deadline_s` limits each call, whatever the model's client does. It should exceed the servers' `total_timeout_s`,
    which normally ends a call first.
    """

    def __init__(
        self, models: ChatModels, digester: Digester, policy: SummaryPolicy | None = None, *, deadline_s: float = 35.0
    ) -> None:
        self._models = models
        self._digester = digester
        self._policy = policy or SummaryPolicy()
        self._deadline_s = deadline_s

    def is_local_model(self, model_id: str) -> bool:
        """Whether the model's server is local. An unknown model is not local."""
        chat = self._models.find(model_id)
        return chat is not None and chat.is_local

    def summarization_model(self, session_model: str | None) -> str:
        """Return the session's own model if it is local, else the policy's cloud model."""
        if session_model and self.is_local_model(session_model):
            return session_model
        return self._policy.cloud_model

    def has_model(self, session_model: str | None) -> bool:
        """Whether a language model is asked for the summaries of a session."""
        return self._models.find(self.summarization_model(session_model)) is not None

    async def summarize(
        self, messages: Sequence[MessageWithImportance], *, session_model: str | None
    ) -> WrittenSummary:
        """Summarise the messages in a few sentences. A model never sees hidden messages.

        A model's failure never raises. No visible messages: the fixed sentence of `Digester.summarize`.
        """
        digest = partial(self._digester.summarize, messages, max_chars=length_of_summary(messages))
        shown = [message for message in messages if not message.is_hidden]
        if not shown:
            return _extractive(await digest())
        return await self._write(
            session_model,
            local_prompt=LOCAL_SUMMARY,
            cloud_prompt=CLOUD_SUMMARY,
            lines=[f"{message.speaker}: {message.text}" for message in shown],
            sources=[message.text for message in shown],
            without_model=digest,
        )

    async def fold(self, summaries: Sequence[ConversationSummary], *, session_model: str | None) -> WrittenSummary:
        """Fold consecutive summaries, oldest first, into one.

        A model's failure never raises. No informative summaries: the fixed sentence of `Digester.fold`.
        """
        digest = partial(self._digester.fold, summaries, max_chars=length_of_fold(summaries))
        parts = keep_informative(summaries)
        if not parts:
            return _extractive(await digest())
        return await self._write(
            session_model,
            local_prompt=SUMMARY_OF_SUMMARIES,
            cloud_prompt=SUMMARY_OF_SUMMARIES,
            lines=[f"Part {place}: {part.summary}" for place, part in enumerate(parts, start=1)],
            sources=[part.summary for part in parts],
            without_model=digest,
        )

    async def _write(
        self,
        session_model: str | None,
        *,
        local_prompt: Prompt,
        cloud_prompt: Prompt,
        lines: Sequence[str],
        sources: Sequence[str],
        without_model: Callable[[], Awaitable[str]],
    ) -> WrittenSummary:
        """Ask the model, or summarise without one."""
        model_id = self.summarization_model(session_model)
        chat = self._models.find(model_id)
        if chat is None:
            return _extractive(await without_model())
        prompt = local_prompt if chat.is_local else cloud_prompt
        text, flaw = await self._ask(chat, model_id, prompt, lines=lines, sources=sources)
        if flaw is None:
            return WrittenSummary(text, SummaryMethod.MODEL, model_id, None)
        _log.warning("using an extractive summary instead of %s: %s", model_id, flaw)
        return _extractive(await without_model(), flaw)

    async def _ask(
        self, chat: ChatModel, model_id: str, prompt: Prompt, *, lines: Sequence[str], sources: Sequence[str]
    ) -> tuple[str, str | None]:
        """Return the model's answer, and its flaw or None."""
        room = _LOCAL_PROMPT if chat.is_local else _CLOUD_PROMPT
        request = ChatRequest(
            model=model_id,
            system=prompt.system,
            prompt=prompt.wrap(fit_lines(lines, room)),
            temperature=_TEMPERATURE,
            max_tokens=_LOCAL_TOKENS if chat.is_local else _CLOUD_TOKENS,
        )
        try:
            with anyio.fail_after(self._deadline_s):
                text = await chat.complete(request)
        except TimeoutError:
            return "", f"it did not answer within {self._deadline_s:g} s"
        except ModelError as failure:
            return "", str(failure)
        flaw = find_flaw(text, sources, _LOCAL if chat.is_local else _CLOUD)
        return text, flaw and f"its answer {flaw}"


def _extractive(text: str, flaw: str | None = None) -> WrittenSummary:
    return WrittenSummary(text, SummaryMethod.EXTRACTIVE, None, flaw)
