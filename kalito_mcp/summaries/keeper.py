"""Keeps a session's summaries complete: windows of messages, and levels of summaries above them.

The summaries of level 0 tile the conversation from its first message, one window each, without gap or overlap. When a
level has more than `max_per_level` summaries that no higher one covers, its oldest `max_per_level + 1` are folded into
one of the next level. So the summaries that a context shows grow with the logarithm of the conversation's length.

Texts are written before the transaction that stores them, because a model may be slow. If another process stored the
same range meanwhile, its summary stays and ours is dropped. If a message was changed or forgotten meanwhile, the range
is summarised again, so that no summary repeats what is gone.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from kalito_mcp.domain.records import (
    SUMMARY_IMPORTANCE,
    ConversationSummary,
    CreateSummaryRequest,
    MessageWithImportance,
    Origin,
    SummaryMethod,
    least_trusted,
)
from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.sessions import Session, SessionState
from kalito_mcp.domain.validation import LimitsPolicy, checked_text, message_number
from kalito_mcp.errors import Conflict, InvalidInput, RecordNotFound, SessionFinalized, SummaryRangeConflict
from kalito_mcp.ports.clock import Clock, IdSource
from kalito_mcp.ports.conversations import SummaryDraft
from kalito_mcp.ports.store import Overtaken, ReadView, Store, WriteTransaction
from kalito_mcp.ports.tokens import TokenCounter
from kalito_mcp.records.repetitions import repetition_refused, scope_of_session
from kalito_mcp.retrieval.known_names import find_session
from kalito_mcp.runtime.long_texts import read_aside
from kalito_mcp.safety.escaping import as_data
from kalito_mcp.safety.redaction import cleaned
from kalito_mcp.summaries.existing import add_next, are_unchanged, made_before, made_of
from kalito_mcp.summaries.summarizer import Summarizer, WrittenSummary
from kalito_mcp.summaries.window import SummaryWindowPolicy, summary_window
from kalito_mcp.text.analysis import index_text
from kalito_mcp.text.repetition import keys_of

_WITHOUT_MODEL: Final = "the model gave no usable summary, so this one was made without it; the server's log says why"


class SummaryKeeper:
    """Writes the summaries that are due, and those that callers request."""

    def __init__(
        self,
        store: Store,
        summarizer: Summarizer,
        counter: TokenCounter,
        clock: Clock,
        ids: IdSource,
        *,
        max_per_level: int,
        window: SummaryWindowPolicy,
        limits: LimitsPolicy,
    ) -> None:
        self._store = store
        self._summarizer = summarizer
        self._counter = counter
        self._clock = clock
        self._ids = ids
        self._max_per_level = max_per_level
        self._window = window
        self._limits = limits

    async def is_due(self, scope: Scope) -> bool:
        """Whether a full window of messages has no summary yet."""

        async def look(view: ReadView) -> bool:
            return bool(await self._next_window(view, await find_session(view, scope), is_partial_due=False))

        return await self._store.read(look)

    async def owes(self, scope: Scope) -> bool:
        """Whether a summary or a fold is due. One look costs less than to look for each."""

        async def look(view: ReadView) -> bool:
            return await self.owes_in(view, await find_session(view, scope))

        return await self._store.read(look)

    async def owes_in(self, view: ReadView | WriteTransaction, session: Session) -> bool:
        """As `owes`, within a transaction."""
        if await self._next_window(view, session, is_partial_due=False):
            return True
        return bool(self._foldable(await view.conversations.uncovered_summaries(session)))

    async def summarize_due(self, scope: Scope, *, is_partial_due: bool = False) -> ConversationSummary | None:
        """Summarise the oldest window without a summary; None if no window is due.

        With `is_partial_due`, a window shorter than the threshold counts too.
        """

        async def look(view: ReadView) -> tuple[Session, Sequence[MessageWithImportance]]:
            session = await find_session(view, scope)
            return session, await self._next_window(view, session, is_partial_due=is_partial_due)

        while True:
            session, window = await self._store.read(look)
            if not window:
                return None
            written = await self._summarizer.summarize(window, session_model=session.model)
            try:
                return await self._store_or_drop(scope, self._draft_of_messages(window, written), window)
            except Conflict:
                continue

    async def summarize_all(self, scope: Scope) -> list[ConversationSummary]:
        """Summarise every message that has no summary yet, window by window, and fold what is due."""
        made: list[ConversationSummary] = []
        while (summary := await self.summarize_due(scope, is_partial_due=True)) is not None:
            made.append(summary)
        while (summary := await self.fold_due(scope)) is not None:
            made.append(summary)
        return made

    async def fold_due(self, scope: Scope) -> ConversationSummary | None:
        """Fold the oldest summaries of the lowest level that has too many; None if no level has."""

        async def look(view: ReadView) -> tuple[Session, Sequence[ConversationSummary]]:
            session = await find_session(view, scope)
            return session, self._foldable(await view.conversations.uncovered_summaries(session))

        while True:
            session, parts = await self._store.read(look)
            if not parts:
                return None
            written = await self._summarizer.fold(parts, session_model=session.model)
            try:
                return await self._store_or_drop(scope, self._draft_of_summaries(parts, written), parts)
            except Conflict:
                continue

    async def create(self, scope: Scope, request: CreateSummaryRequest) -> ConversationSummary:
        """See `Memory.create_summary`."""
        if request.summary is not None:
            checked_text(request.summary.strip(), "summary", max_bytes=self._limits.max_text_bytes)
        kept, redacted = await read_aside(len(request.summary or ""), lambda: cleaned(request))

        async def look(
            view: ReadView,
        ) -> tuple[Session, ConversationSummary | None, Sequence[MessageWithImportance]]:
            session = await find_session(view, scope)
            made = await made_before(view, session, request)
            messages = () if made is not None else await self._read_range(view, session, scope, request)
            if made is None and request.summary is None:
                made = await made_of(view, session, messages)
            return session, made, messages

        session, made, messages = await self._store.read(look)
        if made is not None:
            return replace(made, redacted=redacted)
        _must_be_open(session)
        if messages[0].seq != (due := session.summarized_seq + 1):
            raise SummaryRangeConflict(
                f"the next summary of session {session.id!r} begins at message {due}, but this range begins at "
                f"message {messages[0].seq}; change start_message_id"
            )
        if kept.summary is not None:
            draft, keys = await self._draft_of_given(kept.summary.strip(), messages, kept.client_key)

            async def add_given(transaction: WriteTransaction, draft: SummaryDraft = draft) -> ConversationSummary:
                if (before := await made_before(transaction, session, kept)) is not None:
                    return before
                # The caller's text stays valid if the messages have changed.
                await _must_not_repeat(transaction, session, scope, keys)
                await add_next(transaction, session, draft)
                return _to_summary(session.id, draft)

            return replace(await self._store.write(add_given), redacted=redacted)
        written = await self._summarizer.summarize(messages, session_model=session.model)
        draft = replace(self._draft_of_messages(messages, written), client_key=kept.client_key)

        async def add(transaction: WriteTransaction) -> ConversationSummary:
            if (before := await made_before(transaction, session, kept)) is not None:
                return before
            # The background may have summarised the range meanwhile.
            is_due = await made_of(transaction, await find_session(transaction, scope), messages) is None
            if not is_due or not await are_unchanged(transaction, session, messages):
                raise Overtaken
            await add_next(transaction, session, draft)
            return replace(_to_summary(session.id, draft), redacted=redacted)

        try:
            return await self._store.write(add)
        except Overtaken:
            return await self.create(scope, request)

    async def adopt(self, scope: Scope, text: str) -> ConversationSummary | None:
        """Store the caller's text as the summary of all messages without one; None if there are no such messages.

        If windows are summarised meanwhile, the text is the summary of the messages after them.

        Raises:
            InvalidInput: the text is blank or too long.
            SessionNotFound, SessionFinalized: the session does not exist, or is closed.
            Conflict: it repeats what was forgotten.
        """
        checked_text(text.strip(), "summary", max_bytes=self._limits.max_text_bytes)
        kept, redacted = await read_aside(len(text), lambda: cleaned({"summary": text.strip()}))

        async def look(view: ReadView) -> Sequence[MessageWithImportance]:
            session = await find_session(view, scope)
            _must_be_open(session)
            return await view.conversations.messages(
                session, first_seq=session.summarized_seq + 1, last_seq=session.message_count
            )

        if not (messages := await self._store.read(look)):
            return None
        draft, keys = await self._draft_of_given(kept["summary"], messages)

        async def add(transaction: WriteTransaction) -> ConversationSummary | None:
            session = await find_session(transaction, scope)
            _must_be_open(session)
            await _must_not_repeat(transaction, session, scope, keys)
            # Messages summarised meanwhile already have their summary.
            left = [message for message in messages if message.seq > session.summarized_seq]
            if not left:
                return None
            of_left = _over(left, draft)
            await add_next(transaction, session, of_left)
            return replace(_to_summary(session.id, of_left), redacted=redacted)

        return await self._store.write(add)

    async def _next_window(
        self, view: ReadView | WriteTransaction, session: Session, *, is_partial_due: bool
    ) -> Sequence[MessageWithImportance]:
        first = session.summarized_seq + 1
        pending = session.message_count - session.summarized_seq
        if pending <= 0 or (pending < min(self._window.threshold, self._window.dense_threshold) and not is_partial_due):
            return ()
        messages = await view.conversations.messages(
            session, first_seq=first, last_seq=first + self._window.threshold - 1
        )
        size = summary_window(messages, self._window)
        return messages[:size] if len(messages) >= size or is_partial_due else ()

    def _foldable(self, uncovered: Sequence[ConversationSummary]) -> Sequence[ConversationSummary]:
        for level in range(max((summary.level for summary in uncovered), default=-1) + 1):
            of_level = [summary for summary in uncovered if summary.level == level]
            if len(of_level) > self._max_per_level:
                return of_level[: self._max_per_level + 1]
        return ()

    async def _read_range(
        self, view: ReadView, session: Session, scope: Scope, request: CreateSummaryRequest
    ) -> Sequence[MessageWithImportance]:
        start = await _find_message(view, scope, request.start_message_id, "start_message_id")
        end = await _find_message(view, scope, request.end_message_id, "end_message_id")
        if start.seq > end.seq:
            raise InvalidInput("start_message_id comes after end_message_id; swap them")
        count = end.seq - start.seq + 1
        if request.message_count is not None and request.message_count != count:
            raise InvalidInput(
                f"message_count={request.message_count}, but the range has {count}; correct it or leave it out"
            )
        return await view.conversations.messages(session, first_seq=start.seq, last_seq=end.seq)

    async def _store_or_drop(
        self, scope: Scope, draft: SummaryDraft, sources: Sequence[MessageWithImportance | ConversationSummary]
    ) -> ConversationSummary | None:
        """Store the summary. Return None if the session is closed or another summary has the range. Raises Conflict if
        a source changed since it was read."""

        async def add(transaction: WriteTransaction) -> ConversationSummary | None:
            session = await transaction.sessions.get(scope)
            if session is None or session.state is SessionState.FINALIZED:
                return None
            await add_next(transaction, session, draft)
            if not await are_unchanged(transaction, session, sources):
                raise Conflict("the summarised records changed meanwhile; summarise them again")
            return _to_summary(session.id, draft)

        try:
            return await self._store.write(add)
        except SummaryRangeConflict:
            return None

    async def _draft_of_given(
        self, text: str, messages: Sequence[MessageWithImportance], client_key: str | None = None
    ) -> tuple[SummaryDraft, frozenset[str]]:
        """The caller's text as the summary of these messages, and its keys (see `keys_of`)."""
        written = WrittenSummary(text, SummaryMethod.CALLER, None, None)
        draft, keys = await read_aside(len(text), lambda: (self._draft_of_messages(messages, written), keys_of(text)))
        return replace(draft, client_key=client_key), keys

    def _draft_of_messages(self, messages: Sequence[MessageWithImportance], written: WrittenSummary) -> SummaryDraft:
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

    def _draft_of_summaries(self, parts: Sequence[ConversationSummary], written: WrittenSummary) -> SummaryDraft:
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


def _must_be_open(session: Session) -> None:
    if session.state is SessionState.FINALIZED:
        raise SessionFinalized(session.id, session.state)


async def _must_not_repeat(writes: WriteTransaction, session: Session, caller: Scope, keys: frozenset[str]) -> None:
    if await writes.records.forgotten_values(scope_of_session(session, caller.limits), keys):
        raise repetition_refused()


def _over(messages: Sequence[MessageWithImportance], draft: SummaryDraft) -> SummaryDraft:
    """The caller's summary, of these messages instead of more of them."""
    return replace(
        draft,
        start_seq=messages[0].seq,
        start_message_id=messages[0].record_id,
        started_at=min(message.created_at for message in messages),
        ended_at=max(message.created_at for message in messages),
        origin=least_trusted((Origin.ASSISTANT, *(message.origin for message in messages))),
    )


async def _find_message(view: ReadView, scope: Scope, message_id: str, field: str) -> MessageWithImportance:
    message = await view.conversations.message(scope, message_number(message_id, field))
    if message is None:
        raise RecordNotFound(f"{field}={message_id!r} is not a message of session {scope.session!r}; use another id")
    return message


def _to_summary(session_id: str, draft: SummaryDraft) -> ConversationSummary:
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
