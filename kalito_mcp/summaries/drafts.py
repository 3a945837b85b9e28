"""Makes summaries ready to be stored from their text and what they are made of."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from kalito_mcp.domain.records import (
    SUMMARY_IMPORTANCE,
    ConversationSummary,
    MessageWithImportance,
    Origin,
    SummaryMethod,
    least_trusted,
)
from kalito_mcp.ports.clock import Clock, IdSource
from kalito_mcp.ports.conversations import SummaryDraft
from kalito_mcp.ports.tokens import TokenCounter
from kalito_mcp.safety.escaping import as_data
from kalito_mcp.summaries.summarizer import WrittenSummary
from kalito_mcp.text.analysis import index_text

_WITHOUT_MODEL: Final = "the model gave no usable summary, so this one was made without it; the server's log says why"


class SummaryDrafts:
    """Makes the drafts of summaries."""

    def __init__(self, counter: TokenCounter, clock: Clock, ids: IdSource) -> None:
        self._counter = counter
        self._clock = clock
        self._ids = ids

    def of_messages(self, messages: Sequence[MessageWithImportance], written: WrittenSummary) -> SummaryDraft:
        """The summary of these messages."""
        first, last = messages[0], messages[-1]
        moments = [message.created_at for message in messages]
        return self._draft(
            written,
            level=0,
            seqs=(first.seq, last.seq),
            message_ids=(first.record_id, last.record_id),
            moments=(min(moments), max(moments)),
            # Hidden messages count too, because they may be restored.
            origins=[message.origin for message in messages],
        )

    def of_summaries(self, parts: Sequence[ConversationSummary], written: WrittenSummary) -> SummaryDraft:
        """The fold of these summaries."""
        first, last = parts[0], parts[-1]
        return self._draft(
            written,
            level=first.level + 1,
            seqs=(first.start_seq, last.end_seq),
            message_ids=(first.start_message_id, last.end_message_id),
            moments=(min(part.started_at for part in parts), max(part.ended_at for part in parts)),
            origins=[part.origin for part in parts],
        )

    def _draft(
        self,
        written: WrittenSummary,
        *,
        level: int,
        seqs: tuple[int, int],
        message_ids: tuple[str, str],
        moments: tuple[int, int],
        origins: Sequence[Origin],
    ) -> SummaryDraft:
        now_ms = self._clock.now_ms()
        writers = (Origin.ASSISTANT,) if written.method is SummaryMethod.CALLER else ()
        return SummaryDraft(
            id=self._ids.record_id("summary", now_ms),
            text=written.text,
            level=level,
            start_seq=seqs[0],
            end_seq=seqs[1],
            start_message_id=message_ids[0],
            end_message_id=message_ids[1],
            started_at=moments[0],
            ended_at=moments[1],
            importance=SUMMARY_IMPORTANCE,
            tokens=self._counter.count(as_data(written.text)),
            method=written.method,
            model_id=written.model_id,
            created_at=now_ms,
            note=None if written.flaw is None else _WITHOUT_MODEL,
            indexed=index_text(written.text),
            origin=least_trusted((*writers, *origins)),
        )


def over(messages: Sequence[MessageWithImportance], draft: SummaryDraft) -> SummaryDraft:
    """The caller's summary, of these messages instead of more of them."""
    return replace(
        draft,
        start_seq=messages[0].seq,
        start_message_id=messages[0].record_id,
        started_at=min(message.created_at for message in messages),
        ended_at=max(message.created_at for message in messages),
        origin=least_trusted((Origin.ASSISTANT, *(message.origin for message in messages))),
    )


def to_summary(session_id: str, draft: SummaryDraft) -> ConversationSummary:
    """The summary that the draft becomes."""
    return ConversationSummary(
        id=draft.id,
        session_id=session_id,
        summary=draft.text,
        message_count=draft.end_seq - draft.start_seq + 1,
        start_message_id=draft.start_message_id,
        end_message_id=draft.end_message_id,
        importance_score=draft.importance,
        created_at=draft.created_at,
        tokens=draft.tokens,
        level=draft.level,
        start_seq=draft.start_seq,
        end_seq=draft.end_seq,
        started_at=draft.started_at,
        ended_at=draft.ended_at,
        method=draft.method,
        model_id=draft.model_id,
        origin=draft.origin,
        note=draft.note,
    )
