"""Reads files of JSON: a value a line, or one value that is a list. Whatever is in them, what can be read is read."""

import codecs
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

from kalito_mcp.exchange.conversation import Reading
from kalito_mcp.exchange.zstandard import SUFFIX, opened

LONGEST: Final = 64 * 1024 * 1024
"""Bytes. A line that is longer is skipped; so is the rest of a list after such an element."""
_CHUNK: Final = 256 * 1024
_TORN: Final = "line that is not JSON"
_NOTHING: Final = object()
_UTF_16: Final = (b"\xff\xfe", b"\xfe\xff")
_DECODER: Final = json.JSONDecoder()
_SPACE: Final = re.compile("[ \t\r\n\ufeff\0]+")


_BLANK: Final = re.compile(rb"(?:[ \t\r\n\0]|\xef\xbb\xbf)+")
_MOST_LOOKED_AT: Final = 50_000_000
"""Bytes that are looked at to find a whole object behind a torn one."""
_MOST_OF_A_SIGN: Final = 16
"""Bytes of a word or an escape of JSON that can be cut in two, with room to spare."""


@dataclass(slots=True)
class Line:
    """A JSON object, the only one of its line or one of several, and the bytes it is at."""

    value: dict[str, Any]
    begin: int
    end: int


def json_lines(reading: Reading) -> Iterator[Line]:
    """The objects of a file with one a line, from `reading.start` on. Sets `read_to` to the end of the last whole line.

    A last line without a line feed is read if it is whole. If its end is torn, the next reading begins with it. Where a
    program was stopped, or two wrote at once, a line has several objects: the whole ones are read, what is torn is
    counted. A compressed file is read whole; bytes count the unpacked lines.
    """
    is_compressed = reading.path.suffix == SUFFIX
    reading.read_to = 0 if is_compressed else reading.start
    with opened(reading.path) as file:
        file.seek(reading.read_to)
        while raw := file.readline(LONGEST):
            begin, end = reading.read_to, reading.read_to + len(raw)
            if len(raw) == LONGEST and not raw.endswith(b"\n"):
                reading.read_to = _after_line(file)
                reading.skipped["line that is too long"] += 1
                continue
            is_growing = not raw.endswith(b"\n")
            value = parsed(raw)
            found = [(value, 0, len(raw))] if value is not None else _values(raw, reading, is_growing=is_growing)
            is_torn = False
            for one, first, last in found:
                if isinstance(one, dict):
                    yield Line(one, begin + first, begin + last)
                elif one is _NOTHING:
                    is_torn = True
                else:
                    reading.skipped["line of an unknown kind"] += 1
            if is_torn:
                return
            reading.read_to = end
    if is_compressed:
        reading.read_to = reading.path.stat().st_size


def json_values(reading: Reading) -> Iterator[Any]:
    """All JSON values of a file, one after the other, whatever is between them: a line feed, or nothing where two
    programs wrote at once. What is not JSON is counted, up to the next whole object or the end of its line."""
    with reading.path.open("rb") as file:
        raw = file.read(LONGEST + 1)
    if len(raw) > LONGEST:
        reading.skipped["file that is too long"] += 1
        return
    reading.read_to = len(raw)
    if raw.startswith(_UTF_16):
        raw = _decoded(raw).encode("utf-8", "replace")
    for value, _, _ in _values(raw, reading):
        yield value


def _values(raw: bytes, reading: Reading, *, is_growing: bool = False) -> Iterator[tuple[Any, int, int]]:
    """The JSON values, each with its first byte and the byte after it. A torn one is counted; if more bytes may follow
    it, it is `_NOTHING`, and the last."""
    # A character a byte, so that places are bytes. No part of a longer character of UTF-8 is a sign of JSON.
    text = raw.decode("latin-1")
    place = 0
    while (place := _end_of_blank(raw, place)) < len(raw):
        try:
            _, end = _DECODER.raw_decode(text, place)
        except (ValueError, RecursionError) as error:
            behind = (
                None if is_growing and _may_grow(error, raw) else _behind_torn(raw, text, place, is_growing=is_growing)
            )
            if behind is None:
                reading.skipped["torn last line"] += 1
                yield _NOTHING, place, len(raw)
                return
            reading.skipped[_TORN] += 1
            place = behind
        else:
            yield parsed(raw[place:end]), place, end
            place = end


def _may_grow(error: Exception, raw: bytes) -> bool:
    """Whether more bytes can make a value of what could not be read."""
    if not isinstance(error, json.JSONDecodeError):
        return True
    return error.msg.startswith("Unterminated") or error.pos > len(raw) - _MOST_OF_A_SIGN


def _behind_torn(raw: bytes, text: str, place: int, *, is_growing: bool) -> int | None:
    """Where a whole object begins behind a torn one: the first behind which the line ends, or another one begins.
    Otherwise the next line. None if the line may grow, and an object of it with it."""
    line_end = raw.find(b"\n", place)
    line_end = len(raw) if line_end < 0 else line_end
    left = _MOST_LOOKED_AT
    while left > 0 and (place := raw.find(b"{", place + 1, line_end)) >= 0:
        try:
            _, end = _DECODER.raw_decode(text, place)
        except (ValueError, RecursionError) as error:
            if is_growing and _may_grow(error, raw):
                return None
            left -= max(1_000, getattr(error, "pos", place) - place)
            continue
        following = _end_of_blank(raw, end)
        if following >= line_end or raw[following] == ord("{"):
            return place
        place = end - 1  # it is a part of the torn one
    return None if is_growing else line_end + 1


def _end_of_blank(raw: bytes, place: int) -> int:
    found = _BLANK.match(raw, place)
    return found.end() if found else place


def _end_of_space(text: str, place: int) -> int:
    found = _SPACE.match(text, place)
    return found.end() if found else place


def first_line(path: Path) -> dict[str, Any]:
    """The object in the first line of a file; empty if it has no object."""
    with opened(path) as file:
        value = parsed(file.readline(LONGEST))
    return value if isinstance(value, dict) else {}


def json_file(path: Path, reading: Reading) -> Any:
    """The value of a file that is one JSON value, and not too long; None if it has no such value, which is counted."""
    with path.open("rb") as file:
        raw = file.read(LONGEST + 1)
    value = parsed(raw) if len(raw) <= LONGEST else None
    if value is None:
        reading.skipped["file that is not JSON" if len(raw) <= LONGEST else "file that is too long"] += 1
    return value


def _after_line(file: IO[bytes]) -> int:
    """Read to the end of the line; the place after it."""
    while (raw := file.readline(_CHUNK)) and not raw.endswith(b"\n"):
        pass
    return file.tell()


def parsed(raw: bytes | str) -> Any:
    """The JSON value, or None if it is not JSON. Bytes that are not UTF-8 become U+FFFD."""
    try:
        text = raw if isinstance(raw, str) else _decoded(raw)
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _decoded(raw: bytes) -> str:
    if raw.startswith(_UTF_16):
        return raw.decode("utf-16", "replace")
    return raw.decode("utf-8", "replace").lstrip("\ufeff\0").rstrip("\0")


def json_list(stream: IO[bytes], reading: Reading) -> Iterator[Any]:
    """The elements of a file that is one JSON list, one after the other, without holding them all. A file that is one
    object is a list of one. If the file breaks off, or is no JSON from somewhere on, what comes before it is given."""
    text = _Text(stream)
    first = text.next()
    if first != "[":
        if (value := text.value()) is not _NOTHING:
            yield value
        elif first:
            reading.skipped["file that is not JSON"] += 1
        return
    text.take()
    while (sign := text.next()) != "]":
        if sign == ",":
            text.take()
        elif (value := text.value()) is not _NOTHING:
            yield value
        else:
            reading.skipped["rest of a file that is not JSON" if sign else "end of a file that breaks off"] += 1
            return


class _Text:
    """The text of a stream from the place that is read next."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        raw = stream.read(_CHUNK)
        self._is_over = not raw
        encoding = "utf-16" if raw.startswith(_UTF_16) else "utf-8"
        self._decoder = codecs.getincrementaldecoder(encoding)("replace")
        self._held = self._decoder.decode(raw)
        self._place = 0

    def next(self) -> str:
        """The next character that is no white space, which is read next; empty at the end."""
        while True:
            self._place = _end_of_space(self._held, self._place)
            if self._place < len(self._held) or self._is_over:
                return self._held[self._place : self._place + 1]
            self._more(_CHUNK)

    def take(self) -> None:
        """Go on behind a character."""
        self._place += 1

    def value(self) -> Any:
        """The JSON value that begins here; `_NOTHING` if it is missing or too long."""
        size = _CHUNK
        while True:
            try:
                value, end = _DECODER.raw_decode(self._held, self._place)
            except RecursionError:
                return _NOTHING
            except ValueError:
                value = _NOTHING
            else:
                # A number may go on in the next piece.
                if end < len(self._held) or self._is_over:
                    self._place = end
                    return value
            if self._is_over or len(self._held) - self._place > LONGEST:
                return _NOTHING
            self._more(size)
            size *= 2

    def _more(self, size: int) -> None:
        raw = self._stream.read(size)
        self._is_over = not raw
        self._held = self._held[self._place :] + self._decoder.decode(raw, final=self._is_over)
        self._place = 0
