"""The lines of an archive: JSON, one object a line, each with a check over itself and all lines before. Pure.

    {"kalito_archive":1,"schema":21,"made_by":"0.1.0","made_at":"2026-11-23T22:00:00.000Z","selection":{},"check":"..."}
    {"table":"agents","row":{"key":1,"id":"default","record_count":2},"check":"..."}
    ...
    {"rows":{"agents":1,...},"digest":"...","check":"..."}

`schema` is the version of the entries, `table` the kind of one, and `row` its fields (`domain/archive`). Bytes are
{"hex": "..."}. The last line has the counts, and the digest: SHA-256 over all entries, so two memories with equal
digests have the same content. A line that was changed, moved, added or removed no longer fits its check. That finds
accidents, not forgeries: an archive can be made by anybody.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b, sha256
from typing import Any, Final, NoReturn

from kalito_mcp.domain.archive import VERSION, ArchiveEntry, Value
from kalito_mcp.errors import InvalidInput

FORMAT: Final = 1
"""The version of the lines. A reader refuses a later one."""

_CHECK_BYTES: Final = 8
_CHECK_KEY: Final = b',"check":"'
_TAIL: Final = len(_CHECK_KEY) + 2 * _CHECK_BYTES + len('"}')
_NOTHING: Final = "nothing was restored"


@dataclass(frozen=True, slots=True)
class Header:
    """The first line. `selection` has what narrowed the export; an archive that is not `is_restorable` lacks parts of
    conversations."""

    made_by: str
    made_at: str
    selection: Mapping[str, Any] = field(default_factory=dict[str, Any])
    is_restorable: bool = True


class ArchiveWriting:
    """Writes the lines of one archive, in order."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._check = ""
        self._digest = sha256()

    def first(self, header: Header) -> bytes:
        """The line of the header."""
        fields = {"kalito_archive": FORMAT, "schema": VERSION}
        about = {"made_by": header.made_by, "made_at": header.made_at, "selection": dict(header.selection)}
        return self._line({**fields, **about, "is_restorable": header.is_restorable})

    def entries(self, entries: Iterable[ArchiveEntry]) -> bytes:
        """The lines of the entries."""
        return b"".join(map(self._entry, entries))

    def last(self) -> bytes:
        """The line that says that the archive is whole."""
        return self._line({"rows": dict(self.counts), "digest": self.digest})

    @property
    def digest(self) -> str:
        """The digest of the entries so far, 64 hexadecimal digits."""
        return self._digest.hexdigest()

    def _entry(self, entry: ArchiveEntry) -> bytes:
        self.counts[entry.kind] += 1
        fields = {
            name: {"hex": value.hex()} if isinstance(value, bytes) else value for name, value in entry.fields.items()
        }
        line = self._line({"table": entry.kind, "row": fields})
        self._digest.update(line[: -_TAIL - 1])
        return line

    def _line(self, fields: Mapping[str, Any]) -> bytes:
        body = json.dumps(fields, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()[:-1]
        self._check = _checked(self._check, body)
        return b'%b%b%b"}\n' % (body, _CHECK_KEY, self._check.encode())


class ArchiveReading:
    """Reads the lines of one archive, in order. Every fault is an InvalidInput that names its line."""

    def __init__(self, lines: Iterable[bytes]) -> None:
        self.counts: Counter[str] = Counter()
        self._lines = iter(enumerate(lines, 1))
        self._check = ""
        self._digest = sha256()
        self._number = 0
        self.header = self._first()

    @property
    def digest(self) -> str:
        """The digest of the entries so far."""
        return self._digest.hexdigest()

    def entries(self) -> Iterator[ArchiveEntry]:
        """All entries, each after it was checked, until the last line; then the archive is whole."""
        while True:
            fields, body = self._next()
            if set(fields) == {"rows", "digest", "check"}:
                break
            kind, given = fields.get("table"), fields.get("row")
            if not isinstance(kind, str) or not isinstance(given, dict):
                self._refuse("this is not an entry of an archive")
            self._digest.update(body)
            self.counts[kind] += 1
            yield ArchiveEntry(kind, {name: self._value(value) for name, value in given.items()}, self._number)
        if fields["rows"] != dict(self.counts) or fields["digest"] != self.digest:
            self._refuse("the counts in this line do not match the lines before it")
        for number, line in self._lines:
            if line.strip():
                self._number = number
                self._refuse("the archive ended on the line before, and this belongs to something else")

    def _first(self) -> Header:
        self._number, line = next(self._lines, (1, b""))
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict) or "kalito_archive" not in found:
            self._refuse("this is not the beginning of an archive that `kalito-mcp export` wrote")
        if found["kalito_archive"] != FORMAT:
            self._refuse(
                f"this archive has format {str(found['kalito_archive'])[:20]}, and this release reads format {FORMAT}; "
                "upgrade kalito-mcp"
            )
        fields, _ = self._checked(line)
        schema, made_by, made_at = (fields.get(name) for name in ("schema", "made_by", "made_at"))
        selection, is_restorable = fields.get("selection"), fields.get("is_restorable")
        if not (
            isinstance(schema, int)
            and isinstance(made_by, str)
            and isinstance(made_at, str)
            and isinstance(selection, dict)
            and isinstance(is_restorable, bool)
        ):
            self._refuse("this is not the first line of an archive")
        if schema > VERSION:
            self._refuse(
                f"this archive was written by a newer kalito (schema {schema}; this one knows {VERSION}); upgrade "
                "kalito-mcp"
            )
        return Header(made_by, made_at, selection, is_restorable)

    def _next(self) -> tuple[dict[str, Any], bytes]:
        before = self._number
        self._number, line = next(self._lines, (before + 1, b""))
        if not line:
            self._refuse(f"the archive is cut short after line {before}: its last line is missing")
        return self._checked(line)

    def _checked(self, line: bytes) -> tuple[dict[str, Any], bytes]:
        """The fields of a line, and its bytes without the check."""
        stripped = line.rstrip(b"\r\n")
        body, check = stripped[:-_TAIL], stripped[-_TAIL:]
        self._check = _checked(self._check, body)
        if check != b'%b%b"}' % (_CHECK_KEY, self._check.encode()):
            is_cut = not line.endswith(b"\n")
            self._refuse(
                "the archive is cut short in this line"
                if is_cut
                else "this line, or the place of it, is not as it was written"
            )
        try:
            fields = json.loads(stripped, parse_constant=_refuse_constant)
        except (ValueError, RecursionError):
            self._refuse("this line is not JSON")
        if not isinstance(fields, dict):
            self._refuse("this is not an entry of an archive")
        return fields, body

    def _value(self, value: Any) -> Value:
        if value is None or (isinstance(value, str | int | float) and not isinstance(value, bool)):
            return value
        if isinstance(value, dict) and list(value) == ["hex"] and isinstance(value["hex"], str):
            try:
                return bytes.fromhex(value["hex"])
            except ValueError:
                pass
        self._refuse("a field of this entry has a value that no field can have")

    def _refuse(self, reason: str) -> NoReturn:
        raise InvalidInput(f"line {self._number}: {reason}; {_NOTHING}")


def _checked(before: str, body: bytes) -> str:
    return blake2b(body, key=before.encode(), digest_size=_CHECK_BYTES).hexdigest()


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)
