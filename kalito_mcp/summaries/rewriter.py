"""Rewrites the summaries of a record, in place, when the record is changed, hidden, erased or restored.

Always without a language model, because it runs inside the transaction of the change, which must not wait for one. The
worth of the sentences is computed before (`prepare`). So at any moment a visible record supports everything in a
summary.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from kalito_mcp.domain.memory_records import (
    EditDraft,
    Editor,
    EditType,
    MemoryRecord,
    versions,
    with_changes,
)
from kalito_mcp.domain.records import ConversationSummary, MessageWithImportance, RecordType, SummaryMethod
from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.sessions import Session
from kalito_mcp.ports.store import ReadView, Store, WriteTransaction
from kalito_mcp.ports.tokens import TokenCounter
from kalito_mcp.safety.escaping import as_data
from kalito_mcp.summaries.digester import Digester
from kalito_mcp.summaries.summarizer import length_of_fold, length_of_summary


class SummaryRewriter:
    """Keeps stored summaries true to their sources."""

    def __init__(self, counter: TokenCounter, digester: Digester) -> None:
        self._counter = counter
        self._digester = digester

    async def prepare(self, store: Store, scope: Scope, record: MemoryRecord, text: str | None) -> None:
        """Judge the sentences that the summaries covering the record will choose among, so that `rewrite` need not wait
        for it. `text` is what a message is about to say; None if it is about to go."""

        async def look(view: ReadView) -> list[Sequence[MessageWithImportance | ConversationSummary]]:
            session = await view.sessions.get(scope)
            above = await _summaries_above(view, record) if session is not None else ()
            return [await _parts(view, session, one) for one in above if session is not None]

        for one in await store.read(look):
            await self._digester.prepare([_saying(part, record, text) for part in one])

    async def rewrite(
        self,
        transaction: WriteTransaction,
        session: Session,
        record: MemoryRecord,
        *,
        editor: Editor,
        at_ms: int,
        undoes: Editor | None = None,
        is_erased: bool = False,
    ) -> list[str]:
        """Rewrite every summary that covers the message or summary, lowest level first. Return the ids of those that
        changed.

        A summary whose last edit is by `undoes` goes back to its version before that edit. With `is_erased`, the
        record counts as gone, and the earlier versions of the summaries are dropped, because they quote it.
        """
        changed: list[str] = []
        for summary in await _summaries_above(transaction, record):
            content = await self._content_before(transaction, summary, undoes)
            edit_type = EditType.UPDATE if content is None else EditType.REVERT
            if content is None:
                text = await self._rewritten_text(transaction, session, summary, record if is_erased else None)
                written = {"text": text, "method": str(SummaryMethod.EXTRACTIVE), "model_id": None}
                content = with_changes(summary.content, written)
            now = summary
            if content != summary.content:
                now = await transaction.records.change(summary, self.edit(content, edit_type, editor, at_ms))
                changed.append(summary.id)
            if is_erased:
                await transaction.records.drop_history(now)
        return changed

    def edit(self, content: Mapping[str, Any], edit_type: EditType, editor: Editor, at_ms: int) -> EditDraft:
        """Return the edit that sets the content of a summary or a pin."""
        text = str(content["text"])
        return EditDraft(edit_type, editor, at_ms, content, self._counter.count(as_data(text)))

    async def _content_before(
        self, transaction: WriteTransaction, summary: MemoryRecord, undoes: Editor | None
    ) -> Mapping[str, Any] | None:
        edits = await transaction.records.edits(summary) if undoes is not None else ()
        return versions(summary, edits)[-2][1] if edits and edits[-1].editor == undoes else None

    async def _rewritten_text(
        self, transaction: WriteTransaction, session: Session, summary: MemoryRecord, erased: MemoryRecord | None
    ) -> str:
        """Summarise the summary's parts, except the erased one and those less trusted than the summary, which was made
        while they were hidden."""
        gone, distrust = None if erased is None else erased.id, summary.origin.distrust
        parts = await _parts(transaction, session, summary)
        messages = [
            replace(one, is_hidden=True, text="", name=None)
            if one.record_id == gone or one.origin.distrust > distrust
            else one
            for one in parts
            if isinstance(one, MessageWithImportance)
        ]
        if messages:
            limit = length_of_summary(messages)
            return await self._digester.summarize(messages, max_chars=limit)
        summaries = [
            replace(one, summary="") if one.id == gone or one.origin.distrust > distrust else one
            for one in parts
            if isinstance(one, ConversationSummary)
        ]
        return await self._digester.fold(summaries, max_chars=length_of_fold(summaries))


def _saying(
    part: MessageWithImportance | ConversationSummary, record: MemoryRecord, text: str | None
) -> MessageWithImportance | ConversationSummary:
    """The part, with this text if it is the record."""
    if text is None or not isinstance(part, MessageWithImportance) or part.record_id != record.id:
        return part
    return replace(part, text=text, is_hidden=False)


async def _parts(
    view: ReadView | WriteTransaction, session: Session, summary: MemoryRecord
) -> Sequence[MessageWithImportance | ConversationSummary]:
    """The messages or the summaries that a summary was made of."""
    level, first, last = (int(summary.content[name]) for name in ("level", "start_seq", "end_seq"))
    if level == 0:
        return await view.conversations.messages(session, first_seq=first, last_seq=last)
    below = await view.conversations.summaries(session, level=level - 1, after_seq=first - 1)
    return [one for one in below if one.end_seq <= last]


async def _summaries_above(view: ReadView | WriteTransaction, record: MemoryRecord) -> Sequence[MemoryRecord]:
    over = await view.records.summaries_over(record)
    if record.type is RecordType.MESSAGE:
        return over
    return [one for one in over if one.content["level"] > record.content["level"]]
