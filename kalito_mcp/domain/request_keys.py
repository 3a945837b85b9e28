"""The client_key of what a request wrote that may be sent again: over HTTP, one with an Idempotency-Key. Pure.

It has two parts: what the caller chose, and what the request asked for. So a repetition is recognised, and the same
choice with another request is refused. Only hashes are in it. What it is the key of goes with it when it is erased.
"""

import re
from hashlib import blake2b
from typing import Final

from kalito_mcp.domain.scope import NO_LIMITS, Limits

BRIDGE_PREFIX: Final = "bridge:"
"""The prefix of keys that a bridge adds where they are missing."""
_PREFIX: Final = "request:"
_LETTERS: Final = str.maketrans("0123456789abcdef", "abcdefghijklmnop")
_SHAPE: Final = re.compile(rf"(?P<request>(?P<chosen>{_PREFIX}[a-p]{{24}}:)[a-p]{{16}})(?::\d+)?", re.ASCII)


def request_key(chosen: str, content: bytes) -> str:
    """The client_key for what a caller chose as the key of a request. It has letters only, so that it is never taken
    for a secret number."""
    return f"{_PREFIX}{_letters(chosen.encode(), 12)}:{_letters(content, 8)}"


def part_key(key: str, place: int) -> str:
    """The client_key of one of several things that a request writes."""
    return f"{key}:{place}"


def chosen_part(client_key: str | None) -> str | None:
    """The common prefix of all keys with the same choice; None if this is not a request key."""
    parts = request_parts(client_key)
    return None if parts is None else parts[0]


def request_parts(client_key: str | None) -> tuple[str, str] | None:
    """`chosen_part`, and the common prefix of all keys of the same request; None if this is not a request key."""
    found = _SHAPE.fullmatch(client_key or "")
    return None if found is None else (found["chosen"], found["request"])


def chosen_by_caller(client_key: str | None) -> str | None:
    """A client_key that says something to its caller; None of one that a program made, so that a request may be sent
    again."""
    is_made = client_key is not None and client_key.startswith((_PREFIX, BRIDGE_PREFIX))
    return None if is_made else client_key


def key_within(client_key: str, limits: Limits) -> str:
    """The client_key that a caller with these limits gets for one that it chose: what is beyond them may have the same
    one, and nobody shall learn of it."""
    chosen = chosen_part(client_key)
    if chosen is None or limits == NO_LIMITS:
        return limits.own_session(client_key)
    return f"{_PREFIX}{_letters(limits.own_session(chosen).encode(), 12)}:{client_key[len(chosen) :]}"


def _letters(text: bytes, size: int) -> str:
    return blake2b(text, digest_size=size).hexdigest().translate(_LETTERS)
