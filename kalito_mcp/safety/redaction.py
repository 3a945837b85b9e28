"""Removes from a text what must not be kept: secrets, and parts marked as private. Pure.

A secret is replaced by a mark with its kind, `[redacted: github token]`. <private>...</private> is replaced, tags
included, by `[private]`. `secret_shapes`, `secret_services`, `secret_names` and `secret_carriers` define what a secret
is. Redacting twice changes nothing more.

It reads one text at a time. A secret that is split over two messages stays, and so does one with invisible characters.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from enum import Enum
from functools import cache
from hashlib import blake2b
from typing import Any, Final, TypeVar

from kalito_mcp.domain.validation import checked_name
from kalito_mcp.errors import InvalidInput
from kalito_mcp.safety.secret_carriers import COMMANDS, carried_secrets
from kalito_mcp.safety.secret_names import FOREIGN_STEMS, STEMS, is_secret_of, named_secrets
from kalito_mcp.safety.secret_shapes import Found, shaped_secrets

# Only a text with one of these, in lower case, or a long run of characters, or groups of digits, is examined closely.
# Some of them only matter in a text with a number.
_SIGNS: Final = (
    "private",
    "auth",
    "bearer",
    "://",
    "curl ",
    "cookie",
    "mnemonic",
    *COMMANDS,
    *(f"{kind} {words}" for kind in ("seed", "recovery", "backup") for words in ("phrase", "words")),
    *STEMS,
)
_SIGNS_OF_CODES: Final = ("pin", "code", "cvv", "cvc")
_NUMBER: Final = re.compile(r"[0-9]{3}")
_LONG_RUN: Final = re.compile(r"[!-~]{16}")
_DIGIT_GROUPS: Final = re.compile(r"[0-9]{4}[ -]?[0-9]{4}")

# The tag's name is enough, so that an unfinished tag hides too. After a space the tag must be whole: a < private b.
_PRIVATE_TAG: Final = re.compile(
    r"(?:<|&lt;)(?P<closing>/?)private(?=[\s/>&]|\Z)[^<>&]*(?:>|&gt;)?|<\s*(?P<spaced_closing>/?)\s*private(?=[\s/>])[^<>]*>",
    re.IGNORECASE,
)
_PRIVATE: Final = "private"
# A removal may uncover a secret next to it. Random texts have needed three passes at most.
_MOST_PASSES: Final = 8
_KEY_BYTES: Final = 16
_LONGEST_OF_HOST: Final = 190
"""Characters of an id that a host chose: what goes on under another name adds some."""
_CLIENT_KEY: Final = "client_key"
_HANDLES: Final = ("session_id",)
_TEXTS: Final = ("text", "content", "summary", "note", "details")
"""The main fields of a call, which reports do not name. The fields inside `details` are named."""

_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True)
class Redacted:
    """A text without what must not be kept, and the kinds of the removed parts, in order, pass by pass."""

    text: str
    kinds: tuple[str, ...]


def redact(text: str) -> Redacted:
    """Remove secrets and private parts from the text; the same object if it has no such parts."""
    kinds: tuple[str, ...] = ()
    for _ in range(_MOST_PASSES):
        if not _may_contain_any(text):
            break
        found = _merged([*_private_parts(text), *shaped_secrets(text), *named_secrets(text), *carried_secrets(text)])
        if not found:
            break
        kinds += tuple(one.kind for one in found)
        text = _replaced(text, found)
    return Redacted(text, kinds)


def cleaned(given: _Value) -> tuple[_Value, tuple[str, ...]]:
    """A value without what must not be kept, and the kinds of the removed parts: `github_token`, `password in title`.

    Every string in a dataclass or in JSON of any depth is read, JSON field names included. Enumerations are not, nor
    session ids: an id with a secret is refused instead. The value of a JSON field called password, token or key counts
    as a secret. Everything that a caller passes goes through here once, so a new field is covered too.
    """
    found: list[str] = []
    kept = _cleaned(given, "", found)
    return (kept if found else given), tuple(found)


def _cleaned(value: Any, field: str, found: list[str]) -> Any:
    if value is None or isinstance(value, int | float | Enum):
        return value
    if isinstance(value, str):
        kept = redact(value)
        found += [f"{kind} in {field}" if field else kind for kind in kept.kinds]
        # Equal keys must stay equal, so that a retry is recognised.
        return hashed(value) if field == _CLIENT_KEY and kept.kinds else kept.text
    if isinstance(value, list | tuple):
        return [_cleaned(one, field, found) for one in value]
    if names := _field_names(value.__class__):
        count = len(found)
        given = ((name, shown, getattr(value, name)) for name, shown in names)
        read = {name: _cleaned(one, field or shown, found) for name, shown, one in given if one is not None}
        return replace(value, **read) if len(found) > count else value
    if isinstance(value, Mapping):
        return {
            _cleaned(name, field or "the name of a field", found): _cleaned_field(name, one, field, found)
            for name, one in value.items()
        }
    return value


@cache
def _field_names(kind: type) -> tuple[tuple[str, str], ...]:
    """The fields of a dataclass that are read, and what reports call them; none of another type."""
    names = [one.name for one in fields(kind) if one.name not in _HANDLES] if is_dataclass(kind) else []
    return tuple((name, _shown(name)) for name in names)


def _cleaned_field(name: object, value: Any, field: str, found: list[str]) -> Any:
    field = field or _shown(redact(str(name)).text)
    if isinstance(value, str) and isinstance(name, str) and is_secret_of(name, value):
        found.append(f"secret in {field}")
        return _mark("secret")
    return _cleaned(value, field, found)


def _shown(name: str) -> str:
    return "" if name in _TEXTS else name


def checked_handle(name: str, field: str) -> str:
    """Return the id of a session or an agent, which is kept and shown unchanged.

    Raises:
        InvalidInput: the name is malformed (see `checked_name`), or contains a secret or a private part.
    """
    checked_name(name, field)
    if redact(name).kinds:
        raise InvalidInput(f"{field} seems to contain a secret, and would be stored and shown; use another name")
    return name


def usable_handle(name: str, kind: str) -> str:
    """The id of a session that a host has chosen, or a hash of one that is too long, that is no name, or that looks
    like a secret. What hooks report and what an import reads get the same."""
    try:
        if len(name) <= _LONGEST_OF_HOST:
            return checked_handle(name, "session_id")
    except InvalidInput:
        pass
    digest = blake2b(repr((name,)).encode("utf-8", "surrogatepass"), digest_size=16)
    return f"{kind}-{digest.hexdigest()}"


def hashed(key: str) -> str:
    """A digest to keep instead of a client_key that contains a secret."""
    return f"hashed:{blake2b(key.encode('utf-8', 'surrogatepass'), digest_size=_KEY_BYTES).hexdigest()}"


def _may_contain_any(text: str) -> bool:
    lowered = text.lower()
    for sign in _SIGNS:
        if sign in lowered:
            return True
    if _LONG_RUN.search(text) or _DIGIT_GROUPS.search(text):
        return True
    if any(sign in lowered for sign in _SIGNS_OF_CODES) and _NUMBER.search(text):
        return True
    return not text.isascii() and any(sign in lowered for sign in FOREIGN_STEMS)


def _private_parts(text: str) -> Iterator[Found]:
    """Each part from an opening tag to its closing tag, or to the end of the text."""
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
    """In order, without overlaps: those that overlap become one part, of the kind of the first and longest."""
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
