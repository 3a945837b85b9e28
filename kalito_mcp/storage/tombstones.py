"""Tombstones of erased records. They stop an import or a retry from storing a record again, and let an interrupted
erasure be finished.

Texts are stored as keyed hashes. They reveal nothing without the database's secret. With it, one can only test whether
a given text was erased.
"""

import json
from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final

from kalito_mcp.domain.archive import hashed_text
from kalito_mcp.domain.records import RecordType, message_record_id
from kalito_mcp.domain.scope import Scope
from kalito_mcp.ports.maintenance import OwedErasures
from kalito_mcp.ports.records import ErasedText, Tombstone
from kalito_mcp.storage.queries import Queries, places_of

SELECT_IDENTITY: Final = "SELECT secret FROM identity"
INSERT_UNSWEPT: Final = "INSERT INTO unswept (text_keys) VALUES (:text_keys)"
SELECT_UNSWEPT: Final = "SELECT key, text_keys FROM unswept ORDER BY key"


class Tombstones(Queries):
    """The tombstones of every owner, and what is owed for erasures."""

    async def add(self, row: dict[str, Any], texts: Iterable[str], *, owner: str, now_ms: int) -> None:
        """Store one tombstone for each of the texts, or one that no text finds. `row` is the record's row by column."""
        [[secret]] = await self._all(SELECT_IDENTITY)
        is_message = row["type"] == RecordType.MESSAGE
        client_key = row["client_key"]
        record_id = row["id"] or message_record_id(row["key"])
        await self._all(
            self._sql.tombstones.INSERT_TOMBSTONES,
            owner=owner,
            record_id=record_id,
            text_hashes=list({hashed_text(secret, text): None for text in texts} or (hashed_text(secret, record_id),)),
            type=row["type"],
            number=row["key"] if is_message else None,
            seq=row["seq"] if is_message else None,
            client_key_hash=None if client_key is None else hashed_text(secret, client_key),
            created_at=row["created_at"],
            purged_at=now_ms,
        )

    async def owe_sweep(self, text_keys: Sequence[str]) -> None:
        """Store an erasure as unswept."""
        await self._all(INSERT_UNSWEPT, text_keys=json.dumps(list(text_keys)))

    async def unswept(self) -> OwedErasures:
        """The erasures that are not swept yet. Erasures of several owners may become visible in another order than that
        of their numbers."""
        found = await self._all(SELECT_UNSWEPT)
        keys = frozenset(key for _, text_keys in found for key in json.loads(text_keys))
        return OwedErasures(found[-1][0] if found else 0, keys)

    async def gone(self, owner: str) -> tuple[bytes, bool, bool]:
        """The secret of the database, and whether the owner erased and forgot anything. If only other owners did, a
        store may say so, too."""
        [[secret, has_erased, has_forgotten]] = await self._all(self._sql.tombstones.SELECT_GONE, owner=owner)
        return bytes(secret), bool(has_erased), bool(has_forgotten)

    async def of_texts(
        self, scope: Scope, record_type: RecordType, texts: Collection[str], client_keys: Collection[str], secret: bytes
    ) -> list[ErasedText]:
        """As `ports.records.RecordReader.erased_texts`."""
        by_hash = {hashed_text(secret, text): text for text in texts}
        keys_by_hash = {hashed_text(secret, key): key for key in client_keys}
        found = await self._all(
            self._sql.tombstones.SELECT_TOMBSTONES_OF_TEXTS,
            text_hashes=list(by_hash),
            type=str(record_type),
            **places_of(scope),
        )
        return [
            ErasedText(by_hash[text_hash], number or 0, seq or 0, keys_by_hash.get(key_hash), created_at, purged_at)
            for text_hash, number, seq, key_hash, created_at, purged_at in found
        ]

    async def of_record(self, scope: Scope, record_id: str) -> Tombstone | None:
        """As `ports.records.RecordReader.tombstone`."""
        found = await self._all(self._sql.tombstones.SELECT_TOMBSTONE, record_id=record_id, **places_of(scope))
        return next((Tombstone(*row) for row in found), None)

    async def of_records(self, owner: str, record_ids: Sequence[str]) -> frozenset[str]:
        """Which of the ids belonged to records that were erased."""
        return frozenset(
            row[0]
            for row in await self._all(self._sql.tombstones.SELECT_ERASED, record_ids=list(record_ids), owner=owner)
        )
