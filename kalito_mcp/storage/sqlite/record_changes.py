"""Changes whole records, and with them the text index, the counters and the causes that other records name."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Final

from kalito_mcp.domain.memory_records import EditDraft, MemoryRecord, RecordDraft, changed_fields
from kalito_mcp.domain.records import Reach, RecordType
from kalito_mcp.domain.scope import DEFAULT_AGENT, PERSONAL, Scope
from kalito_mcp.errors import RecordNotFound, RevisionConflict
from kalito_mcp.ports.records import IndexedPair
from kalito_mcp.storage import record_rows as rows
from kalito_mcp.storage.numbered import key_of, message_key
from kalito_mcp.storage.record_rows import StoredRow
from kalito_mcp.storage.row_hash import hash_of_record
from kalito_mcp.storage.sqlite import statements
from kalito_mcp.storage.sqlite.conversations import SELECT_NEXT_KEY, SELECT_OWNERSHIP, UPDATE_AGENT_COUNT, stored_once
from kalito_mcp.storage.sqlite.forgotten_values import ForgottenValues
from kalito_mcp.storage.sqlite.projects import rename_project
from kalito_mcp.storage.sqlite.queries import Transaction, owned
from kalito_mcp.storage.sqlite.record_statements import INSERT_EDIT, INSERT_RECORD, STORED_COLUMNS, UPDATE_RECORD
from kalito_mcp.storage.sqlite.records import SELECT_RECORDS_OF_KEYS, RecordQueries
from kalito_mcp.storage.sqlite.session_changes import INSERT_AGENT, INSERT_PROJECT, PROJECT_KEY, SessionStatements
from kalito_mcp.storage.sqlite.superseded import supersede
from kalito_mcp.storage.sqlite.text_index import IndexEntry, TextIndexStatements, index_entry
from kalito_mcp.storage.sqlite.tombstones import Tombstones
from kalito_mcp.storage.stored_changes import erased_stub, importance_of
from kalito_mcp.storage.superseded import named_in
from kalito_mcp.text.analysis import IndexedText, index_text

SELECT_OWNER: Final = "SELECT owner FROM agents WHERE key = :agent_key"
SELECT_STORED: Final = f"SELECT {STORED_COLUMNS} FROM records r WHERE r.key = :key"
SELECT_EFFECTS: Final = f"SELECT {STORED_COLUMNS} FROM records r WHERE r.caused_by = :key"
UPDATE_COUNTERS: Final = """
UPDATE sessions SET
    hidden_count = hidden_count + :hidden, pin_count = pin_count + :pins, summary_count = summary_count + :summaries,
    importance_sum = importance_sum + :importance, revision = revision + 1
WHERE key = :session_key
"""
# Only if no other message of the session named the same model.
UPDATE_MODEL: Final = """
UPDATE sessions SET model = (
    SELECT json_extract(r.attributes, '$.model_id') FROM records r
    WHERE r.session_key = :session_key AND r.type = 'message' AND json_extract(r.attributes, '$.model_id') IS NOT NULL
    ORDER BY r.seq DESC LIMIT 1
) WHERE key = :session_key AND model = :model
"""
UPDATE_WRITTEN: Final = """
UPDATE sessions SET updated_at = max(updated_at, :now_ms), revision = revision + 1 WHERE key = :session_key
"""
UPSERT_USAGE: Final = f"""
INSERT INTO record_usage (record_key, usage_count, last_used)
SELECT key, :count, :used_at FROM records
WHERE key = coalesce(:number, (SELECT key FROM records WHERE id = :id)) AND purged_at IS NULL AND {owned("records")}
ON CONFLICT (record_key) DO UPDATE SET
    usage_count = usage_count + excluded.usage_count, last_used = max(last_used, excluded.last_used)
"""
DELETE_EDITS: Final = "DELETE FROM memory_edits WHERE record_key = :key"
DELETE_USAGE: Final = "DELETE FROM record_usage WHERE record_key = :key"
DELETE_FEEDBACK: Final = "DELETE FROM feedback WHERE record_key = :key"
DELETE_RECORD: Final = "DELETE FROM records WHERE key = :key"


class RecordStatements(RecordQueries):
    """`ports.records.RecordWriter`."""

    async def add_records(self, scope: Scope, drafts: Sequence[RecordDraft], *, now_ms: int) -> Sequence[MemoryRecord]:
        if not drafts:
            return []
        where = await self._place(scope)
        [[first_key]] = await self._all(SELECT_NEXT_KEY)
        keys = {draft.id: key for key, draft in enumerate(drafts, first_key)}
        new: list[StoredRow] = []
        for draft in drafts:
            cause = draft.content.get("caused_by")
            caused_by = None if cause is None else keys.get(cause) or await self._key(scope.owner, cause)
            new.append(rows.new_row(keys[draft.id], where, draft, caused_by=caused_by, now_ms=now_ms))
        with stored_once():
            await self._connection.executemany(INSERT_RECORD, [rows.insert_parameters(row) for row in new])
        for row in new:
            await self._update_derived(None, row)
        if where.session_key is not None:
            await self._all(UPDATE_WRITTEN, now_ms=now_ms, session_key=where.session_key)
        return await self._records(SELECT_RECORDS_OF_KEYS, keys=json.dumps(list(keys.values())))

    async def change(
        self, record: MemoryRecord, edit: EditDraft, *, indexed: IndexedPair | None = None
    ) -> MemoryRecord:
        before = await self._stored(record)
        owner, cause = await self._owner(before), edit.content.get("caused_by")
        caused_by = before["caused_by"] if cause == before["cause"] else None
        if cause is not None and caused_by is None:
            caused_by = await self._key(owner, cause)
        version = record.revision + 1
        after = rows.with_content(
            {**before, "revision": version},
            edit.content,
            caused_by=caused_by,
            project_key=await self._project_key_after(owner, before, edit),
            tokens=edit.tokens,
        )
        with stored_once():
            await self._all(UPDATE_RECORD, **after)
        changes = changed_fields(rows.content_of(before), rows.content_of(after))
        row = rows.edit_row(key_of(record), version, edit.type, edit.editor, edit.edited_at, changes)
        await self._connection.execute_fetchall(INSERT_EDIT, row)
        await self._update_derived(before, after, indexed)
        return await self._reread(record)

    async def rename_project(self, owner: str, old: str, new: str) -> None:
        with stored_once():
            await rename_project(self._connection, owner, old, new)

    async def drop_history(self, record: MemoryRecord) -> MemoryRecord:
        await self._stored(record)
        await self._all(DELETE_EDITS, key=key_of(record))
        return await self._reread(record)

    async def purge(
        self,
        record: MemoryRecord,
        *,
        now_ms: int,
        texts: Sequence[str] = (),
        text_keys: Sequence[str] = (),
        indexed: IndexedText | None = None,
    ) -> None:
        before = await self._stored(record, is_revision_checked=False)
        tombstones = Tombstones(self._connection)
        await tombstones.add(before, texts, owner=await self._owner(before), now_ms=now_ms)
        await tombstones.owe_sweep(text_keys)
        for effect in await self._all(SELECT_EFFECTS, key=key_of(record)):
            await self._all(UPDATE_RECORD, **rows.hashed({**rows.stored(effect), "caused_by": None}))
        if record.type in (RecordType.MESSAGE, RecordType.SUMMARY):
            await self._all(DELETE_EDITS, key=key_of(record))
            await self._all(DELETE_USAGE, key=key_of(record))
            await self._all(DELETE_FEEDBACK, key=key_of(record))
            stub = erased_stub(before, now_ms)
            await self._all(UPDATE_RECORD, **stub)
            await self._update_derived(before, stub, (indexed, None))
            model = rows.content_of(before).get("model_id")
            if record.type is RecordType.MESSAGE and model is not None:
                await self._all(UPDATE_MODEL, session_key=before["session_key"], model=model)
        else:
            await self._all(DELETE_RECORD, key=key_of(record))
            await self._update_derived(before, None, (indexed, None))

    async def forget_values(self, scope: Scope, keys: Collection[str], *, now_ms: int, is_erased: bool = False) -> None:
        await ForgottenValues(self._connection).add(scope, keys, now_ms=now_ms, is_erased=is_erased)

    async def bring_back_values(self, scope: Scope, keys: Collection[str]) -> None:
        await ForgottenValues(self._connection).remove(scope, keys)

    async def count_uses(self, owner: str, uses: Mapping[str, int], *, used_at: int) -> None:
        await self._connection.executemany(
            UPSERT_USAGE,
            [
                {
                    "owner": owner,
                    "number": message_key(record_id),
                    "id": record_id,
                    "count": count,
                    "used_at": used_at,
                }
                for record_id, count in uses.items()
            ],
        )

    async def _place(self, scope: Scope) -> rows.Place:
        """The keys of the scope's session, agent and project. Creates the last two if they are new."""
        if scope.session is not None:
            session = await SessionStatements(Transaction(self._connection, statements)).get(scope)
            assert session is not None  # noqa: S101 - the caller knows it
            [[agent_key, project_key]] = await self._all(SELECT_OWNERSHIP, session_key=key_of(session))
            return rows.Place(agent_key, key_of(session), project_key)
        scope = replace(scope, agent=scope.agent or DEFAULT_AGENT)
        await self._all(INSERT_AGENT, owner=scope.owner, agent=scope.agent)
        agent_key = await self._agent_key(scope)
        assert agent_key is not None  # noqa: S101 - it was read or written in this transaction
        return rows.Place(agent_key, None, await self._project_key(scope.owner, scope.project))

    async def _project_key(self, owner: str, project: str | None) -> int | None:
        """The key of a project, which is created if it is new; None without a project."""
        if project in (None, PERSONAL):
            return None
        await self._all(INSERT_PROJECT, owner=owner, project=project)
        [[key]] = await self._all(f"SELECT {PROJECT_KEY}", owner=owner, project=project)
        return int(key)

    async def _project_key_after(self, owner: str, before: StoredRow, edit: EditDraft) -> int | None:
        """The key of the project that the record is of after the edit."""
        content = edit.content
        project_key: int | None = before["project_key"]
        if content.get("scope") == Reach.PERSON:
            return None
        if before["session_key"] is None:
            if content.get("project") != before["project"]:
                return await self._project_key(owner, content.get("project"))
        elif content.get("scope") != before["reach"]:
            [[_, project_key]] = await self._all(SELECT_OWNERSHIP, session_key=before["session_key"])
        return project_key

    async def _key(self, owner: str, record_id: str) -> int:
        """The key of the owner's record of this id."""
        found = await self.record(Scope(owner), record_id)
        assert found is not None  # noqa: S101 - the caller knows it
        return key_of(found)

    async def _owner(self, row: StoredRow) -> str:
        [[owner]] = await self._all(SELECT_OWNER, agent_key=row["agent_key"])
        return str(owner)

    async def _stored(self, record: MemoryRecord, *, is_revision_checked: bool = True) -> StoredRow:
        found = [rows.stored(row) for row in await self._all(SELECT_STORED, key=key_of(record))]
        if not found or found[0]["purged_at"] is not None:
            raise RecordNotFound(f"{record.id} was erased; nothing was written")
        if is_revision_checked and found[0]["revision"] != record.revision:
            raise RevisionConflict(record.id, record.revision, found[0]["revision"])
        return found[0]

    async def _reread(self, record: MemoryRecord) -> MemoryRecord:
        [found] = await self._records(SELECT_RECORDS_OF_KEYS, keys=json.dumps([key_of(record)]))
        return found

    async def _update_derived(
        self, before: StoredRow | None, after: StoredRow | None, indexed: IndexedPair | None = None
    ) -> None:
        """Update the text index, the counters and what is superseded for a row that has changed. Forgotten records are
        neither indexed nor counted."""
        shown_before = before if before is not None and before["deleted_at"] is None else None
        shown_after = after if after is not None and after["deleted_at"] is None else None
        was, becomes = indexed or (None, None)
        old, new = _index_entry(shown_before, was), _index_entry(shown_after, becomes)
        if old != new:
            index = TextIndexStatements(self._connection)
            if before is not None and before["hash"] != hash_of_record(before):
                # The row decayed, so the index has other terms for it than the row gives.
                await index.rebuild()
                new = None
            elif old is not None:
                await index.remove(old)
            if new is not None:
                await index.add([new])
        row = after or before
        assert row is not None  # noqa: S101 - at least one is given
        earlier, attributes = (None if one is None else one["attributes"] for one in (before, after))
        if named_in(earlier) != named_in(attributes):
            await supersede(self._connection, row["key"])
        records = (shown_after is not None) - (shown_before is not None)
        importance = importance_of(shown_after) - importance_of(shown_before)
        if records:
            await self._all(UPDATE_AGENT_COUNT, records=records, agent_key=row["agent_key"])
        if row["session_key"] is not None and (records or importance):
            kind = row["type"]
            await self._all(
                UPDATE_COUNTERS,
                hidden=-records if kind == RecordType.MESSAGE else 0,
                pins=records if kind == RecordType.PIN else 0,
                summaries=records if kind == RecordType.SUMMARY else 0,
                importance=importance if kind == RecordType.MESSAGE else 0.0,
                session_key=row["session_key"],
            )


def _index_entry(row: StoredRow | None, indexed: IndexedText | None) -> IndexEntry | None:
    """The entry of a row, whose text is read here unless the caller has done it."""
    if row is None:
        return None
    return index_entry(row["key"], row["agent_key"], indexed or index_text(row["text"], row["name"]))
