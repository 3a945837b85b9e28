"""Adds recorded messages to their session's graph when it is needed: when the session is finalized, when feedback
names it, and in a copy when somebody asks for it. A user's message becomes a query and the assistant's reply its
answer; both refer to the entities they mention.

`observed_seq` moves in the transaction that writes the nodes, so each message is added once, even after a crash.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import anyio.to_thread

from kalito_mcp.domain.graph import EdgeType, GraphContents, GraphPolicy
from kalito_mcp.domain.records import MessageWithImportance, Role, SemanticPin
from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.sessions import Session, SessionState
from kalito_mcp.errors import GraphFull, InvalidInput, RecordNotFound
from kalito_mcp.orchestrator.graph_cache import GraphCache, LoadedGraph
from kalito_mcp.ports.store import ReadView, Store, WriteTransaction

if TYPE_CHECKING:
    from kalito_mcp.graph.store import GraphStore

_log: Final = logging.getLogger("kalito.graph")
_CHUNK: Final = 64
"""Messages of one write, at most. Other writers wait for some milliseconds."""
_MAX_READ: Final = 1_024
"""Messages that are in memory at once."""

LOOK_BACK: Final = 8
"""An answer's query is at most this many messages before it."""


class Observer:
    """Keeps sessions' graphs up to date with their messages."""

    def __init__(self, store: Store, cache: GraphCache, policy: GraphPolicy) -> None:
        self._store = store
        self._cache = cache
        self.policy = policy

    async def observe(self, scope: Scope) -> int:
        """Add the messages that are not in the graph yet, unless the session is finalized or graphs are switched off.
        Returns how many those were.

        They are added to a copy, in a thread, and again if the graph or a message changes meanwhile.
        """
        observed = 0
        while True:
            behind = await self._store.read(lambda view: self._behind(view, scope, most=_MAX_READ))
            if behind is None:
                return observed
            copy = LoadedGraph(await self._cache.built(scope, behind.contents), behind.contents.state)
            for done in range(behind.done, behind.last, _CHUNK):
                last = min(done + _CHUNK, behind.last)
                messages = [one for one in behind.messages if done - LOOK_BACK < one.seq <= last]
                await anyio.to_thread.run_sync(observe_messages, copy.graph, messages, done, self.policy)
                if not await self._cache.store_copies({scope: copy}, partial(_mark, scope, messages, done, last)):
                    break
                observed += last - done
            else:
                self._cache.keep(scope, copy)

    async def copy(self, scope: Scope) -> "GraphStore":
        """A private copy of the session's graph, with all of its messages unless graphs are switched off. Nothing is
        stored. Raises SessionNotFound."""

        async def look(view: ReadView) -> tuple[GraphContents, _Behind | None]:
            behind = await self._behind(view, scope)
            return behind.contents if behind else await self._cache.contents(view, scope), behind

        contents, behind = await self._store.read(look)
        graph = await self._cache.built(scope, contents)
        if behind is not None:
            await anyio.to_thread.run_sync(observe_messages, graph, behind.messages, behind.done, self.policy)
        return graph

    async def _behind(self, view: ReadView, scope: Scope, *, most: int | None = None) -> "_Behind | None":
        """The next messages that the session's graph lacks. None if it lacks none, for an unknown or finalized
        session, and where graphs are switched off."""
        session = await view.sessions.get(scope)
        if session is None or not _is_behind(session) or not self.policy.enabled:
            return None
        done = session.observed_seq
        last = session.message_count if most is None else min(session.message_count, done + most)
        return _Behind(await self._cache.contents(view, scope), await _from(view, session, done, last), done, last)


@dataclass(frozen=True, slots=True)
class _Behind:
    """A session's stored graph, which has the messages up to seq `done`. `messages` are those after it, up to `last`,
    and the eight before."""

    contents: GraphContents
    messages: Sequence[MessageWithImportance]
    done: int
    last: int


async def _from(
    view: ReadView | WriteTransaction, session: Session, done: int, last: int
) -> Sequence[MessageWithImportance]:
    return await view.conversations.messages(session, first_seq=max(1, done + 1 - LOOK_BACK), last_seq=last)


async def _mark(
    scope: Scope,
    messages: list[MessageWithImportance],
    done: int,
    last: int,
    transaction: WriteTransaction,
) -> bool:
    """Mark the messages up to seq `last` as added. False if the session or one of them is no longer as it was."""
    session = await transaction.sessions.get(scope)
    if session is None or not _is_behind(session) or session.observed_seq != done:
        return False
    if list(await _from(transaction, session, done, last)) != messages:
        return False
    await transaction.sessions.set_observed_seq(session, last)
    return True


def _is_behind(session: Session) -> bool:
    return session.state is not SessionState.FINALIZED and session.observed_seq < session.message_count


def observe_messages(
    graph: "GraphStore",
    messages: Sequence[MessageWithImportance],
    done: int,
    policy: GraphPolicy,
    keys: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Add the messages after seq `done` to the graph. Earlier ones only show which query a reply answers. `keys` are
    canonical keys of some texts.

    A reply answers the last user message among the eight before it; without one it is left out. So the result does not
    depend on how the messages are split into calls. Messages that the graph refuses or has no room for are left out.
    """
    asked_seq, query_id = 0, None
    refused: list[str] = []
    for message in messages:
        is_query = message.role is Role.USER
        if message.role is Role.SYSTEM or not message.text.strip():
            # The answer to a forgotten question must not become the answer to the question before it.
            query_id = None if is_query and message.is_hidden else query_id
            continue
        if is_query:
            asked_seq, query_id = message.seq, graph.node_of_record(message.record_id)
        if message.seq <= done or not (is_query or (query_id and message.seq - asked_seq <= LOOK_BACK)):
            continue
        try:
            query_id = _add(graph, message, None if is_query else query_id, policy, keys.get(message.text))
        except RecordNotFound:
            query_id = None  # the query was evicted while its answer came
        except (InvalidInput, GraphFull) as error:
            query_id = graph.node_of_record(message.record_id) if is_query else query_id
            refused.append(f"{message.record_id}: {error}")
    if refused:
        _log.warning("missing or incomplete messages in a session's graph: %d, such as %s", len(refused), refused[0])


def observe_again(
    graph: "GraphStore",
    messages: Sequence[MessageWithImportance],
    seq: int,
    policy: GraphPolicy,
    keys: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Add one changed or restored message again, and link it to its query or its answers.

    `messages` are the message and the observed ones around it, up to eight on each side. `keys`: see
    `observe_messages`.
    """
    place = next(place for place, message in enumerate(messages) if message.seq == seq)
    observe_messages(graph, messages[: place + 1], seq - 1, policy, keys)
    query_id = graph.node_of_record(messages[place].record_id)
    if messages[place].role is not Role.USER or query_id is None:
        return
    for after, message in enumerate(messages[place + 1 :], start=place + 1):
        if message.role is Role.USER or message.seq - seq > LOOK_BACK:
            return
        answer_id = graph.node_of_record(message.record_id)
        if answer_id is None:
            observe_messages(graph, messages[: after + 1], message.seq - 1, policy)
            continue
        try:
            graph.link(query_id, answer_id, EdgeType.RESPONDED_WITH, 1.0, at_ms=message.created_at)
        except GraphFull as error:
            _log.warning("%s is not linked to its question: %s", message.record_id, error)


def _add(
    graph: "GraphStore", message: MessageWithImportance, query_id: str | None, policy: GraphPolicy, key: str | None
) -> str:
    """Add a query, or an answer if `query_id` is given. Returns the query's node id."""
    record_id, at_ms = message.record_id, message.created_at
    if query_id is None:
        node_id = query_id = graph.upsert_query(message.text, record_id=record_id, at_ms=at_ms, key=key)
    else:
        node_id = graph.upsert_answer(query_id, message.text, record_id=record_id, at_ms=at_ms, key=key)
    _link(graph, message.text, node_id, record_id, at_ms, policy)
    return query_id


def observe_pins(graph: "GraphStore", pins: Sequence[SemanticPin], policy: GraphPolicy) -> None:
    """Pin the nodes of the pins' source messages, so that they are not evicted, and link them to the pins' entities."""
    for pin in pins:
        node_id = graph.node_of_record(pin.source_message_id or "")
        if node_id is None:
            continue
        graph.pin(node_id)
        try:
            _link(graph, pin.content, node_id, pin.id, pin.created_at, policy)
        except GraphFull as error:
            _log.warning("%s is pinned in its session's graph, but not all its entities are linked: %s", pin.id, error)


def _link(graph: "GraphStore", text: str, node_id: str, record_id: str, at_ms: int, policy: GraphPolicy) -> None:
    from kalito_mcp.graph.entities import entities  # noqa: PLC0415 - only where a graph is written

    for entity in entities(text)[: policy.max_entities]:
        graph.upsert_entity(entity, of=[node_id], record_id=record_id, at_ms=at_ms)
