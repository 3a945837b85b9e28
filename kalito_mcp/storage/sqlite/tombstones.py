"""Tombstones of erased records. They stop an import or a retry from storing a record again, and let an interrupted
erasure be finished.

Texts are stored as keyed hashes. They reveal nothing without the database's secret. With it, one can only test whether
a given text was erased.
"""

import json
from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final

import aiosqlite

from kalito_mcp.domain.archive import hashed_text
from kalito_mcp.domain.records import RecordType, message_record_id
from kalito_mcp.domain.scope import Scope
from kalito_mcp.ports.maintenance import OwedErasures
from kalito_mcp.ports.records import ErasedText, Tombstone
from kalito_mcp.storage.queries import limits_of
from kalito_mcp.storage.sqlite.queries import within

SELECT_IDENTITY: Final = "SELECT secret FROM identity"
SELECT_ANY_TOMBSTONE: Final = "SELECT 1 FROM tombstones LIMIT 1"
# Messages and summaries leave a row that says where they were. Of others it is not known, so that within limits they
# are as if they had never been there.
WITHIN: Final = f"""
    ((:limit_agent IS NULL AND :limit_project IS NULL) OR EXISTS (
        SELECT 1 FROM records r
        WHERE r.key = coalesce(t.number, (SELECT o.key FROM records o WHERE o.id = t.record_id)) AND {within("r")}
    ))
"""
SELECT_TOMBSTONES_OF_TEXTS: Final = f"""
SELECT t.text_hash, t.number, t.seq, t.client_key_hash, t.created_at, t.purged_at FROM tombstones t
WHERE t.text_hash IN (SELECT value FROM json_each(:text_hashes)) AND t.owner = :owner AND t.type = :type AND {WITHIN}
ORDER BY t.purged_at, t.record_id
"""
SELECT_TOMBSTONE: Final = f"""
SELECT t.record_id, t.purged_at FROM tombstones t
WHERE t.record_id = :record_id AND t.owner = :owner AND {WITHIN} LIMIT 1
"""
SELECT_ERASED: Final = """
SELECT DISTINCT record_id FROM tombstones
WHERE record_id IN (SELECT value FROM json_each(:record_ids)) AND owner = :owner
"""
INSERT_TOMBSTONE: Final = """
INSERT OR REPLACE INTO tombstones (
    record_id, text_hash, owner, type, number, seq, client_key_hash, created_at, purged_at
) VALUES (:record_id, :text_hash, :owner, :type, :number, :seq, :client_key_hash, :created_at, :purged_at)
"""
INSERT_UNSWEPT: Final = "INSERT INTO unswept (text_keys) VALUES (:text_keys)"
SELECT_UNSWEPT: Final = "SELECT key, text_keys FROM unswept ORDER BY key"
SELECT_ANY_LEFTOVER: Final = "SELECT EXISTS (SELECT 1 FROM vector_leftovers)"


class Tombstones:
    """The tombstones of every owner."""

    def __init__(self, connection: aiosqlite.Connection) -> None:
        self._connection = connection

    async def add(self, row: dict[str, Any], texts: Iterable[str], *, owner: str, now_ms: int) -> None:
        """Store one tombstone for each of the texts, or one that no text finds. `row` is the record's row by column."""
        secret = await self._secret()
        is_message = row["type"] == RecordType.MESSAGE
        client_key = row["client_key"]
        kept = {
            "record_id": row["id"] or message_record_id(row["key"]),
            "owner": owner,
            "type": row["type"],
            "number": row["key"] if is_message else None,
            "seq": row["seq"] if is_message else None,
            "client_key_hash": None if client_key is None else hashed_text(secret, client_key),
            "created_at": row["created_at"],
            "purged_at": now_ms,
        }
        await self._connection.executemany(
            INSERT_TOMBSTONE,
            [{**kept, "text_hash": hashed_text(secret, text)} for text in dict.fromkeys(texts) or (kept["record_id"],)],
        )

    async def owe_sweep(self, text_keys: Sequence[str]) -> None:
        """Store an erasure as unswept."""
        await self._connection.execute_fetchall(INSERT_UNSWEPT, {"text_keys": json.dumps(list(text_keys))})

    async def unswept(self) -> OwedErasures:
        """The erasures that are not swept yet."""
        rows = list(await self._connection.execute_fetchall(SELECT_UNSWEPT))
        keys = frozenset(key for _, text_keys in rows for key in json.loads(text_keys))
        [[is_left]] = await self._connection.execute_fetchall(SELECT_ANY_LEFTOVER)
        return OwedErasures(rows[-1][0] if rows else 0, keys, is_left_elsewhere=bool(is_left))

    async def of_texts(
        self, scope: Scope, record_type: RecordType, texts: Collection[str], client_keys: Collection[str]
    ) -> list[ErasedText]:
        """As `ports.records.RecordReader.erased_texts`."""
        if not texts or not await self._connection.execute_fetchall(SELECT_ANY_TOMBSTONE):
            return []
        secret = await self._secret()
        by_hash = {hashed_text(secret, text): text for text in texts}
        keys_by_hash = {hashed_text(secret, key): key for key in client_keys}
        rows = await self._connection.execute_fetchall(
            SELECT_TOMBSTONES_OF_TEXTS,
            {
                "text_hashes": json.dumps(list(by_hash)),
                "owner": scope.owner,
                "type": str(record_type),
                **limits_of(scope),
            },
        )
        return [
            ErasedText(by_hash[text_hash], number or 0, seq or 0, keys_by_hash.get(key_hash), created_at, purged_at)
            for text_hash, number, seq, key_hash, created_at, purged_at in rows
        ]

    async def of_record(self, scope: Scope, record_id: str) -> Tombstone | None:
        """As `ports.records.RecordReader.tombstone`."""
        parameters = {"record_id": record_id, "owner": scope.owner, **limits_of(scope)}
        rows = await self._connection.execute_fetchall(SELECT_TOMBSTONE, parameters)
        return next((Tombstone(*row) for row in rows), None)

    async def of_records(self, owner: str, record_ids: Sequence[str]) -> frozenset[str]:
        """Which of the ids belonged to records that were erased."""
        parameters = {"record_ids": json.dumps(list(record_ids)), "owner": owner}
        return frozenset(row[0] for row in await self._connection.execute_fetchall(SELECT_ERASED, parameters))

    async def _secret(self) -> bytes:
        [[secret]] = await self._connection.execute_fetchall(SELECT_IDENTITY)
        return bytes(secret)
