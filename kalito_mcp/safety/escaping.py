"""Makes remembered text safe to quote: no invisible characters, no line or marker that looks like ours. Pure."""

import json
import re
from typing import Any, Final

# Runs of invisible characters: control characters except tab and newline, line separators, Unicode's format characters
# (Cf) without the visible Arabic and Kaithi ones, its default-ignorable ones, and the blank Braille pattern.
INVISIBLE: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U00013430-\U0001343f\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff]+"
)
# Joiners and selectors that emoji and some scripts need after a character.
_JOINING: Final = frozenset([*"\u200c\u200d\ufe0e\ufe0f\u180b\u180c\u180d\u180e\u2800", "\ufe0f\u200d"])
_KEYCAPS: Final = frozenset("#*0123456789©®")
_FIRST_JOINED: Final = "\u0590"
"""Where Hebrew begins. The scripts before it (Latin, Greek, Cyrillic, Armenian) need nothing invisible."""

# The markers around remembered text, and anything that a model may read as one.
_MARKER: Final = re.compile(r"[<＜﹤‹〈](?=[\s/／\\]{0,16}kalito[\W_]{0,8}memory)", re.IGNORECASE)


def as_data(text: str) -> str:
    """The text in a form that is safe between our markers.

    Lines after the first are indented. Invisible characters are escaped (see `visible`), and so is the first character
    of anything that reads like one of our markers. So no text can open or close the fence.
    """
    if _is_plain(text) and "<" not in text:
        return text  # nearly every message
    if "\n" in text or "\r" in text:
        text = "\n  ".join(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"))
    return _MARKER.sub(_escape, visible(text))


def escape_json(value: Any) -> Any:
    """The JSON value with the invisible characters of its strings escaped."""
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, dict):
        return {key: escape_json(one) for key, one in value.items()}
    return [escape_json(one) for one in value] if isinstance(value, list) else value


def json_text(value: Any) -> str:
    """The JSON value as callers get it: compact, and without invisible characters."""
    return json.dumps(escape_json(value), ensure_ascii=False, separators=(",", ":"))


def visible(text: str) -> str:
    r"""The text with invisible characters escaped (`\u{200b}`): control, zero-width and bidirectional characters, and
    those that can hide text.

    Tabs and line feeds stay. So does a single joiner or emoji selector after a character that may need it.
    """
    if _is_plain(text):
        return text
    # Nothing that is escaped depends on another line.
    return "\n".join(
        [line if _is_plain(line) else INVISIBLE.sub(_escape_unless_joining, line) for line in text.split("\n")]
    )


def _is_plain(text: str) -> bool:
    """Whether nothing needs a closer look. Python tells it ten times faster than an expression of so many ranges."""
    return text.isascii() and text.isprintable()


def _escape_unless_joining(found: re.Match[str]) -> str:
    run, before = found.group(), found.string[max(0, found.start() - 1) : found.start()]
    may_join = before in _KEYCAPS or (before >= _FIRST_JOINED and not before.isspace())
    return run if run in _JOINING and may_join else _escape(found)


def _escape(found: re.Match[str]) -> str:
    return "".join(f"\\u{{{ord(one):x}}}" for one in found.group())
