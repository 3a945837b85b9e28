"""`MemoryManager`: the specification's memory manager, method by method.

It builds contexts from a session's recent messages, pins and summaries, inside a token budget. It keeps no
conversation in memory, except in a cache that is valid only until any process writes (`contexts/cache.py`).
"""

from collections.abc import Collection, Sequence
from copy import copy
from functools import partial
from hashlib import blake2b
from typing import Final

import anyio.to_thread

from kalito_mcp.contexts.cache import CachePolicy
from kalito_mcp.contexts.gatherer import ContextRequest, Gathered, Gatherer
from kalito_mcp.contexts.known import choose
from kalito_mcp.contexts.packer import Packer
from kalito_mcp.contexts.parts import ContextParts, ContextPolicy
from kalito_mcp.domain.arguments import checks_arguments
from kalito_mcp.domain.context import MOST_TOKENS, Include, MemoryContext
from kalito_mcp.domain.given import LeftOut, PartName, Why, left_out
from kalito_mcp.domain.importance import clamp_importance
from kalito_mcp.domain.known import KnownRecord
from kalito_mcp.domain.memory_records import MemoryRecord
from kalito_mcp.domain.records import (
    PIN_IMPORTANCE,
    ConversationSummary,
    CreatePinRequest,
    CreateSummaryRequest,
    MessageWithImportance,
    RecordType,
    SemanticPin,
    message_record_id,
)
from kalito_mcp.domain.scope import LOCAL_OWNER, NO_LIMITS, Limits, Scope
from kalito_mcp.domain.search import Hit, SearchFilters, SearchRequest, SeenPart
from kalito_mcp.domain.sessions import MemoryStats, Session
from kalito_mcp.domain.validation import LimitsPolicy, message_number
from kalito_mcp.domain.zone import UTC_ZONE, Zone
from kalito_mcp.errors import InvalidInput, RecordNotFound
from kalito_mcp.kinds.judge import SentenceJudge
from kalito_mcp.pins.pinner import Pinner
from kalito_mcp.ports.clock import Clock, IdSource
from kalito_mcp.ports.store import Store, WriteTransaction
from kalito_mcp.ports.tokens import TokenCounter
from kalito_mcp.records.importance import ImportancePolicy, score_importance
from kalito_mcp.retrieval.known_names import find_session, session_reached
from kalito_mcp.retrieval.search import Searcher
from kalito_mcp.runtime.long_texts import LONG_CHARS
from kalito_mcp.summaries.keeper import SummaryKeeper
from kalito_mcp.summaries.summarizer import Summarizer
from kalito_mcp.summaries.topics import extract_topics

_KNOWN_AT_START: Final = 40
"""The most important known facts at the start of a conversation, without a query."""

_BEST: Final = 8
"""Hits of a query that are shown as matches, even those that are the end of a conversation."""


@checks_arguments
class MemoryManager:
    """Works on the sessions of one owner. Safe to share between tasks."""

    def __init__(
        self,
        store: Store,
        summaries: SummaryKeeper,
        summarizer: Summarizer,
        searcher: Searcher,
        counter: TokenCounter,
        clock: Clock,
        ids: IdSource,
        judge: SentenceJudge,
        *,
        context: ContextPolicy,
        cache: CachePolicy,
        importance: ImportancePolicy,
        limits: LimitsPolicy,
        fence_secret: bytes,
        zone: Zone = UTC_ZONE,
        owner: str = LOCAL_OWNER,
    ) -> None:
        self._store = store
        self._summaries = summaries
        self._summarizer = summarizer
        self._searcher = searcher
        self._gatherer = Gatherer(
            store,
            searcher,
            clock,
            cache,
            policy=context,
        )
        self._packer = Packer(counter, context, zone)
        self._pins = Pinner(store, judge, counter, clock, ids, limits=limits)
        self._clock = clock
        self._context = context
        self._importance = importance
        self._fence_secret = fence_secret
        self._owner = owner
        self._limits = NO_LIMITS
        self._project: str | None = None

    async def build_context(
        self,
        session_id: str | None,
        max_tokens: int | None = None,
        *,
        agent_id: str | None = None,
        query: str | None = None,
        pending_input: bool = False,
        seen_messages: int = 0,
        include: Collection[Include] = (),
        as_json: bool = False,
        seen: frozenset[SeenPart] = frozenset(),
        also: Sequence[str] = (),
    ) -> MemoryContext:
        """See `Memory.build_context`. Here the records in the context do not count as used."""
        budget = self._context.token_limit if max_tokens is None else max_tokens
        if not 1 <= budget <= MOST_TOKENS:
            raise InvalidInput(
                f"max_tokens={budget} is outside 1 to {MOST_TOKENS:,}; the default is {self._context.token_limit}"
            )
        scope = Scope(self._owner, self._limits.agent_of(agent_id), session_id, self._project, self._limits)
        scope = await session_reached(self._store, scope)
        query = next((one for one in (query, *also) if one and one.strip()), None)
        request = ContextRequest(
            scope,
            frozenset(include),
            query,
            seen_messages,
            is_pending=pending_input,
            seen=seen,
            budget=budget,
            also=tuple(also),
        )
        gathered = await self._gatherer.gather(request)
        parts = self._parts(request, gathered)
        fence = self._fence(gathered.of_session.session)
        pack = partial(self._packer.pack, parts, max_tokens=budget, fence=fence, as_json=as_json)
        # Matches take milliseconds to pack.
        is_long = bool(parts.hits) or sum(len(one.text) for one in parts.recent) > LONG_CHARS
        return await anyio.to_thread.run_sync(pack) if is_long else pack()

    def _parts(self, request: ContextRequest, gathered: Gathered) -> ContextParts:
        """The parts from which the context is packed."""
        session, view, _, _ = gathered.of_session
        known, found = gathered.known, gathered.found
        is_start = not request.has_query and not gathered.of_session.has_begun
        most = _KNOWN_AT_START if is_start else self._context.known
        now_ms = self._clock.now_ms()
        chosen = choose(known, found.hits, view.pins, most=most, is_start=is_start, now_ms=now_ms)
        recent, _ = gathered.of_session.recent(request)
        return ContextParts(
            session_id=session.id or None,
            recent=recent,
            known=chosen.records,
            sure_known=_sure_known(chosen.records, found.hits),
            more_shared=chosen.more_shared,
            pins=view.pins,
            summaries=[one for one in view.summaries if one.start_seq <= gathered.of_session.seen_from(request)],
            hits=chosen.hits,
            around=found.around,
            query=request.query or "",
            missing=_missing(gathered, chosen.repeated),
            note=found.note,
            digest=gathered.digest,
            latest=_ends(gathered, chosen.hits),
            is_about_latest=gathered.is_about_latest,
            has_begun=gathered.of_session.has_begun,
        )

    async def create_summary(self, request: CreateSummaryRequest) -> ConversationSummary:
        """See `Memory.create_summary`."""
        return await self._summaries.create(await self._of_session(request.session_id), request)

    async def create_semantic_pin(self, request: CreatePinRequest) -> SemanticPin:
        """See `Memory.create_pin`."""
        scope = await self._of_session(request.session_id or "", may_be_new=True)
        return await self._pins.create(scope, request)

    def as_pin(self, record: MemoryRecord) -> SemanticPin:
        """A pin, or a note that every conversation of the project or the person knows, as a pin."""
        return self._pins.as_pin(record)

    def in_project(self, project: str | None) -> "MemoryManager":
        """The same for one project; see `Memory.in_project`."""
        narrowed = copy(self)
        narrowed._project = project
        return narrowed

    def of_owner(self, owner: str, limits: Limits) -> "MemoryManager":
        """The same for another owner, within limits; see `Memory.of_owner`."""
        theirs = copy(self)
        theirs._owner, theirs._limits, theirs._project = owner, limits, limits.project or self._project
        return theirs

    async def needs_summarization(self, session_id: str) -> bool:
        """Whether a full window of messages has no summary: `threshold` of them, or `dense_threshold` dense ones."""
        return await self._summaries.is_due(await self._of_session(session_id))

    async def auto_summarize_session(self, session_id: str) -> ConversationSummary | None:
        """Summarise the oldest full window without a summary, if any. A backlog takes several calls."""
        return await self._summaries.summarize_due(await self._of_session(session_id))

    def score_message_importance(self, message: MessageWithImportance) -> float:
        """Score the message's importance by its text and role, in [0, 1]."""
        return score_importance(message.role, message.text, self._importance)

    async def update_message_importance(self, message_id: int | str, importance_score: float) -> None:
        """Store a message's importance, clamped to [0, 1].

        Raises:
            RecordNotFound, InvalidInput: no such message; not a message id, or NaN.
        """
        number = message_number(message_id)
        importance = clamp_importance(importance_score)

        async def change(transaction: WriteTransaction) -> None:
            message = await transaction.conversations.message(self._scope(None), number)
            session = message and await transaction.sessions.get(self._scope(message.session_id))
            if not session:
                raise RecordNotFound(
                    f"message {message_record_id(number)} does not exist; use the id of a recorded message"
                )
            await transaction.conversations.set_importance(session, [(number, importance)], now_ms=self._clock.now_ms())

        await self._store.write(change)

    async def score_session_messages(self, session_id: str) -> int:
        """Score all visible messages of the session again. Return how many scores changed."""
        scope = await self._of_session(session_id)

        async def change(transaction: WriteTransaction) -> int:
            session = await find_session(transaction, scope)
            messages = await transaction.conversations.messages(session, first_seq=1, last_seq=session.message_count)
            shown = [message for message in messages if not message.is_hidden]
            scored = [(message, self.score_message_importance(message)) for message in shown]
            changed = [(message.id, score) for message, score in scored if score != message.importance_score]
            if changed:
                await transaction.conversations.set_importance(session, changed, now_ms=self._clock.now_ms())
            return len(changed)

        return await self._store.write(change)

    def invalidate_session_cache(self, session_id: str) -> None:
        """Read the session from the store next time. Not needed after a write, which empties the cache."""
        self._gatherer.forget_session(session_id)

    async def get_session_model(self, session_id: str) -> str | None:
        """Return the model named by the session's newest message that names one, else None."""
        return (await self._session(session_id)).model

    def is_local_model(self, model_id: str) -> bool:
        """Whether the model's configured server is on this machine or network. An unknown model is not local."""
        return self._summarizer.is_local_model(model_id)

    async def get_summarization_model(self, session_id: str) -> str:
        """Return the session's model if it is local, else the configured cloud model."""
        return self._summarizer.summarization_model(await self.get_session_model(session_id))

    def extract_topics(self, messages: Sequence[MessageWithImportance]) -> list[str]:
        """Return up to three topics of the user's messages, found by the specification's keywords."""
        return extract_topics(messages)

    async def find_relevant_messages(
        self, session_id: str, query: str, limit: int = 10
    ) -> Sequence[MessageWithImportance]:
        """Return the session's messages that match the query, best first, whatever their age.

        Raises:
            SessionNotFound: no such session.
            InvalidInput: the query is empty or too long, or a search does not accept the limit.
        """
        session = await self._session(session_id)
        filters = SearchFilters(types=frozenset({RecordType.MESSAGE}))
        request = SearchRequest(query=query, k=limit, filters=filters)
        page = await self._searcher.search(self._scope(session.id), request)
        numbers = [message_number(hit.record_id) for hit in page.hits]
        found = await self._store.read(lambda view: view.conversations.messages_by_number(session, numbers))
        return sorted(found, key=lambda message: numbers.index(message.id))

    async def memory_stats(self, session_id: str) -> MemoryStats:
        """Return the session's statistics.

        Raises:
            SessionNotFound: no such session.
        """
        return (await self._session(session_id)).stats()

    async def _session(self, session_id: str) -> Session:
        scope = await self._of_session(session_id)
        return await self._store.read(lambda view: find_session(view, scope))

    def _scope(self, session_id: str | None) -> Scope:
        return Scope(self._owner, self._limits.agent, session_id, self._project, self._limits)

    async def _of_session(self, session_id: str, *, may_be_new: bool = False) -> Scope:
        return await session_reached(self._store, self._scope(session_id), may_be_new=may_be_new)

    def _fence(self, session: Session) -> str:
        """Return a marker that no remembered text can predict: it depends on a secret of the database. It never
        changes, so that a host's prompt cache keeps working."""
        return blake2b(f"{session.owner}\x1f{session.id}".encode(), key=self._fence_secret, digest_size=6).hexdigest()


def _missing(gathered: Gathered, repeated: Sequence[str]) -> list[LeftOut]:
    """What is left out before anything is packed."""
    withheld, found = gathered.of_session.withheld, gathered.found
    pins = [pin.id for pin in withheld.pins]
    untrusted = {
        PartName.KNOWN: sorted(
            gathered.known.withheld.difference(pins, (pin.id for pin in gathered.of_session.parts.pins))
        ),
        PartName.FOUND: found.withheld,
        PartName.RECENT: [one.record_id for one in withheld.tail],
        PartName.PINS: pins,
        PartName.SUMMARIES: [one.id for one in withheld.summaries],
    }
    return [
        *(out for part, ids in untrusted.items() for out in left_out(part, Why.READS_LIKE_AN_INSTRUCTION, ids)),
        *left_out(PartName.FOUND, Why.REPEATS_ANOTHER, repeated),
        *left_out(PartName.FOUND, Why.IN_THE_CONVERSATION, found.seen),
    ]


def _sure_known(known: Sequence[KnownRecord], hits: Sequence[Hit]) -> frozenset[str]:
    """The ids of known facts that keep a place next to the hits: those among the best hits, and those that were pinned
    on request or are as important."""
    best = {one.record_id for one in hits[:_BEST]}
    return frozenset(
        one.record_id for one in known if not hits or one.importance >= PIN_IMPORTANCE or one.record_id in best
    )


def _ends(gathered: Gathered, hits: Sequence[Hit]) -> list[Sequence[Hit]]:
    """The ends of conversations without the best hits, which are shown as hits. Unless the query asks for them, only
    the ends of the latest conversation, and of others without known facts."""
    best = {one.record_id for one in hits[:_BEST]}
    known_of = {one.session_id for one in (*gathered.known.records, *gathered.digest)}
    ends = [
        [one for one in end if one.record_id not in best]
        for place, end in enumerate(gathered.latest)
        if not place or gathered.is_about_latest or end[0].session_id not in known_of
    ]
    return [end for end in ends if end]
