"""Damages files at random: their bytes, or one value of the JSON in them."""

import json
import random
import sqlite3
import zipfile
from contextlib import closing
from pathlib import Path
from typing import Any, Final

_MOSTLY: Final = 0.8
_PIECES: Final = [
    *(b'{ } [ ] , : " // /* # = """ \' \\ \t - null true 1e999 \\ud800 \0 \xff \xef\xbb\xbf'.split(b" ")),
    b"\n",
    b"\r\n",
    b"  ",
]
_VALUES: Final = (None, True, 0, -1, 1e308, 10**400, "", "x", "\ud800", "\0", "user", [], [[]], {}, {"a": 1}, [None])


def damaged(raw: bytes, chance: random.Random) -> bytes:
    """The bytes with one to four changes."""
    changed = bytearray(raw)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(changed) + 1)
        length = chance.choice((0, 1, 3, 20, 100))
        match chance.randrange(5):
            case 0:
                changed[at : at + length] = chance.choice(_PIECES)
            case 1:
                del changed[at : at + length]
            case 2:
                changed[at:at] = changed[at : at + length]
            case 3 if at < len(changed):
                changed[at] ^= 1 << chance.randrange(8)
            case _:
                del changed[max(0, len(changed) - length) :]
    return bytes(changed)


def other_value(document: Any, chance: random.Random) -> bool:
    """Change one value of a JSON document in place. True if a value became one of another kind; False if a name went,
    or an element came twice."""
    places: list[tuple[Any, Any]] = []

    def walk(value: Any) -> None:
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            places.append((value, key))
            if isinstance(inner, dict | list):
                walk(inner)

    if isinstance(document, dict | list):
        walk(document)
    if not places:
        return False
    inside, key = chance.choice(places)
    what = chance.randrange(6)
    if what == 0 and isinstance(inside, dict):
        del inside[key]
        return False
    if what == 1 and isinstance(inside, list):
        inside.insert(key, inside[key])
        return False
    inside[key] = chance.choice(_VALUES)
    return True


def damaged_json(raw: bytes, chance: random.Random) -> bytes | None:
    """A file of JSON, or of JSON lines, with another value in it. None if it is no such file."""
    try:
        documents = [json.loads(line) for line in raw.splitlines() if line.strip()]
    except ValueError:
        return None
    place = chance.randrange(len(documents))
    other_value(documents[place], chance)
    return b"".join(json.dumps(one).encode() + b"\n" for one in documents)


def damaged_inside(path: Path, chance: random.Random) -> bool:
    """Damage one value in JSON, JSON lines, a zip of JSON, or a database of SQLite. False if the file is none of these;
    then nothing was done."""
    raw = path.read_bytes()
    if raw.startswith(b"SQLite format 3"):
        return _damaged_row(path, chance)
    if raw.startswith(b"PK"):
        with zipfile.ZipFile(path) as archive:
            inside = {name: archive.read(name) for name in archive.namelist()}
        with zipfile.ZipFile(path, "w") as archive:
            for name, content in inside.items():
                archive.writestr(name, damaged_json(content, chance) or content)
        return True
    changed = damaged_json(raw, chance)
    if changed is not None:
        path.write_bytes(changed)
    return changed is not None


def contents(path: Path) -> bytes:
    """What is in the file, or in the files of a zip. Empty for a database: its bytes have what is no row any more."""
    raw = path.read_bytes()
    if raw.startswith(b"PK"):
        with zipfile.ZipFile(path) as archive:
            return b"".join(map(archive.read, archive.namelist()))
    return b"" if raw.startswith(b"SQLite") else raw


def _damaged_row(path: Path, chance: random.Random) -> bool:
    """Change one value of one row: its JSON, or the value itself."""
    with closing(sqlite3.connect(path)) as connection:
        tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        table = chance.choice(tables)
        rows = connection.execute(f"SELECT rowid, * FROM {table}")  # noqa: S608 - a sample's own table
        names = [one[0] for one in rows.description]
        row = chance.choice(rows.fetchall())
        place = chance.randrange(1, len(names))
        value: Any = row[place]
        as_json = damaged_json(value.encode(), chance) if isinstance(value, str) and chance.random() < _MOSTLY else None
        plain = chance.choice((None, 7, 1.5, "", "x", "{", b"\xff\x00", -(2**60)))
        changed = plain if as_json is None else as_json.decode().strip()
        connection.execute(f"UPDATE {table} SET {names[place]} = ? WHERE rowid = ?", (changed, row[0]))  # noqa: S608 - as above
        connection.commit()
    return True
