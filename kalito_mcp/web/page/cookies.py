"""The two cookies of the page, and the key in its forms.

One cookie says who the person is: the text of a token that only the page accepts. The other says what was done last and
how to undo it: signed for the first cookie, and without words of the memory. Every form has a key that belongs to the
first cookie, too; it differs in each answer, so that compressed answers give nothing away.
"""

import json
import secrets
import zlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from hmac import compare_digest
from typing import Any, Final

from kalito_mcp.web.page.view import Done, Undo

PAGE_COOKIE: Final = "kalito-page"
UNDO_COOKIE: Final = "kalito-undo"
_MOST_COOKIE_CHARS: Final = 3_600
"""Browsers keep 4,096 bytes of a cookie with its name and attributes."""
_MOST_UNDO_BYTES: Final = 1_000_000
_MAC_BYTES: Final = 16
_SALT_BYTES: Final = 8
_FORM: Final = b"page form"
_UNDO: Final = b"page undo"


@dataclass(frozen=True, slots=True)
class LastAct:
    """What the undo bar shows."""

    said: str
    undo: Undo | None
    more: str | None


def cookie_name(name: str, *, is_secure: bool) -> str:
    """The name of a cookie. With https no other host may set it."""
    return f"__Host-{name}" if is_secure else name


def form_key(key: bytes, cookie: str) -> str:
    """A new key for the forms of one answer to the browser with this page cookie."""
    salt = secrets.token_bytes(_SALT_BYTES)
    return _text(salt + _mac(key, _FORM, cookie, salt))


def is_form_key(key: bytes, cookie: str, sent: str) -> bool:
    """Whether a form's key was made for the browser with this page cookie."""
    given = _bytes(sent)
    salt, mac = given[:_SALT_BYTES], given[_SALT_BYTES:]
    return compare_digest(mac, _mac(key, _FORM, cookie, salt))


def undo_cookie(key: bytes, cookie: str, done: Done) -> str:
    """What keeps what was done, for the browser with this page cookie. An undo that is too long for a cookie is left
    out."""
    undo = done.undo and {"act": done.undo.act, "fields": dict(done.undo.fields)}
    kept = {"said": done.said, "undo": undo, "more": done.more}
    found = _signed(key, cookie, kept)
    return found if len(found) <= _MOST_COOKIE_CHARS else _signed(key, cookie, {**kept, "undo": None})


def last_act(key: bytes, cookie: str, kept: str | None) -> LastAct | None:
    """What the undo cookie keeps; None without one, or if it was not made here for this page cookie."""
    mac, _, content = (kept or "").partition(".")
    packed = _bytes(content)
    if not packed or not compare_digest(_bytes(mac), _mac(key, _UNDO, cookie, packed)):
        return None
    found = json.loads(zlib.decompressobj().decompress(packed, _MOST_UNDO_BYTES))
    undo = found["undo"]
    return LastAct(found["said"], undo and Undo(undo["act"], undo["fields"]), found["more"])


def _signed(key: bytes, cookie: str, content: Mapping[str, Any]) -> str:
    packed = zlib.compress(json.dumps(content, separators=(",", ":")).encode(), 9)
    return f"{_text(_mac(key, _UNDO, cookie, packed))}.{_text(packed)}"


def _mac(key: bytes, purpose: bytes, cookie: str, content: bytes) -> bytes:
    whose = blake2b(cookie.encode("utf-8", "surrogatepass"), key=key, person=purpose).digest()
    return blake2b(content, key=whose, digest_size=_MAC_BYTES).digest()


def _text(content: bytes) -> str:
    return urlsafe_b64encode(content).decode().rstrip("=")


def _bytes(text: str) -> bytes:
    try:
        return urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4))
    except ValueError:
        return b""
