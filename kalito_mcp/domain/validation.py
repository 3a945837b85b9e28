"""Checks of texts, names and numbers. Pure; every refusal says what to do."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final, TypeVar

from kalito_mcp.domain.time import NEWEST_MS, OLDEST_MS
from kalito_mcp.domain.wording import shown
from kalito_mcp.errors import InvalidInput, TextTooLarge

MESSAGE_ID_PREFIX: Final = "msg_"
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_CONTROL: Final = re.compile("[\x00-\x1f\x7f]")
_MAX_NAME_LENGTH: Final = 200
MOST: Final = 1_000_000_000
"""The upper bound of every number in a policy, unless its field has a lower one."""
_Number = TypeVar("_Number", int, float)


def bounded(default: _Number, *, least: float = 0, most: float = MOST, above: float | None = None) -> _Number:
    """A numeric field of a policy, from `least`, or above `above`, up to `most`."""
    number: _Number = field(default=default, metadata={"bounds": (least, most, above)})
    return number


@dataclass(frozen=True, slots=True)
class Policy:
    """The settings of one rule. Its numbers must be from 0 to MOST, or in the bounds of their field."""

    def __post_init__(self) -> None:
        """Raises InvalidInput for the first number that is out of bounds, or is no number."""
        for one in fields(self):
            value = getattr(self, one.name)
            if isinstance(one.default, bool) or not isinstance(one.default, int | float):
                continue
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise InvalidInput(f"{one.name} must be a number, not {shown(value)}")
            least, most, above = one.metadata.get("bounds", (0, MOST, None))
            # Negated comparisons also refuse NaN.
            if above is not None and not value > above:
                raise InvalidInput(f"{one.name}={value} must be above {above}")
            if not value >= least:
                raise InvalidInput(f"{one.name}={value} must be at least {least}")
            if value > most:
                raise InvalidInput(f"{one.name}={value} must be at most {most:,}")


@dataclass(frozen=True, slots=True)
class LimitsPolicy(Policy):
    """How much one call may send."""

    max_text_bytes: int = bounded(524_288, least=1)
    max_document_bytes: int = bounded(16_777_216, least=1)
    max_messages: int = bounded(10_000, least=1)


def checked_text(text: str, field: str, *, max_bytes: int) -> str:
    """Return the text unchanged, if it can be stored and read back as it is.

    Raises:
        InvalidInput: the text is empty, or has an unpaired surrogate, which is not valid Unicode.
        TextTooLarge: the text has more than `max_bytes` bytes of UTF-8.
    """
    if not text:
        raise InvalidInput(f"{field} is empty; send the text to remember")
    # Encoding is slow. Short ASCII texts need no check, and a character takes at most 4 bytes.
    if not text.isascii() or len(text) > max_bytes:
        if (surrogate := _SURROGATE.search(text)) is not None:
            raise InvalidInput(
                f"{field} has an unpaired surrogate at character {surrogate.start()}; send valid Unicode"
            )
        # The length of ASCII text is its size; encoding would copy it.
        if 4 * len(text) > max_bytes and (size := len(text) if text.isascii() else len(text.encode())) > max_bytes:
            raise TextTooLarge(f"{field} has {size:,} bytes and the limit is {max_bytes:,}; send it in parts")
    return text


def check_lengths(fields: Mapping[str, Any], limit: int) -> None:
    """Refuse a text with more characters than its limit in bytes, without copying it."""
    for name, value in fields.items():
        if isinstance(value, str) and len(value) > limit:
            raise TextTooLarge(
                f"{str(name)[:100]} has {len(value):,} characters and the limit is {limit:,} bytes; send it in parts"
            )


def checked_name(name: str, field: str) -> str:
    """Return the name of a session, an agent, a speaker or a client key unchanged.

    Raises:
        InvalidInput: the name is empty, has over 200 characters or control characters, or is not valid Unicode.
    """
    if not name or not name.strip():
        raise InvalidInput(f"{field} is empty; give it a name of 1 to {_MAX_NAME_LENGTH} characters")
    if len(name) > _MAX_NAME_LENGTH:
        raise InvalidInput(f"{field} has {len(name)} characters; send at most {_MAX_NAME_LENGTH}")
    if _CONTROL.search(name) or _SURROGATE.search(name):
        raise InvalidInput(f"{field} contains control characters or unpaired surrogates; use plain text")
    return name


def checked_moment(moment_ms: int, field: str) -> int:
    """Return the moment, in milliseconds since 1970, unchanged.

    Raises:
        InvalidInput: the moment is outside the years 1 to 9999.
    """
    if not OLDEST_MS <= moment_ms <= NEWEST_MS:
        raise InvalidInput(f"{field}={moment_ms} is outside the years 1 to 9999; send milliseconds since 1970")
    return moment_ms


def message_number(message_id: str | int, field: str = "message id") -> int:
    """The number 45 of `45`, `"45"` or `"msg_45"`.

    Raises:
        InvalidInput: the id has another form.
    """
    digits = str(message_id).strip().removeprefix(MESSAGE_ID_PREFIX)
    if not (digits.isascii() and digits.isdigit() and len(digits) < 19):  # noqa: PLR2004 - fits 64 bits
        raise InvalidInput(f"{field}={str(message_id)[:40]!r} is not a message id; use one such as msg_45")
    return int(digits)
