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
from kalito_mcp.storage.postgres.queries import Queries, within
from kalito_mcp.storage.queries import limits_of

SELECT_IDENTITY: Final = "SELECT secret FROM identity"
# The order makes PostgreSQL look into the index, where an owner without any is found at once.
SELECT_IDENTITY_IF_ERASED: Final = """
SELECT secret FROM identity
WHERE (SELECT record_id FROM tombstones WHERE owner_key = :owner ORDER BY record_id LIMIT 1) IS NOT NULL
"""
# Messages and summaries leave a row that says where they were. Of others it is not known, so that within limits they
# are as if they had never been there.
WITHIN: Final = f"""
    ((:limit_agent IS NULL AND :limit_project IS NULL) OR EXISTS (
        SELECT 1 FROM records r
        WHERE r.owner_key = :owner AND r.key = coalesce(
            t.number, (SELECT o.key FROM records o WHERE o.owner_key = :owner AND o.id = t.record_id)
        ) AND {within("r")}
    ))
"""
SELECT_TOMBSTONES_OF_TEXTS: Final = f"""
SELECT t.text_hash, t.number, t.seq, t.client_key_hash, t.created_at, t.purged_at FROM tombstones t
WHERE t.owner_key = :owner AND t.text_hash = ANY(:text_hashes) AND t.type = :type AND {WITHIN}
ORDER BY t.purged_at, t.record_id
"""
SELECT_TOMBSTONE: Final = f"""
SELECT t.record_id, t.purged_at FROM tombstones t
WHERE t.owner_key = :owner AND t.record_id = :record_id AND {WITHIN} LIMIT 1
"""
SELECT_ERASED: Final = """
SELECT DISTINCT record_id FROM tombstones WHERE owner_key = :owner AND record_id = ANY(:record_ids)
"""
INSERT_TOMBSTONES: Final = """
INSERT INTO tombstones (
    owner_key, record_id, text_hash, type, number, seq, client_key_hash, created_at, purged_at
)
SELECT :owner, :record_id, text_hash, :type, :number, :seq, :client_key_hash, :created_at, :purged_at
FROM unnest(:text_hashes::text[]) AS text_hash
ON CONFLICT (owner_key, record_id, text_hash) DO UPDATE SET
    type = excluded.type, number = excluded.number, seq = excluded.seq, client_key_hash = excluded.client_key_hash,
    created_at = excluded.created_at, purged_at = excluded.purged_at
"""
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
            INSERT_TOMBSTONES,
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

    async def of_texts(
        self, scope: Scope, record_type: RecordType, texts: Collection[str], client_keys: Collection[str]
    ) -> list[ErasedText]:
        """As `ports.records.RecordReader.erased_texts`."""
        identity = await self._all(SELECT_IDENTITY_IF_ERASED, owner=scope.owner) if texts else ()
        if not identity:
            return []
        secret = identity[0][0]
        by_hash = {hashed_text(secret, text): text for text in texts}
        keys_by_hash = {hashed_text(secret, key): key for key in client_keys}
        found = await self._all(
            SELECT_TOMBSTONES_OF_TEXTS,
            text_hashes=list(by_hash),
            owner=scope.owner,
            type=str(record_type),
            **limits_of(scope),
        )
        return [
            ErasedText(by_hash[text_hash], number or 0, seq or 0, keys_by_hash.get(key_hash), created_at, purged_at)
            for text_hash, number, seq, key_hash, created_at, purged_at in found
        ]

    async def of_record(self, scope: Scope, record_id: str) -> Tombstone | None:
        """As `ports.records.RecordReader.tombstone`."""
        found = await self._all(SELECT_TOMBSTONE, record_id=record_id, owner=scope.owner, **limits_of(scope))
        return next((Tombstone(*row) for row in found), None)

    async def of_records(self, owner: str, record_ids: Sequence[str]) -> frozenset[str]:
        """Which of the ids belonged to records that were erased."""
        return frozenset(row[0] for row in await self._all(SELECT_ERASED, record_ids=list(record_ids), owner=owner))
