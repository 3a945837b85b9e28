"""Reads whole records and their edits. Implements `ports.records.RecordReader`."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from kalito_mcp.domain.known import KnownRecord
from kalito_mcp.domain.memory_records import MemoryRecord, StoredEdit
from kalito_mcp.domain.records import Origin, Reach, RecordType
from kalito_mcp.domain.scope import DEFAULT_AGENT, Scope
from kalito_mcp.domain.spaces import space_of
from kalito_mcp.errors import RecordNotFound
from kalito_mcp.ports.records import ErasedText, ForgottenValue, RecentWords, ScanCursor, ScannedRecord, Tombstone
from kalito_mcp.storage import record_rows as rows
from kalito_mcp.storage.forgotten_values import ForgottenValues
from kalito_mcp.storage.intact_rows import intact_rows
from kalito_mcp.storage.numbered import key_of, message_key, owner_of
from kalito_mcp.storage.queries import Queries, SqlTransaction, places_of
from kalito_mcp.storage.row_hash import record_hash
from kalito_mcp.storage.tombstones import Tombstones

_LISTED: Final = frozenset(RecordType) - {RecordType.MESSAGE}
_NEWEST: Final = (1 << 63) - 1


class RecordQueries(Queries):
    """`ports.records.RecordReader`."""

    def __init__(self, transaction: SqlTransaction) -> None:
        super().__init__(transaction)
        self._has_forgotten: dict[str, bool] = {}
        """Of owners who were asked about: nobody else changes it before the transaction ends."""

    async def record(self, scope: Scope, record_id: str) -> MemoryRecord | None:
        number = message_key(record_id)
        if number is not None:
            found = await self._records(self._sql.records.SELECT_MESSAGE_RECORD, number=number, **places_of(scope))
        else:
            found = await self._records(self._sql.records.SELECT_RECORD, id=record_id, **places_of(scope))
        return next(iter(found), None)

    async def ids_by_tail(self, scope: Scope, record_type: RecordType, tail: str) -> Sequence[str]:
        range_of_type = {"first": f"{record_type}_", "after": f"{record_type}`"}  # "`" follows "_"
        like = f"{record_type}!_%!_{tail}%"
        found = await self._all(self._sql.records.SELECT_IDS_BY_TAIL, owner=scope.owner, like=like, **range_of_type)
        return [row[0] for row in found]

    async def list_records(
        self, scope: Scope, types: frozenset[RecordType], *, after: str | None = None, limit: int
    ) -> Sequence[MemoryRecord]:
        before_key = _NEWEST
        if after is not None:
            last = await self.record(scope, after)
            if last is None:
                raise RecordNotFound(f"no record {after!r} to continue after; list from the start")
            before_key = key_of(last)
        wanted = sorted(str(kind) for kind in (types or _LISTED) & _LISTED)
        parameters = {"types": wanted, "before_key": before_key, "limit": limit, **places_of(scope)}
        return await self._records(self._sql.records.SELECT_NEWEST_OF_TYPES, **parameters)

    async def document(self, scope: Scope, source: str) -> Sequence[MemoryRecord]:
        return await self._records(self._sql.records.SELECT_DOCUMENT, source=source, **places_of(scope))

    async def of_source(self, scope: Scope, source: str) -> Sequence[MemoryRecord]:
        return await self._records(self._sql.records.SELECT_OF_SOURCE, source=source, **places_of(scope))

    async def sources(self, scope: Scope, prefix: str) -> Sequence[tuple[str, int]]:
        return [
            (row[0], row[1])
            for row in await self._all(self._sql.records.SELECT_SOURCES, prefix=prefix, **places_of(scope))
        ]

    async def parts(self, scope: Scope, document_id: str) -> Sequence[MemoryRecord]:
        return await self._records(self._sql.records.SELECT_PARTS, document_id=document_id, **places_of(scope))

    async def known(self, scope: Scope, *, limit: int, include_internal: bool = False) -> Sequence[KnownRecord]:
        parameters = {"limit": limit, "include_internal": include_internal, **places_of(scope)}
        if (space := space_of(scope.owner)) is None:
            found = await self._all(self._sql.records.SELECT_KNOWN, **parameters)
        else:
            found = await self._all(self._sql.records.SELECT_KNOWN_OF_SPACE, space=space, **parameters)
        return [replace(rows.known(row), space=space) for row in found]

    async def left_open(self, scope: Scope, *, limit: int) -> Sequence[KnownRecord]:
        return [
            rows.known(row)
            for row in await self._all(self._sql.records.SELECT_LEFT_OPEN, limit=limit, **places_of(scope))
        ]

    async def statements(self, scope: Scope, *, lasting: int, of_sessions: int, forgotten: int) -> list[MemoryRecord]:
        limits = {"lasting": lasting, "of_sessions": of_sessions, "forgotten": forgotten}
        return await self._records(self._sql.records.SELECT_STATED, **limits, **places_of(scope))

    async def superseded(self, scope: Scope, record_ids: Sequence[str]) -> Mapping[str, tuple[str, int]]:
        found = await self._all(self._sql.records.SELECT_SUPERSEDED, **_named(record_ids), **places_of(scope))
        return {superseded: (record_id, at) for superseded, record_id, at in found}

    async def said_in_order(self, scope: Scope, record_ids: Sequence[str]) -> Sequence[str]:
        found = await self._all(self._sql.records.SELECT_SAID_IN_ORDER, owner=scope.owner, **_named(record_ids))
        return [row[0] for row in found]

    async def same_words(self, scope: Scope, record_type: RecordType, text: str) -> MemoryRecord | None:
        found = await self._records(
            self._sql.records.SELECT_SAME_WORDS, type=str(record_type), text=text, **places_of(scope)
        )
        return next(iter(found), None)

    async def same_known(self, scope: Scope, reach: Reach, text: str) -> MemoryRecord | None:
        found = await self._records(
            self._sql.records.SELECT_SAME_KNOWN, reach=str(reach), text=text, **places_of(scope)
        )
        return next(iter(found), None)

    async def recent_words(self, scope: Scope, *, most_chars: int) -> Sequence[RecentWords]:
        found = await self._all(self._sql.records.SELECT_RECENT_WORDS, most_chars=most_chars, **places_of(scope))
        return [RecentWords(record_id, text, Origin(origin)) for record_id, text, origin in found]

    async def pins_of(self, record: MemoryRecord) -> Sequence[MemoryRecord]:
        return await self._records(
            self._sql.records.SELECT_PINS_OF_MESSAGE, owner=owner_of(record), id=record.id, key=key_of(record)
        )

    async def summaries_over(self, record: MemoryRecord) -> Sequence[MemoryRecord]:
        return await self._records(self._sql.records.SELECT_SUMMARIES_OVER, owner=owner_of(record), key=key_of(record))

    async def edits(self, record: MemoryRecord) -> Sequence[StoredEdit]:
        found = await self._all(self._sql.records.SELECT_EDITS, owner=owner_of(record), key=key_of(record))
        return [rows.stored_edit(row) for row in found]

    async def causes(self, record: MemoryRecord) -> frozenset[str]:
        found = await self._all(self._sql.records.SELECT_CAUSES, owner=owner_of(record), key=key_of(record))
        return frozenset(row[0] for row in found)

    async def of_client_keys(
        self, scope: Scope, record_type: RecordType, client_keys: Collection[str]
    ) -> Sequence[MemoryRecord]:
        statements = self._sql.client_keys.SELECT_KEYS_OF_AGENT, self._sql.client_keys.SELECT_KEYS_OF_SESSION
        keys = await self._by_client_key(*statements, scope, record_type, client_keys=list(client_keys))
        return (
            await self._records(self._sql.records.SELECT_RECORDS_OF_KEYS, owner=scope.owner, keys=keys) if keys else []
        )

    async def client_keys(self, scope: Scope, record_type: RecordType, prefix: str) -> Sequence[str]:
        of_agent = self._sql.client_keys.SELECT_CLIENT_KEYS_OF_AGENT
        of_session = self._sql.client_keys.SELECT_CLIENT_KEYS_OF_SESSION
        after = f"{prefix[:-1]};"  # a prefix ends with a colon
        return await self._by_client_key(of_agent, of_session, scope, record_type, first=prefix, after=after)

    async def _by_client_key(
        self, of_agent: str, of_session: str, scope: Scope, record_type: RecordType, **named: Any
    ) -> list[Any]:
        """What a statement finds by client keys, which are of a session, or of an agent without one."""
        place = {**places_of(scope), "agent": scope.agent or DEFAULT_AGENT, "type": str(record_type)}
        found = await self._all(of_agent if scope.session is None else of_session, **place, **named)
        return [row[0] for row in found]

    async def erased_texts(
        self, scope: Scope, record_type: RecordType, texts: Collection[str], client_keys: Collection[str] = ()
    ) -> Sequence[ErasedText]:
        if not texts:
            return []
        tombstones = Tombstones(self._transaction)
        secret, has_erased, self._has_forgotten[scope.owner] = await tombstones.gone(scope.owner)
        if not has_erased:
            return []
        return await tombstones.of_texts(scope, record_type, texts, client_keys, secret)

    async def tombstone(self, scope: Scope, record_id: str) -> Tombstone | None:
        return await Tombstones(self._transaction).of_record(scope, record_id)

    async def erased(self, scope: Scope, record_ids: Sequence[str]) -> frozenset[str]:
        return await Tombstones(self._transaction).of_records(scope.owner, record_ids)

    async def damaged(self, scope: Scope, record_ids: Sequence[str]) -> Sequence[str]:
        found = await self._all(self._sql.records.SELECT_HASHED, **_named(record_ids), owner=scope.owner)
        return [record_id for record_id, stored_hash, *row in found if record_hash(row) != stored_hash]

    async def scan(
        self, scope: Scope, *, after: ScanCursor | None, limit: int, has_forgotten: bool = False
    ) -> Sequence[ScannedRecord]:
        parameters = {"after_key": after or 0, "limit": limit, "has_forgotten": has_forgotten, **places_of(scope)}
        return [
            ScannedRecord(key, record_id, RecordType(kind), text, _texts_of(changes), *row)
            for key, record_id, kind, text, changes, *row in await self._all(
                self._sql.records.SELECT_SCANNED, **parameters
            )
        ]

    async def has_forgotten_values(self, owner: str) -> bool:
        if owner not in self._has_forgotten:
            _, _, self._has_forgotten[owner] = await Tombstones(self._transaction).gone(owner)
        return self._has_forgotten[owner]

    async def forgotten_values(self, scope: Scope, keys: Collection[str]) -> Mapping[str, ForgottenValue]:
        return await ForgottenValues(self._transaction).of(scope, keys)

    async def _records(self, statement: str, **parameters: Any) -> list[MemoryRecord]:
        return [rows.record(row, owner=parameters["owner"]) for row in await self._all(statement, **parameters)]


def _named(record_ids: Sequence[str]) -> dict[str, Any]:
    """The parameters that name records by their ids: those of messages by the numbers in them."""
    numbers = [number for one in record_ids if (number := message_key(one)) is not None]
    return {"numbers": numbers, "ids": list(record_ids)}


def _texts_of(changes: str | None) -> str | None:
    """The texts in the changes of edits, which are JSON in one line each."""
    with intact_rows():
        said = [json.loads(line).get("text") for line in changes.split("\n")] if changes else []
    return "\n".join(text for text in said if text is not None) or None
