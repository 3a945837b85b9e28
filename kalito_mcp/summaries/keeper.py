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
    ConversationSummary,
    CreateSummaryRequest,
    MessageWithImportance,
    SummaryMethod,
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
from kalito_mcp.safety.redaction import cleaned
from kalito_mcp.summaries.drafts import SummaryDrafts, over, to_summary
from kalito_mcp.summaries.existing import add_next, are_unchanged, made_before, made_of
from kalito_mcp.summaries.summarizer import Summarizer, WrittenSummary
from kalito_mcp.summaries.window import SummaryWindowPolicy, summary_windows
from kalito_mcp.text.repetition import keys_of

_AT_ONCE: Final = 16
"""Windows that are summarised before they are stored: an import has very many."""


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
        self._drafts = SummaryDrafts(counter, clock, ids)
        self._max_per_level = max_per_level
        self._window = window
        self._limits = limits

    async def is_due(self, scope: Scope) -> bool:
        """Whether a full window of messages has no summary yet."""

        async def look(view: ReadView) -> bool:
            return await self.is_due_in(view, await find_session(view, scope))

        return await self._store.read(look)

    async def is_due_in(self, view: ReadView, session: Session) -> bool:
        """As `is_due`, of a session that was just read."""
        return bool(await self._next_windows(view, session, most=1))

    async def summarize_due(self, scope: Scope, *, is_partial_due: bool = False) -> ConversationSummary | None:
        """Summarise the oldest window without a summary; None if no window is due.

        With `is_partial_due`, a window shorter than the threshold counts too.
        """
        return next(iter(await self._summarize(scope, most=1, is_partial_due=is_partial_due)), None)

    async def catch_up(self, scope: Scope) -> None:
        """Summarise every full window without a summary, and fold what is due."""
        while await self._summarize(scope, most=_AT_ONCE):
            pass
        while await self.fold_due(scope) is not None:
            pass

    async def _summarize(
        self, scope: Scope, *, most: int, is_partial_due: bool = False
    ) -> Sequence[ConversationSummary]:
        """Summarise at most this many of the oldest windows without a summary, and store these summaries together. What
        a model wrote is stored at once."""

        async def look(view: ReadView) -> tuple[Session, Sequence[Sequence[MessageWithImportance]]]:
            session = await find_session(view, scope)
            at_once = 1 if self._summarizer.has_model(session.model) else most
            return session, await self._next_windows(view, session, most=at_once, is_partial_due=is_partial_due)

        while True:
            session, windows = await self._store.read(look)
            if not windows:
                return ()
            written = [await self._summarizer.summarize(one, session_model=session.model) for one in windows]
            drafts = list(map(self._drafts.of_messages, windows, written))
            try:
                return await self._store_or_drop(scope, drafts, [one for window in windows for one in window])
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
                return next(
                    iter(await self._store_or_drop(scope, [self._drafts.of_summaries(parts, written)], parts)), None
                )
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
                await add_next(transaction, session, [draft])
                return to_summary(session.id, draft)

            return replace(await self._store.write(add_given), redacted=redacted)
        written = await self._summarizer.summarize(messages, session_model=session.model)
        draft = replace(self._drafts.of_messages(messages, written), client_key=kept.client_key)

        async def add(transaction: WriteTransaction) -> ConversationSummary:
            if (before := await made_before(transaction, session, kept)) is not None:
                return before
            # The background may have summarised the range meanwhile.
            is_due = await made_of(transaction, await find_session(transaction, scope), messages) is None
            if not is_due or not await are_unchanged(transaction, session, messages):
                raise Overtaken
            await add_next(transaction, session, [draft])
            return replace(to_summary(session.id, draft), redacted=redacted)

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
            of_left = over(left, draft)
            await add_next(transaction, session, [of_left])
            return replace(to_summary(session.id, of_left), redacted=redacted)

        return await self._store.write(add)

    async def _next_windows(
        self, view: ReadView | WriteTransaction, session: Session, *, most: int, is_partial_due: bool = False
    ) -> Sequence[Sequence[MessageWithImportance]]:
        first, last = session.summarized_seq + 1, session.summarized_seq + most * self._window.threshold
        pending = session.message_count - session.summarized_seq
        if pending <= 0 or (pending < min(self._window.threshold, self._window.dense_threshold) and not is_partial_due):
            return ()
        messages = await view.conversations.messages(session, first_seq=first, last_seq=last)
        has_more = last < session.message_count
        return summary_windows(messages, self._window, most=most, has_more=has_more, is_partial_due=is_partial_due)

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
        self,
        scope: Scope,
        drafts: Sequence[SummaryDraft],
        sources: Sequence[MessageWithImportance | ConversationSummary],
    ) -> Sequence[ConversationSummary]:
        """Store consecutive summaries, and return them; none if the session is closed or another summary has the range.
        Raises Conflict if a source changed since it was read."""

        async def add(transaction: WriteTransaction) -> Sequence[ConversationSummary]:
            session = await transaction.sessions.get(scope)
            if session is None or session.state is SessionState.FINALIZED:
                return ()
            await add_next(transaction, session, drafts)
            if not await are_unchanged(transaction, session, sources):
                raise Conflict("the summarised records changed meanwhile; summarise them again")
            return [to_summary(session.id, draft) for draft in drafts]

        try:
            return await self._store.write(add)
        except SummaryRangeConflict:
            return ()

    async def _draft_of_given(
        self, text: str, messages: Sequence[MessageWithImportance], client_key: str | None = None
    ) -> tuple[SummaryDraft, frozenset[str]]:
        """The caller's text as the summary of these messages, and its keys (see `keys_of`)."""
        written = WrittenSummary(text, SummaryMethod.CALLER, None, None)
        draft, keys = await read_aside(len(text), lambda: (self._drafts.of_messages(messages, written), keys_of(text)))
        return replace(draft, client_key=client_key), keys


def _must_be_open(session: Session) -> None:
    if session.state is SessionState.FINALIZED:
        raise SessionFinalized(session.id, session.state)


async def _must_not_repeat(writes: WriteTransaction, session: Session, caller: Scope, keys: frozenset[str]) -> None:
    if await writes.records.forgotten_values(scope_of_session(session, caller.limits), keys):
        raise repetition_refused()


async def _find_message(view: ReadView, scope: Scope, message_id: str, field: str) -> MessageWithImportance:
    message = await view.conversations.message(scope, message_number(message_id, field))
    if message is None:
        raise RecordNotFound(f"{field}={message_id!r} is not a message of session {scope.session!r}; use another id")
    return message
