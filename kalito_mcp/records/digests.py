"""Digests of a whole memory, by which two stores are compared: equal memories have equal digests, kind by kind.

The hash that a store may keep in a row is not part of them, because others keep none. The numbers of entries are, and
a store that gives others has other digests.
"""

import json
from collections.abc import Mapping
from contextlib import aclosing
from hashlib import sha256
from typing import Final

from kalito_mcp.domain.archive import FIELDS, ArchiveEntry, Selection
from kalito_mcp.ports.store import ReadView

_OF_A_STORE: Final = frozenset({"hash"})


async def digests(view: ReadView, owner: str) -> Mapping[str, str]:
    """The SHA-256 of the owner's entries in their order, 64 hexadecimal digits, by kind. Kinds without entries have
    one, too. Holds some hundred entries at a time."""
    hashes = {kind: sha256() for kind in FIELDS}
    async with aclosing(view.archive.entries(owner, Selection())) as pages:
        async for page in pages:
            for entry in page:
                hashes[entry.kind].update(_line(entry))
    return {kind: made.hexdigest() for kind, made in hashes.items()}


def _line(entry: ArchiveEntry) -> bytes:
    fields = [[name, value] for name, value in entry.fields.items() if name not in _OF_A_STORE]
    return json.dumps(fields, default=_hex, separators=(",", ":")).encode() + b"\n"


def _hex(value: bytes) -> Mapping[str, str]:
    return {"hex": value.hex()}
