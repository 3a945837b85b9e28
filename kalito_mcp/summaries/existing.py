"""Which summaries a session has already, and whether what a new one was made from still stands."""

from collections.abc import Sequence

from kalito_mcp.domain.records import ConversationSummary, CreateSummaryRequest, MessageWithImportance, Visibility
from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.sessions import Session
from kalito_mcp.ports.store import ReadView, WriteTransaction


async def made_before(
    view: ReadView | WriteTransaction, session: Session, request: CreateSummaryRequest
) -> ConversationSummary | None:
    """The summary that was made with the request's client_key."""
    key = request.client_key
    return None if key is None else await view.conversations.summary_by_client_key(session, key)


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
    """Whether these consecutive messages or summaries are unchanged since they were read."""
    messages = [part for part in parts if isinstance(part, MessageWithImportance)]
    if messages:
        first_seq, last_seq = messages[0].seq, messages[-1].seq
        return list(await view.conversations.messages(session, first_seq=first_seq, last_seq=last_seq)) == messages
    for part in (part for part in parts if isinstance(part, ConversationSummary)):
        record = await view.records.record(Scope(owner=session.owner, session=session.id), part.id)
        is_shown = record is not None and not record.is_deleted and record.visibility is Visibility.CHAT
        if (record.text if record is not None and is_shown else "") != part.summary:
            return False
    return True
