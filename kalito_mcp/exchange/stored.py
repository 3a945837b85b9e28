"""Finds the stored part of a conversation, so that an import stores each word once.

A message is the same if its client key is; or else if the same side said the same words. A hook may have reported only
the end of an answer, or all answers to a prompt as one: so what was reported after a prompt is taken out of what the
source has after it, and the rest is stored.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Final

from kalito_mcp.capture.conversations import continued
from kalito_mcp.domain.records import Role
from kalito_mcp.domain.sessions import Session, SessionState
from kalito_mcp.exchange.conversation import Turn
from kalito_mcp.exchange.stored_answers import Answer, StoredAnswers
from kalito_mcp.memory import Memory
from kalito_mcp.safety.redaction import redact

_MOST_KEY: Final = 150
"""Characters of an id, so that with the name of its source it is a client key."""


@dataclass(slots=True)
class Stored:
    """Where a conversation goes, and what of it is stored. Ask for its turns in order: the last prompt counts."""

    memory: Memory | None
    is_continued: bool = False
    """Whether the session was closed, so that what is new goes into one that continues it."""
    erased_count: int = 0
    """How many of its messages were erased for good."""
    is_refused: bool = False
    session_ids: frozenset[str] = frozenset()
    _keys: dict[str, "_Kept | None"] = field(default_factory=dict[str, "_Kept | None"])
    """What is stored with the client keys of this source; None for what is stored by this import."""
    _others: Counter[bytes] = field(default_factory=Counter[bytes])
    """How often each other message is stored, by role and words."""
    _answers: dict[bytes, StoredAnswers] = field(default_factory=dict[bytes, StoredAnswers])
    """The answers among these, by the prompt before them."""
    _all_answers: StoredAnswers = field(default_factory=StoredAnswers)
    """The same answers, for a source that begins after their prompts."""
    _following: dict[str, str] = field(default_factory=dict[str, str])
    """The client key of the message of this source that follows each, and of the first one after an empty key."""
    _last_key: str = ""
    _key_before: str = ""
    _stored_prompt: bytes = b""
    _prompt: bytes = b""

    @classmethod
    async def of(cls, memory: Memory, parts: Sequence[Session], prefix: str) -> "Stored":
        """What is stored of a conversation in its sessions: the first, and those that continue one that was closed. The
        client keys of the source begin with `prefix`."""
        ids = frozenset(part.id for part in parts)
        stored = cls(memory, is_continued=parts[0].state is not SessionState.OPEN, session_ids=ids)
        for session in parts:
            async for turns in memory.conversations.turns(session):
                stored.erased_count += sum(not turn.text for turn in turns)
                for turn in turns:
                    is_of_source = turn.client_key is not None and turn.client_key.startswith(prefix)
                    stored.add(turn.role, turn.text, turn.client_key if is_of_source else None, turn.number)
        return stored

    def add(self, role: Role, text: str, key: str | None = None, number: int = 0) -> None:
        """A message that is stored, with its client key and its number if it is of the source. In the order of the
        session."""
        said = digest(role, text)
        if role is Role.USER:
            self._stored_prompt = said
        if key is not None:
            self._keys[key] = _Kept(said, len(text), number)
            self._following[self._last_key] = key
            self._last_key = key
            return
        self._others[said] += 1
        if role is Role.ASSISTANT:
            answer = Answer(text, said)
            self._answers.setdefault(self._stored_prompt, StoredAnswers()).add(answer)
            self._all_answers.add(answer)

    def has_key(self, *keys: str) -> bool:
        """Whether the source's message with one of these client keys is stored."""
        return any(key in self._keys for key in keys)

    def has_words(self, turn: Turn) -> bool:
        """Whether the words of a turn are stored without a client key of the source, and not found yet."""
        return bool(self._others) and self._others[digest(turn.role, redact(turn.text).text)] > 0

    def in_place(self, turn: Turn, key: str) -> tuple[str, int] | None:
        """The client key and the number of the answer that is stored where this one would be, if this one has no id and
        is not stored with its own words."""
        following = self._following.get(self._key_before, "")
        self._key_before = key
        kept = self._keys.get(following)
        if turn.has_id or turn.role is not Role.ASSISTANT or key in self._keys or self._all_answers.has_any:
            return None
        return None if kept is None else (following, kept.number)

    def now_in_place(self, key: str) -> str:
        """The key, which is that of the last turn."""
        self._key_before = key
        return key

    def to_complete(self, turn: Turn, key: str) -> int | None:
        """The number of the stored message with this key, if the source has more of it now."""
        kept = self._keys.get(key)
        if kept is None or len(turn.text) <= kept.length or digest(turn.role, turn.text) == kept.digest:
            return None
        # The rest of an answer was stored with what a hook had reported of it.
        is_rest = turn.role is Role.ASSISTANT and self._all_answers.has_any
        return None if is_rest or digest(turn.role, redact(turn.text).text) == kept.digest else kept.number

    def new_of(self, turn: Turn, key: str) -> str:
        """The words of a turn that are not stored yet; empty if all are. They count as stored from now on."""
        if not self._others:
            is_new = key not in self._keys
            self._keys.setdefault(key)
            return turn.text if is_new else ""
        text = redact(turn.text).text
        said = digest(turn.role, text)
        if turn.role is Role.USER:
            self._prompt = said
        if key in self._keys:
            return ""
        if self._others[said] > 0:
            self._others[said] -= 1
            if turn.role is Role.ASSISTANT:
                self._take_answer(said)
            return ""
        rest = self._without_answer(text) if turn.role is Role.ASSISTANT else turn.text
        if rest:
            self._keys[key] = None
        return turn.text if rest == text else rest

    def _take_answer(self, digest: bytes) -> None:
        """Take an answer with these words, if one is stored: first one to the last prompt."""
        answers = self._answers.get(self._prompt)
        if answers is None or not answers.take(digest):
            self._all_answers.take(digest)

    def _without_answer(self, text: str) -> str:
        """The text without an answer that is stored; empty if all of the text is in one."""
        # Without the prompt, an answer that has the words of the text can be another one.
        if self._prompt:
            answers = self._answers.get(self._prompt)
            found = answers.cut_either(text) if answers else None
        else:
            found = self._all_answers.cut_out(text)
        if found is None:
            return text
        answer, rest = found
        self._others[answer.digest] -= 1
        return rest


@dataclass(frozen=True, slots=True)
class _Kept:
    """A stored message of the source: its words, the characters of its text, and its number."""

    digest: bytes
    length: int
    number: int


async def parts_of(memory: Memory, session_id: str) -> list[Session]:
    """The sessions of a conversation: the first, and those that continue one that was closed. Empty if it has none."""
    parts: list[Session] = []
    while (session := await memory.conversations.get(session_id)) is not None:
        parts.append(session)
        if session.state is SessionState.OPEN:
            break
        session_id = continued(parts[0].id, len(parts) + 1)
    return parts


def keys_of(source: str, turn: Turn) -> list[str]:
    """The client keys that a turn may be stored with, its own first."""
    return [client_key(source, key) for key in (turn.key, turn.also) if key is not None]


def client_key(source: str, key: str) -> str:
    """The client key of a message: the name of its source and its id there, or a hash of an id that is no name."""
    if len(key) > _MOST_KEY or not key.isprintable() or not key.strip():
        key = blake2b(key.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
    return f"{source}:{key}"


def digest(role: Role, text: str) -> bytes:
    """What a side said, whatever white space is between the words."""
    return blake2b(f"{role}\0{' '.join(text.split())}".encode("utf-8", "surrogatepass"), digest_size=16).digest()
