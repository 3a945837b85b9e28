"""Takes out of a text what must not be kept: secrets, and what is marked as private. Pure.

A secret becomes a mark that says what it was, `[redacted: github token]`; what stands in <private>...</private>, tags
included, becomes `[private]`. What a secret is, is in `secret_shapes` and `secret_names`. Doing it twice changes
nothing more.

It sees one text at a time: a secret that is split over two messages stays, as does one with invisible characters in it.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Final

from kalito_mcp.records.secret_names import FOREIGN_STEMS, STEMS, is_secret_of, named_secrets
from kalito_mcp.records.secret_shapes import Found, shaped_secrets

# Any of these, in small letters, or a long run of characters, or digits in groups: only then is it worth a closer look.
_SIGNS: Final = ("private", "auth", "bearer", "://", *STEMS)
_LONG_RUN: Final = re.compile(r"[!-~]{16}")
_DIGIT_GROUPS: Final = re.compile(r"[0-9]{4}[ -]?[0-9]{4}")

# A tag's name is enough, so that an unfinished tag hides as well; behind a space it must be a whole tag: a < private b.
_PRIVATE_TAG: Final = re.compile(
    r"<(?P<closing>/?)private(?=[\s/>]|\Z)[^<>]*>?|<\s*(?P<spaced_closing>/?)\s*private(?=[\s/>])[^<>]*>", re.IGNORECASE
)
_PRIVATE: Final = "private"
# What is taken out may uncover what stood against it. Three passes are the most that random texts have needed.
_MOST_PASSES: Final = 8
_KEY_BYTES: Final = 16


@dataclass(frozen=True, slots=True)
class Redacted:
    """A text without what must not be kept, and the kinds of what was taken out, in order, pass by pass."""

    text: str
    kinds: tuple[str, ...]


def redact(text: str) -> Redacted:
    """The text without secrets and private parts; the same object where there are none."""
    kinds: tuple[str, ...] = ()
    for _ in range(_MOST_PASSES):
        if not _may_hold_any(text):
            break
        found = _merged([*_private_parts(text), *shaped_secrets(text), *named_secrets(text)])
        if not found:
            break
        kinds += tuple(one.kind for one in found)
        text = _replaced(text, found)
    return Redacted(text, kinds)


def redacted_values(value: Any) -> Any:
    """The same in every string of a JSON value; a field that is called a password, a token or a key is one."""
    if isinstance(value, str):
        return redact(value).text
    if isinstance(value, dict):
        return {key: _redacted_field(key, one) for key, one in value.items()}
    return [redacted_values(one) for one in value] if isinstance(value, list) else value


def redacted_key(key: str | None) -> str | None:
    """A client_key without what must not be kept: as it is, or where it holds such a thing, a hash of it, so that the
    same key is still the same."""
    if key is None or redact(key).text is key:
        return key
    return f"hashed:{blake2b(key.encode('utf-8', 'surrogatepass'), digest_size=_KEY_BYTES).hexdigest()}"


def _redacted_field(name: object, value: Any) -> Any:
    if isinstance(value, str) and isinstance(name, str) and is_secret_of(name, value):
        return _mark("secret")
    return redacted_values(value)


def _may_hold_any(text: str) -> bool:
    lowered = text.lower()
    for sign in _SIGNS:
        if sign in lowered:
            return True
    if _LONG_RUN.search(text) or _DIGIT_GROUPS.search(text):
        return True
    return not text.isascii() and any(sign in lowered for sign in FOREIGN_STEMS)


def _private_parts(text: str) -> Iterator[Found]:
    """From each opening tag to the closing one that belongs to it, or to the end."""
    depth = start = 0
    for tag in _PRIVATE_TAG.finditer(text):
        if tag["closing"] or tag["spaced_closing"]:
            if depth == 1:
                yield Found(start, tag.end(), _PRIVATE)
            depth = max(depth - 1, 0)
        else:
            start = start if depth else tag.start()
            depth += 1
    if depth:
        yield Found(start, len(text), _PRIVATE)


def _merged(found: Sequence[Found]) -> list[Found]:
    """In order and apart: of those that overlap, one that covers them, of the kind of the first and longest."""
    merged: list[Found] = []
    for one in sorted(found, key=lambda one: (one.start, -one.end)):
        if merged and one.start < merged[-1].end:
            merged[-1] = merged[-1]._replace(end=max(merged[-1].end, one.end))
        else:
            merged.append(one)
    return merged


def _replaced(text: str, found: Sequence[Found]) -> str:
    parts: list[str] = []
    end = 0
    for one in found:
        parts += text[end : one.start], _mark(one.kind)
        end = one.end
    return "".join([*parts, text[end:]])


def _mark(kind: str) -> str:
    return "[private]" if kind == _PRIVATE else f"[redacted: {kind.replace('_', ' ')}]"
