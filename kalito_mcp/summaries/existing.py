"""Which summaries a session has already, where the next begins, and whether what it was made from still stands."""

from collections.abc import Sequence

from kalito_mcp.domain.records import (
    ConversationSummary,
    CreateSummaryRequest,
    MessageWithImportance,
    RecordType,
)
from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.sessions import Session
from kalito_mcp.errors import SummaryRangeConflict
from kalito_mcp.ports.conversations import SummaryDraft
from kalito_mcp.ports.store import ReadView, WriteTransaction
from kalito_mcp.records.client_keys import known_by_key


async def made_before(
    view: ReadView | WriteTransaction, session: Session, request: CreateSummaryRequest
) -> ConversationSummary | None:
    """The summary that was made with the request's client_key.

    Raises:
        ClientKeyReused: it was chosen for another request before.
    """
    key = request.client_key
    place = Scope(session.owner, session=session.id)
    if key is None or not await known_by_key(view.records, place, RecordType.SUMMARY, [key]):
        return None
    return await view.conversations.summary_by_client_key(session, key)


async def add_next(transaction: WriteTransaction, session: Session, drafts: Sequence[SummaryDraft]) -> None:
    """Add consecutive summaries of one level that begin right after its last one.

    Raises:
        SummaryRangeConflict: they begin elsewhere; nothing was written.
    """
    first = drafts[0]
    next_seq = await transaction.conversations.summarized_to(session, first.level) + 1
    if first.start_seq != next_seq:
        raise SummaryRangeConflict(
            f"the next summary of session {session.id!r} begins at its message {next_seq}, not {first.start_seq}: "
            "summaries may not overlap or leave gaps; begin there"
        )
    await transaction.conversations.add_summaries(session, drafts)


async def made_of(
    view: ReadView | WriteTransaction, session: Session, messages: Sequence[MessageWithImportance]
) -> ConversationSummary | None:
    """The summary of exactly these messages; None if it is missing or was forgotten."""
    first, last = messages[0].seq, messages[-1].seq
    if session.summarized_seq < last:
        return None
    for one in await view.conversations.summaries(session, level=0, after_seq=first - 1):
        if one.start_seq >= first:
            return one if (one.start_seq, one.end_seq) == (first, last) and one.summary else None
    return None


async def are_unchanged(
    view: ReadView | WriteTransaction,
    session: Session,
    parts: Sequence[MessageWithImportance | ConversationSummary],
) -> bool:
    """Whether these consecutive messages, or summaries of one level, are unchanged since they were read."""
    messages = [part for part in parts if isinstance(part, MessageWithImportance)]
    if messages:
        first_seq, last_seq = messages[0].seq, messages[-1].seq
        return list(await view.conversations.messages(session, first_seq=first_seq, last_seq=last_seq)) == messages
    summaries = [part for part in parts if isinstance(part, ConversationSummary)]
    level, after_seq = summaries[0].level, summaries[0].start_seq - 1
    stored = await view.conversations.summaries(session, level=level, after_seq=after_seq)
    return [(one.id, one.summary) for one in stored[: len(summaries)]] == [(one.id, one.summary) for one in summaries]
