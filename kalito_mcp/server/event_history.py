"""The events sent to a session of 2025-11-25 over HTTP, so that a client whose stream broke gets what it missed.

The 2026 protocol has no such thing: there, a client asks again. The history is in memory, and short: only the newest
bytes are kept, up to a limit per session and one for all. Each session has a history of its own, so the id of one
session's event says nothing in another.
"""

import heapq
import secrets
from collections import deque
from dataclasses import dataclass
from itertools import count
from typing import Final
from weakref import WeakSet

import anyio
from mcp.server.streamable_http import GET_STREAM_KEY, EventCallback, EventId, EventMessage, EventStore, StreamId
from mcp.types import JSONRPCError, JSONRPCMessage, JSONRPCResponse, jsonrpc_message_adapter

MOST_EVENTS: Final = 1_000
MOST_BYTES: Final = 2 << 20
"""Both limits are per session. The last event is kept until the next one, whatever its size: a client may be waiting
for it."""
MOST_BYTES_OF_ALL: Final = 64 << 20
_EVENT_BYTES: Final = 300
"""Overhead of an event in addition to its message."""
_ROOM: Final = 0.9


@dataclass(frozen=True, slots=True)
class _Event:
    """One thing that was sent on a stream, as JSON: as objects it would take several times as much. Without a message
    it only marks a place."""

    number: int
    stream_id: StreamId
    message: bytes | None
    is_answer: bool

    @property
    def size(self) -> int:
        """In bytes."""
        return _EVENT_BYTES + len(self.message or b"")


class EventHistories:
    """Makes a history for each session, and bounds them together: the oldest events of any are dropped first."""

    def __init__(self, *, most_bytes: int = MOST_BYTES_OF_ALL) -> None:
        self._most_bytes = most_bytes
        self._histories: WeakSet[SessionHistory] = WeakSet()
        self._numbers = count(1)
        self._bytes = 0

    def new(self) -> "SessionHistory":
        """An empty history. It ends with its session, which alone holds it."""
        history = SessionHistory(self)
        self._histories.add(history)
        return history

    def next_number(self) -> int:
        """A number for an event, greater than all before."""
        return next(self._numbers)

    def grew(self, size: int) -> None:
        """Drop the oldest events of all sessions if there are too many bytes."""
        self._bytes += size
        if self._bytes <= self._most_bytes:
            return
        # Sessions that ended are still counted, until here.
        by_age = [(one.oldest(), one) for one in self._histories if one.size]
        heapq.heapify(by_age)
        self._bytes = sum(one.size for _, one in by_age)
        while by_age and self._bytes > self._most_bytes * _ROOM:
            _, history = heapq.heappop(by_age)
            self._bytes -= history.drop_oldest()
            if history.size:
                heapq.heappush(by_age, (history.oldest(), history))


class SessionHistory(EventStore):
    """The events of one session, oldest first. The SDK stores each before it sends it."""

    def __init__(self, all_of_them: EventHistories) -> None:
        self._all = all_of_them
        self._name = secrets.token_hex(8)
        self._events: deque[_Event] = deque()
        self._changed = anyio.Event()
        self.size = 0
        """In bytes."""

    async def store_event(self, stream_id: StreamId, message: JSONRPCMessage | None) -> EventId:
        """Keep an event. Returns its id."""
        said = None if message is None else message.model_dump_json(by_alias=True, exclude_unset=True).encode()
        is_answer = isinstance(message, JSONRPCResponse | JSONRPCError)
        event = _Event(self._all.next_number(), stream_id, said, is_answer)
        self._events.append(event)
        self._changed.set()
        self._changed = anyio.Event()
        self.size += event.size
        while len(self._events) > MOST_EVENTS or (self.size > MOST_BYTES and len(self._events) > 1):
            self.drop_oldest()
        self._all.grew(event.size)
        return f"{self._name}-{event.number}"

    async def replay_events_after(self, last_event_id: EventId, send_callback: EventCallback) -> StreamId | None:
        """Replay a stream after an event. For a call, replay until its answer, waiting for it if needed.

        Returns the stream for the SDK to go on with, if it is the one of notifications. The SDK loses what is sent
        between the end of a replay and that moment. None ends the stream: the answer was sent, or the event is unknown
        or already dropped.
        """
        name, _, number = last_event_id.rpartition("-")
        last = next((one for one in self._events if str(one.number) == number), None) if name == self._name else None
        if last is None:
            return None
        sent_up_to = last.number
        while True:
            changed = self._changed
            for one in list(self._events):
                if one.number <= sent_up_to or one.stream_id != last.stream_id or one.message is None:
                    continue
                message = jsonrpc_message_adapter.validate_json(one.message, by_name=False)
                await send_callback(EventMessage(message, f"{self._name}-{one.number}"))
                sent_up_to = one.number
                if one.is_answer:
                    return None
            if last.stream_id == GET_STREAM_KEY:
                return last.stream_id
            await changed.wait()

    def oldest(self) -> int:
        """The number of the oldest event. There must be one."""
        return self._events[0].number

    def drop_oldest(self) -> int:
        """Forget the oldest event. Returns its size."""
        dropped = self._events.popleft()
        self.size -= dropped.size
        return dropped.size
