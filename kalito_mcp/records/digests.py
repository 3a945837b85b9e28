"""All rows of a store in their order, and digests of them, by which two stores are compared: equal memories have equal
digests, table by table.
"""

import hashlib
import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Final, NamedTuple

from kalito_mcp.domain.archive import FIELDS, ArchiveEntry, Selection
from kalito_mcp.domain.transfer import MOVED
from kalito_mcp.ports.store import ReadView

SHARED: Final = frozenset({"identity", "sqlite_sequence"})
"""Kinds of entries that are the same for all owners."""

Page = Sequence[ArchiveEntry]
"""Rows, with their table as the kind."""


class TableDigest(NamedTuple):
    """How many rows a table has, and the SHA-256 over them in their order, 64 hexadecimal digits."""

    rows: int
    digest: str


async def digests_of_all(view: ReadView) -> Mapping[str, TableDigest]:
    """The digest of each table. It does not depend on owners without rows."""
    made, counts = {kind: hashlib.sha256() for kind in (*FIELDS, *MOVED)}, dict.fromkeys((*FIELDS, *MOVED), 0)
    for owner in (*(await view.transfer.owners() or [""]), None):
        seen = {kind for kind in SHARED if counts[kind]}
        async with aclosing(rows_of(view, owner)) as pages:
            async for page in pages:
                for entry in page:
                    if entry.kind not in seen:
                        made[entry.kind].update(_line(entry, None if entry.kind in SHARED else owner))
                        counts[entry.kind] += 1
    return {kind: TableDigest(counts[kind], made[kind].hexdigest()) for kind in made}


async def rows_of(view: ReadView, owner: str | None) -> AsyncGenerator[Page]:
    """All rows of an owner; for None, what has no owner. The same store always gives the same order."""
    if owner is not None:
        async with aclosing(view.archive.entries(owner, Selection())) as entries:
            async for page in entries:
                yield page
    for name, table in MOVED.items():
        if table.is_owned is (owner is not None):
            async with aclosing(view.transfer.rows(name, owner)) as rows:
                async for found in rows:
                    yield [ArchiveEntry(name, row) for row in found]


def _line(entry: ArchiveEntry, owner: str | None) -> bytes:
    return json.dumps([owner, list(entry.fields.items())], default=bytes.hex, separators=(",", ":")).encode() + b"\n"
