"""Summarises without a language model: reads, judges the sentences, chooses among them. Stores nothing."""

from collections.abc import Sequence
from functools import partial

from kalito_mcp.domain.records import ConversationSummary, MessageWithImportance, Role
from kalito_mcp.kinds.judge import SentenceJudge
from kalito_mcp.kinds.own import own_words
from kalito_mcp.runtime.long_texts import aside
from kalito_mcp.summaries.extractive import Draft, read_messages, read_summaries, write


class Digester:
    """Writes extractive summaries."""

    def __init__(self, judge: SentenceJudge) -> None:
        self._judge = judge

    async def summarize(self, messages: Sequence[MessageWithImportance], *, max_chars: int) -> str:
        """The summary of the messages, of at most `max_chars` characters. No messages: NOTHING_TO_SUMMARIZE; all of
        them hidden: NOTHING_IN_SIGHT."""
        return await self._written(await self._read(messages), max_chars)

    async def fold(self, summaries: Sequence[ConversationSummary], *, max_chars: int) -> str:
        """The summary of consecutive summaries, oldest first. No summaries: NOTHING_TO_SUMMARIZE; none of them
        informative: NOTHING_IN_SIGHT."""
        return await self._written(await aside(partial(read_summaries, summaries)), max_chars)

    async def prepare(self, parts: Sequence[MessageWithImportance | ConversationSummary]) -> None:
        """Judge the sentences of messages or of summaries, so that a transaction which summarises them soon does not
        wait for a model."""
        messages = [one for one in parts if isinstance(one, MessageWithImportance)]
        summaries = [one for one in parts if isinstance(one, ConversationSummary)]
        read = await self._read(messages), await aside(partial(read_summaries, summaries))
        await self._judge.judge([one.sentence for draft in read for one in draft.said])

    async def _read(self, messages: Sequence[MessageWithImportance]) -> Draft:
        prompts = [one for one in messages if one.role is Role.USER and not one.is_hidden]
        own = await own_words(self._judge, [one.text for one in prompts])
        by_seq = {prompt.seq: one for prompt, one in zip(prompts, own, strict=True)}
        return await aside(partial(read_messages, messages, by_seq))

    async def _written(self, draft: Draft, max_chars: int) -> str:
        reading = await self._judge.read([one.sentence for one in draft.said])
        return await aside(partial(write, draft, *reading, max_chars=max_chars))
