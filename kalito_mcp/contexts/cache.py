"""A cache that is never stale: it returns a value only while it is young and no process has changed its owner's
memory."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from threading import Lock
from typing import Generic, NamedTuple, TypeVar

from kalito_mcp.domain.validation import Policy

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class CachePolicy(Policy):
    """What a context is made of is kept for `ttl_s` at most; 0 turns the cache off. Above `max_entries`, the least
    recently used is dropped."""

    ttl_s: float = 5.0
    max_entries: int = 256


class Moment(NamedTuple):
    """The revision of the owner's memory and the steady clock, before something is read."""

    revision: int
    steady_s: float


@dataclass(frozen=True, slots=True)
class _Entry(Generic[Value]):
    value: Value
    revision: int
    read_at_s: float


class RevisionCache(Generic[Key, Value]):
    """Values by key, each with the revision of its owner's memory before its read. Any thread may use it."""

    def __init__(self, policy: CachePolicy) -> None:
        self._policy = policy
        self._lock = Lock()
        self._entries: OrderedDict[Key, _Entry[Value]] = OrderedDict()

    def get(self, key: Key, *, revision: int, now_s: float) -> Value | None:
        """Return the value, or None if it is too old or was read at another revision."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                return None
            if entry.revision != revision or now_s - entry.read_at_s >= self._policy.ttl_s:
                del self._entries[key]
                return None
            self._entries.move_to_end(key)
            return entry.value

    def put(self, key: Key, value: Value, *, revision: int, now_s: float) -> None:
        """Keep the value. Read `revision` before the value, so that it can only be too old."""
        with self._lock:
            self._entries[key] = _Entry(value, revision, now_s)
            self._entries.move_to_end(key)
            while len(self._entries) > self._policy.max_entries:
                self._entries.popitem(last=False)

    def drop_where(self, is_dropped: Callable[[Key], bool]) -> None:
        """Remove the keys of which this holds."""
        with self._lock:
            for key in [key for key in self._entries if is_dropped(key)]:
                del self._entries[key]

    def __len__(self) -> int:
        return len(self._entries)
