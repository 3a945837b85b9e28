"""What a view has read of records besides what it was asked for, so that later questions about them take no round trip:
whether they are damaged, and whether another record names them as superseded."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from kalito_mcp.domain.records import message_record_id
from kalito_mcp.domain.scope import Scope
from kalito_mcp.storage.postgres.transactions import Transaction
from kalito_mcp.storage.records import RecordQueries
from kalito_mcp.storage.row_hash import hash_of_record

CHECKED_COLUMNS: Final = """r.hash, r.session_key, r.end_seq, r.level, r.attributes, r.recorded_at, r.client,
    r.is_internal, r.tags, r.deleted_at, r.purged_at, r.caused_by, r.source, r.document_id, r.agent_key, r.project_key,
    r.reach, EXISTS (
        SELECT 1 FROM superseded_records n WHERE n.owner_key = :owner AND n.record_key = r.key
    ) AS may_be_superseded"""
"""The columns of a candidate that `SeenRecords` needs beyond those of a candidate itself."""


class SeenRecords:
    """The rows of records that one view has read, by owner and id. The view is a snapshot, so they stay true."""

    def __init__(self) -> None:
        self._rows: dict[str, dict[str, Mapping[str, Any]]] = {}

    def add(self, owner: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Remember rows with the columns of a candidate and CHECKED_COLUMNS."""
        self._rows.setdefault(owner, {}).update((row["id"] or message_record_id(row["key"]), row) for row in rows)

    def unseen(self, owner: str, record_ids: Iterable[str]) -> list[str]:
        """The ids of which no row was read."""
        rows = self._rows.get(owner, {})
        return [one for one in record_ids if one not in rows]

    def damaged(self, owner: str, record_ids: Iterable[str]) -> list[str]:
        """The ids whose rows were read and do not have their hash."""
        rows = self._rows.get(owner, {})
        return [one for one in record_ids if one in rows and hash_of_record(rows[one]) != rows[one]["hash"]]

    def may_be_superseded(self, owner: str, record_ids: Iterable[str]) -> list[str]:
        """The ids that another record names as superseded, and those of which no row was read."""
        rows = self._rows.get(owner, {})
        return [one for one in record_ids if one not in rows or rows[one]["may_be_superseded"]]


class RecordQueriesOfView(RecordQueries):
    """Reads records in one view, and does not ask again for what the view has seen."""

    def __init__(self, transaction: Transaction, seen: SeenRecords) -> None:
        super().__init__(transaction)
        self._seen = seen

    async def superseded(self, scope: Scope, record_ids: Sequence[str]) -> Mapping[str, tuple[str, int]]:
        named = self._seen.may_be_superseded(scope.owner, record_ids)
        return await super().superseded(scope, named) if named else {}

    async def damaged(self, scope: Scope, record_ids: Sequence[str]) -> Sequence[str]:
        unseen = self._seen.unseen(scope.owner, record_ids)
        damaged = await super().damaged(scope, unseen) if unseen else ()
        return [*damaged, *self._seen.damaged(scope.owner, record_ids)]
