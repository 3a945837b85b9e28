"""The two cookies of the page, and the key in its forms.

One cookie says who the person is: the text of a token that only the page accepts. The other says what was done last and
how to undo it: signed, and without words of the memory. Every form has a key that belongs to the first cookie; it
differs in each answer, so that compressed answers give nothing away.
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


@dataclass(frozen=True, slots=True)
class LastAct:
    """What the undo bar shows."""

    said: str
    undo: Undo | None


def cookie_name(name: str, *, is_secure: bool) -> str:
    """The name of a cookie. With https no other host may set it."""
    return f"__Host-{name}" if is_secure else name


def form_key(key: bytes, cookie: str) -> str:
    """A new key for the forms of one answer."""
    salt = secrets.token_bytes(_SALT_BYTES)
    return _text(salt + _mac(key, salt + cookie.encode()))


def is_form_key(key: bytes, cookie: str, sent: str) -> bool:
    """Whether a form's key was made for the browser with this cookie."""
    given = _bytes(sent)
    salt, mac = given[:_SALT_BYTES], given[_SALT_BYTES:]
    return compare_digest(mac, _mac(key, salt + cookie.encode("utf-8", "surrogatepass")))


def undo_cookie(key: bytes, done: Done) -> str:
    """The cookie that keeps what was done. An undo that is too long for a cookie is left out."""
    undo = done.undo and {"act": done.undo.act, "fields": dict(done.undo.fields)}
    found = _signed(key, {"said": done.said, "undo": undo})
    return found if len(found) <= _MOST_COOKIE_CHARS else _signed(key, {"said": done.said, "undo": None})


def last_act(key: bytes, cookie: str | None) -> LastAct | None:
    """What the cookie keeps; None without one, or if it was not made here."""
    mac, _, content = (cookie or "").partition(".")
    packed = _bytes(content)
    if not packed or not compare_digest(_bytes(mac), _mac(key, packed)):
        return None
    kept = json.loads(zlib.decompressobj().decompress(packed, _MOST_UNDO_BYTES))
    undo = kept["undo"]
    return LastAct(kept["said"], undo and Undo(undo["act"], undo["fields"]))


def _signed(key: bytes, content: Mapping[str, Any]) -> str:
    packed = zlib.compress(json.dumps(content, separators=(",", ":")).encode(), 9)
    return f"{_text(_mac(key, packed))}.{_text(packed)}"


def _mac(key: bytes, content: bytes) -> bytes:
    return blake2b(content, key=key, digest_size=_MAC_BYTES).digest()


def _text(content: bytes) -> str:
    return urlsafe_b64encode(content).decode().rstrip("=")


def _bytes(text: str) -> bytes:
    try:
        return urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4))
    except ValueError:
        return b""
