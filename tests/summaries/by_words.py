"""Summaries without the model: judged by explicit words, or as a test says."""

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from kalito_mcp.domain.records import ConversationSummary, MessageWithImportance
from kalito_mcp.kinds.cues import judged_by_words
from kalito_mcp.kinds.judge import SentenceJudge
from kalito_mcp.kinds.judged import Judged, Kind, Sentence
from kalito_mcp.summaries.digester import Digester
from kalito_mcp.summaries.extractive import Draft, read_messages, read_summaries, write

BY_WORDS: Final = Digester(SentenceJudge(None))
Judge = Callable[[Sentence], Judged]


def a_fact(sentence: Sentence) -> Judged:
    """Every sentence is a fact worth keeping, as likely as not."""
    return Judged(Kind.FACT, 0.6, 0.0)


def summarize_messages(messages: Sequence[MessageWithImportance], *, max_chars: int, judge: Judge | None = None) -> str:
    """The summary if `judge` says what the sentences are, none of which is like another; or explicit words do."""
    return _written(read_messages(messages), max_chars, judge)


def fold_summaries(summaries: Sequence[ConversationSummary], *, max_chars: int, judge: Judge | None = None) -> str:
    """The same of summaries."""
    return _written(read_summaries(summaries), max_chars, judge)


def _written(draft: Draft, max_chars: int, judge: Judge | None) -> str:
    sentences = [one.sentence for one in draft.said]
    if judge is None:
        return write(draft, judged_by_words(sentences), None, max_chars=max_chars)
    unlike = np.eye(len(sentences), dtype=np.float32)
    return write(draft, list(map(judge, sentences)), unlike, max_chars=max_chars)
