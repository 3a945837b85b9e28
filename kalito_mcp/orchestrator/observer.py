"""Adds recorded messages to their session's graph when it is needed: when the session is finalized, when feedback
names it, and in a copy when somebody asks for it. A user's message becomes a query and the assistant's reply its
answer; both refer to the entities they mention.

`observed_seq` moves in the transaction that writes the nodes, so each message is added once, even after a crash.
"""

import logging
from collections.abc import Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import anyio.to_thread

from kalito_mcp.domain.graph import EdgeType, GraphContents, GraphPolicy
from kalito_mcp.domain.records import MessageWithImportance, Role, SemanticPin
from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.sessions import Session, SessionState
from kalito_mcp.errors import GraphFull, InvalidInput, RecordNotFound
from kalito_mcp.graph.canonical import canonical_key
from kalito_mcp.long_texts import LONG_CHARS
from kalito_mcp.orchestrator.graph_cache import GraphCache
from kalito_mcp.ports.store import ReadView, Store, WriteTransaction

if TYPE_CHECKING:
    from kalito_mcp.graph.store import GraphStore

_log: Final = logging.getLogger("kalito.graph")
_CHUNK: Final = 32
"""Messages of one write, at most. They take 7 ms, and other writers wait."""

_CHUNK_CHARS: Final = 20_000
"""Of long messages, so many characters are one write, and at least one message."""

_FEW_CHARS: Final = 1_000
"""Of messages that are added within two milliseconds: in a thread they would take longer."""

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
        Returns how many those were."""
        if not self.policy.enabled:
            return 0

        async def look(view: ReadView) -> tuple[Session | None, Sequence[MessageWithImportance]]:
            session = await view.sessions.get(scope)
            if session is None or not _is_behind(session):
                return session, ()
            done = session.observed_seq
            return session, await view.conversations.messages(session, first_seq=done + 1, last_seq=done + _CHUNK)

        observed = 0
        while True:
            session, coming = await self._store.read(look)
            if session is None or not coming:
                return observed
            await self._cache.warm_up()
            keys = await _keys_of_long(coming)
            added, is_complete = await self._cache.change([scope], partial(self._add_next, scope, keys))
            observed += added
            if is_complete:
                return observed

    async def _add_next(
        self, scope: Scope, keys: Mapping[str, str], transaction: WriteTransaction, graphs: Sequence["GraphStore"]
    ) -> tuple[int, bool]:
        """Add the next messages. Returns how many those were, and whether they are the last ones."""
        session = await transaction.sessions.get(scope)
        if session is None or not _is_behind(session):
            return 0, True
        done = session.observed_seq
        messages = await transaction.conversations.messages(
            session, first_seq=done + 1 - LOOK_BACK, last_seq=done + _CHUNK
        )
        last = min(_end_of_chunk(messages, done), session.message_count)
        observe_messages(graphs[0], [one for one in messages if one.seq <= last], done, self.policy, keys)
        await transaction.sessions.set_observed_seq(session, last)
        return last - done, last >= session.message_count

    async def copy(self, scope: Scope) -> "GraphStore":
        """A private copy of the session's graph with all of its messages. Nothing is stored. Raises SessionNotFound."""

        async def look(view: ReadView) -> tuple[GraphContents, int, Sequence[MessageWithImportance]]:
            contents, session = await self._cache.contents(view, scope), await view.sessions.get(scope)
            if session is None or not _is_behind(session) or not self.policy.enabled:
                return contents, 0, ()
            done = session.observed_seq
            first = max(1, done + 1 - LOOK_BACK)
            return (
                contents,
                done,
                await view.conversations.messages(session, first_seq=first, last_seq=session.message_count),
            )

        contents, done, messages = await self._store.read(look)
        graph = await self._cache.built(scope, contents)
        if messages:
            await anyio.to_thread.run_sync(observe_messages, graph, messages, done, self.policy)
        return graph


def _is_behind(session: Session) -> bool:
    return session.state is not SessionState.FINALIZED and session.observed_seq < session.message_count


async def _keys_of_long(messages: Sequence[MessageWithImportance]) -> Mapping[str, str]:
    """The canonical keys of the long texts, by text.

    For before the transaction: one takes some tenths of a second, in which no other call could write.
    """
    texts = [message.text for message in messages if len(message.text) > LONG_CHARS]
    if not texts:
        return {}
    return await anyio.to_thread.run_sync(lambda: {text: canonical_key(text) for text in texts})


def _end_of_chunk(messages: Sequence[MessageWithImportance], done: int) -> int:
    """The seq of the last message of one write, if those up to seq `done` are in the graph."""
    chars = 0
    for message in messages:
        chars += len(message.text) if message.seq > done else 0
        if chars > _CHUNK_CHARS and message.seq > done + 1:
            return message.seq - 1
    return done + _CHUNK


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
