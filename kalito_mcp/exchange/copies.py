"""Leaves out the beginning that a conversation has in common with another one that is stored. Reads only.

A fork, a resumed conversation, or one in a worktree or in the background begins with a copy of another one. The copy is
left out wherever its file lies, and whichever of the two was imported first. It is recognised

- by the ids of its messages;
- by the conversation that the source says it was copied from, and the words;
- if the source gives neither, as what was recorded live, by two messages of the same side, words and moment. What does
  not say when is as old as its conversation.
"""

from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Final

from kalito_mcp.domain.records import Role
from kalito_mcp.exchange.conversation import Turn
from kalito_mcp.exchange.stored import Stored, client_key, digest, keys_of, parts_of
from kalito_mcp.memory import Memory
from kalito_mcp.safety.redaction import redact, usable_handle

_SAME_MOMENT_MS: Final = 10_000
"""Between what a transcript says and what a hook reported of the same message."""
_MOST_READ: Final = 50


@dataclass(slots=True)
class _Other:
    """What another conversation has: its messages by their client keys, its words, and when they were said."""

    by_key: dict[str, tuple[int, str]] = field(default_factory=dict[str, tuple[int, str]])
    words: Stored = field(default_factory=lambda: Stored(None))
    moments: dict[bytes, list[tuple[int, int]]] = field(default_factory=dict[bytes, list[tuple[int, int]]])
    """By the digest of the words: the moment, and how far another moment may be from it."""

    def has(self, turn: Turn, key: str) -> bool:
        """Whether it has the message of this id. It may have been edited here, or have grown; with other words and at
        another moment it is another message."""
        if key not in self.by_key:
            return False
        at, text = self.by_key[key]
        words, there = (" ".join(one.split()) for one in (redact(turn.text).text, text))
        return at == turn.at or words in there or bool(there and there in words)

    def has_said(self, turn: Turn) -> bool:
        """Whether the same side said the same words at the same moment."""
        said = self.moments.get(digest(turn.role, redact(turn.text).text), ())
        return turn.at is not None and any(abs(turn.at - at) <= within for at, within in said)


class Copies:
    """The conversations that one conversation may begin with a copy of. `own` is what is stored of itself."""

    def __init__(self, memory: Memory, own: Stored, source: str) -> None:
        self._memory = memory
        self._own = own
        self._source = source
        self._others: dict[str, _Other] = {}
        self._live: _Other | None = None
        self.count = 0
        """Messages that were left out."""

    async def without(self, turns: Iterable[Turn]) -> AsyncIterator[Turn]:
        """The turns that are not copies, in order. From the first turn on that is new everywhere, none is."""
        rest = iter(turns)
        is_beginning = True
        for turn in chain(await self._first(rest), rest):
            if is_beginning and not self._own.has_key(*self._keys(turn)):
                named, origin = await self._by_id(turn), await self._origin(turn)
                others = [one for one in (named, origin) if one is not None]
                # Hooks may report only a part of an answer. Then the other parts are new.
                is_beginning = bool(others and turn.role is Role.ASSISTANT) or self._own.has_words(turn)
                if named is not None or (origin is not None and not self._is_rest(origin, turn)):
                    is_beginning = True
                    self.count += 1
                    continue
            yield turn

    async def _first(self, turns: Iterator[Turn]) -> list[Turn]:
        """The first turns, up to where it is known whether they were recorded live in another conversation."""
        first = next(turns, None)
        if first is None:
            return []
        if first.at is None or first.origin or self._own.has_key(*self._keys(first)) or self._own.has_words(first):
            return [first]
        if await self._by_id(first) is not None:
            return [first]
        read = [first]
        found = await self._memory.imports.sessions_at(first.role, first.at, _SAME_MOMENT_MS)
        others = [await self._other(one) for one in found if one not in self._own.session_ids]
        suspects = [one for one in others if one.has_said(first)]
        while suspects and self._live is None and (turn := next(turns, None)) is not None:
            read.append(turn)
            named = await self._by_id(turn)
            self._live = next((one for one in suspects if one is named or one.has_said(turn)), None)
            if turn.role is Role.USER or len(read) == _MOST_READ:
                break
        return read

    def _keys(self, turn: Turn) -> list[str]:
        return keys_of(self._source, turn)

    async def _by_id(self, turn: Turn) -> _Other | None:
        """The conversation that has the message of this id."""
        keys = self._keys(turn)
        named = next((one for one in self._others.values() for key in keys if one.has(turn, key)), None)
        if named is not None:
            return named
        for key in keys:
            found = await self._memory.imports.sessions_holding(key)
            others = [await self._other(one) for one in found if one not in self._own.session_ids]
            named = named or next((one for one in others if one.has(turn, key)), None)
        return named

    async def _origin(self, turn: Turn) -> _Other | None:
        """The conversation that the source names, or in which the beginning was recorded live."""
        named = None if turn.origin is None else usable_handle(turn.origin, self._source)
        return self._live if named is None or named in self._own.session_ids else await self._other(named)

    def _is_rest(self, other: _Other, turn: Turn) -> bool:
        """Take what the other conversation has out of the turn. Whether something is left."""
        if other is self._live and turn.role is Role.USER and not other.has_said(turn):
            return True  # the same words, at another moment
        if rest := other.words.new_of(turn, client_key(self._source, turn.key)):
            turn.text = rest
        return bool(rest)

    async def _other(self, session_id: str) -> _Other:
        if session_id not in self._others:
            self._others[session_id] = other = _Other()
            for session in await parts_of(self._memory, session_id):
                async for turns in self._memory.conversations.turns(session):
                    for turn in turns:
                        key = turn.client_key or ""
                        is_imported = key.startswith(f"{self._source}:")
                        other.words.add(turn.role, turn.text)
                        if is_imported:
                            other.by_key[key] = turn.created_at, turn.text
                        if is_imported or turn.client == self._source:
                            within = 0 if is_imported else _SAME_MOMENT_MS
                            said = other.moments.setdefault(digest(turn.role, turn.text), [])
                            said.append((turn.created_at, within))
        return self._others[session_id]
