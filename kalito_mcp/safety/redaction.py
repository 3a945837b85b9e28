"""Takes out of a text what must not be kept: secrets, and what is marked as private. Pure.

A secret becomes a mark that says what it was, `[redacted: github token]`; what stands in <private>...</private>, tags
included, becomes `[private]`. What a secret is, is in `secret_shapes` and `secret_names`. Doing it twice changes
nothing more.

It sees one text at a time: a secret that is split over two messages stays, as does one with invisible characters in it.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from enum import Enum
from hashlib import blake2b
from typing import Any, Final, TypeVar

from kalito_mcp.domain.validation import checked_name
from kalito_mcp.errors import InvalidInput
from kalito_mcp.safety.secret_names import FOREIGN_STEMS, STEMS, is_secret_of, named_secrets
from kalito_mcp.safety.secret_shapes import Found, shaped_secrets

# Any of these, in small letters, or a long run of characters, or digits in groups: only then is it worth a closer look.
_SIGNS: Final = (
    "private",
    "auth",
    "bearer",
    "://",
    "curl ",
    "cookie",
    "pin",
    "code",
    "cvv",
    "cvc",
    "words",
    "phrase",
    "mnemonic",
    *STEMS,
)
_LONG_RUN: Final = re.compile(r"[!-~]{16}")
_DIGIT_GROUPS: Final = re.compile(r"[0-9]{4}[ -]?[0-9]{4}")

# A tag's name is enough, so that an unfinished tag hides as well; behind a space it must be a whole tag: a < private b.
_PRIVATE_TAG: Final = re.compile(
    r"(?:<|&lt;)(?P<closing>/?)private(?=[\s/>&]|\Z)[^<>&]*(?:>|&gt;)?|<\s*(?P<spaced_closing>/?)\s*private(?=[\s/>])[^<>]*>",
    re.IGNORECASE,
)
_PRIVATE: Final = "private"
# What is taken out may uncover what stood against it. Three passes are the most that random texts have needed.
_MOST_PASSES: Final = 8
_KEY_BYTES: Final = 16
_CLIENT_KEY: Final = "client_key"
_HANDLES: Final = ("session_id",)
_TEXTS: Final = ("text", "content", "summary", "note", "details")
"""What a call is about, which need not be named; of details, the fields in it are."""

_Given = TypeVar("_Given")


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


def cleaned(given: _Given) -> tuple[_Given, tuple[str, ...]]:
    """A value without what must not be kept, and what was taken out: `github_token`, `password in title`.

    Every string of it is read, the names of its fields included: those of a dataclass, and of JSON as deep as it goes;
    but an enumeration, and the ids of sessions, which are refused instead. A JSON field that is called a password, a
    token or a key is one. So whatever a caller hands over goes through here once, and a new field does too.
    """
    found: list[str] = []
    return _cleaned(given, "", found), tuple(found)


def _cleaned(value: Any, field: str, found: list[str]) -> Any:
    if isinstance(value, str) and not isinstance(value, Enum):
        kept = redact(value)
        found += [f"{kind} in {field}" if field else kind for kind in kept.kinds]
        # The same key has to stay the same.
        return hashed(value) if field == _CLIENT_KEY and kept.kinds else kept.text
    if is_dataclass(value) and not isinstance(value, type):
        own = {one.name: getattr(value, one.name) for one in fields(value) if one.name not in _HANDLES}
        return replace(value, **{name: _cleaned(one, field or _shown(name), found) for name, one in own.items()})
    if isinstance(value, Mapping):
        return {
            _cleaned(name, field or "the name of a field", found): _cleaned_field(name, one, field, found)
            for name, one in value.items()
        }
    return [_cleaned(one, field, found) for one in value] if isinstance(value, list | tuple) else value


def _cleaned_field(name: object, value: Any, field: str, found: list[str]) -> Any:
    field = field or _shown(redact(str(name)).text)
    if isinstance(value, str) and isinstance(name, str) and is_secret_of(name, value):
        found.append(f"secret in {field}")
        return _mark("secret")
    return _cleaned(value, field, found)


def _shown(name: str) -> str:
    return "" if name in _TEXTS else name


def checked_handle(name: str, field: str) -> str:
    """The id of a session or an agent, which is kept and shown as it is.

    Raises:
        InvalidInput: as `checked_name`, or it holds what must not be kept.
    """
    checked_name(name, field)
    if redact(name).kinds:
        raise InvalidInput(f"{field} holds what looks like a secret, and would be kept and shown; use another name")
    return name


def hashed(key: str) -> str:
    """What stands for a client_key that must not be kept."""
    return f"hashed:{blake2b(key.encode('utf-8', 'surrogatepass'), digest_size=_KEY_BYTES).hexdigest()}"


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
