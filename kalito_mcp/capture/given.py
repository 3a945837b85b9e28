"""What a host gives a hook, however long it is and in whatever bytes. Standard library alone.

A person may paste a file of many megabytes. A shell between host and hook may encode the event in its own way, leave
out backslashes, or cut it off. What can be read of it is kept.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, BinaryIO, Final

from kalito_mcp.capture.fields import FOLDER, SESSION

_END_BYTES: Final = 4_194_304
_MOST_SENT: Final = 2_097_152
"""Characters of an event as JSON. The longest message that is kept fits in, whatever its letters are."""
_LAST_CHARS: Final = 4_096
"""Also kept of a long text: the output of a command usually ends with what is wrong."""
_DEEPEST: Final = 100
_LEFT_OUT: Final = "… [a part was too long to be kept] …"

_ESCAPE: Final = re.compile(r'\\(["\\/bfnrt]|u[0-9a-fA-F]{4})?')
_PART: Final = re.compile(r'"(?:[^"\\]++|\\.)*+(?P<end>"?)|[{}\[\],]', re.DOTALL)


def read_to_end(given: BinaryIO) -> bytes:
    """All of it. Of more than 8 MiB, the first and the last 4 MiB: what is between them is usually one text.

    Even what is left out is read, because a host may fail if its hook does not.
    """
    first = given.read(_END_BYTES)
    last, left_out = b"", 0
    while part := given.read(_END_BYTES):
        left_out += max(0, len(last) + len(part) - _END_BYTES)
        last = (last + part)[-_END_BYTES:]
    # No encoding has characters of more than four bytes.
    return first + last[-left_out % 4 :]


def event_in(given: bytes) -> dict[str, Any]:
    """The event: its fields in order up to where it is torn, with the longest texts shortened.

    Raises:
        TypeError: there is no JSON object in it.
    """
    text = given.decode(json.detect_encoding(given), "replace")
    begin = text.find("{")
    if begin < 0:
        if text.strip("\ufeff\0 \r\n\t"):
            raise TypeError("the event on stdin must be a JSON object")
        return {}
    for attempt in _readings(text[begin:]):
        try:
            return _shortened(json.JSONDecoder(strict=False).raw_decode(attempt)[0])
        except (ValueError, RecursionError):
            continue
    raise TypeError("the event on stdin must be a JSON object")


def _readings(text: str) -> Iterator[str]:
    """What the text may mean, the best first."""
    yield text
    # A folder of Windows that nobody has escaped: "C:\work".
    text = _ESCAPE.sub(lambda found: found[0] if found[1] else "\\\\", text)
    yield text
    yield from _closed(text)
    try:
        json.JSONDecoder(strict=False).raw_decode(text)
    except json.JSONDecodeError as error:
        yield from _closed(text[: error.pos])
    except RecursionError:
        pass


def _closed(text: str) -> Iterator[str]:
    """A torn text with its end: within its last string, and after its last whole value."""
    closing = whole = ""
    for part in _PART.finditer(text):
        if part[0] in ("{", "["):
            closing = ("}" if part[0] == "{" else "]") + closing
            if len(closing) > _DEEPEST:
                break
            whole = text[: part.end()] + closing
        elif part[0] in ("}", "]"):
            closing = closing[1:]
        elif part[0] == ",":
            whole = text[: part.start()] + closing
        elif not part["end"]:
            yield part.string[: part.end()] + '"' + closing
    yield whole


def _shortened(payload: dict[str, Any]) -> dict[str, Any]:
    """The payload, with its longest texts and lists cut until it is short enough to be sent."""
    most = _MOST_SENT // 4
    while most and len(json.dumps(payload)) > _MOST_SENT:
        payload = {name: value if name in SESSION + FOLDER else _cut(value, most) for name, value in payload.items()}
        most //= 2
    return payload


def _cut(value: Any, most: int) -> Any:
    if isinstance(value, str) and len(value) > most + _LAST_CHARS:
        return value[:most] + _LEFT_OUT + value[-_LAST_CHARS:]
    if isinstance(value, list):
        return [_cut(one, most) for one in value[:most]]
    if isinstance(value, dict):
        return {name: _cut(one, most) for name, one in list(value.items())[:most]}
    return value
