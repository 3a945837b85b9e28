"""Texts with a NUL character, which PostgreSQL cannot store. Pure.

The memory keeps every text as it was said. So a NUL is stored as two characters that nobody writes, and where somebody
does write the first of them, it is doubled. Texts without either are stored as they are.
"""

from typing import Any, Final

_MARK: Final = "\uf8f0"  # of the Private Use Area
_NUL: Final = f"{_MARK}0"


def stored_text(text: str) -> str:
    """The text as PostgreSQL can store it."""
    if "\0" in text or _MARK in text:
        return text.replace(_MARK, _MARK * 2).replace("\0", _NUL)
    return text


def said_text(stored: str) -> str:
    """The text again."""
    return _MARK.join(part.replace(_NUL, "\0") for part in stored.split(_MARK * 2))


def encoded(text: str) -> bytes:
    """The text for the wire."""
    return stored_text(text).encode()


def decoded(sent: bytes) -> str:
    """The text from the wire."""
    text = str(sent, "utf-8")
    return said_text(text) if _MARK in text else text


def storable(value: Any) -> Any:
    """A parameter whose texts can be sent: the driver encodes single texts, but not those in a list."""
    if isinstance(value, list | tuple) and isinstance(next((one for one in value if one is not None), None), str):
        return [None if one is None else stored_text(one) for one in value]
    return value
