"""Converts rows of what was given back. Runs no SQL."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kalito_mcp.domain.given import GivenEntry, GivenKind, GivenPart, LeftOut, PartName, Why
from kalito_mcp.storage.intact_rows import intact_rows


def parts_json(parts: Iterable[GivenPart], revisions: Mapping[str, int]) -> str:
    """The parts of an entry, with the revision of each record by id."""
    return _json(
        [one.name, one.tokens, one.count, *([revisions.get(record_id), record_id] for record_id in one.ids)]
        for one in parts
    )


def left_out_json(left_out: Iterable[LeftOut]) -> str:
    """What was left out of an entry."""
    return _json([out.part, out.why, out.count, *out.ids] for out in left_out)


def end_of_record(record_id: str) -> str:
    """What `parts_json` writes for a record, and for nothing else: the name of a part is not followed by a bracket."""
    return f",{json.dumps(record_id)}]"


def entry(row: Sequence[Any]) -> GivenEntry:
    """An entry from a row: kind, moment, tokens, parts, left out, and the other fields of `GivenEntry` in order."""
    kind, at, tokens, parts, left_out, *others = row
    with intact_rows():
        given = tuple(
            GivenPart(PartName(name), share, count, tuple(one[1] for one in records), tuple(one[0] for one in records))
            for name, share, count, *records in json.loads(parts)
        )
        out = tuple(
            LeftOut(PartName(part), Why(why), count, tuple(ids)) for part, why, count, *ids in json.loads(left_out)
        )
        return GivenEntry(GivenKind(kind), at, tokens, given, out, *others)


def _json(rows: Iterable[Sequence[Any]]) -> str:
    return json.dumps(list(rows), separators=(",", ":"))
