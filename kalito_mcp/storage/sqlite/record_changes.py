"""Changes whole records, and with them the text index, the counters and the causes that other records name."""

import json
import sqlite3
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from kalito_mcp.domain.memory_records import (
    EditDraft,
    EditType,
    MemoryRecord,
    RecordDraft,
    changed_fields,
    scope_of,
)
from kalito_mcp.domain.records import Reach, RecordType
from kalito_mcp.domain.request_keys import chosen_part
from kalito_mcp.domain.scope import DEFAULT_AGENT, NO_PROJECT, PERSONAL, Scope
from kalito_mcp.errors import ClientKeyReused, Conflict, InvalidInput, RecordNotFound, RevisionConflict
from kalito_mcp.runtime.long_texts import Readings
from kalito_mcp.storage.sqlite import record_rows as rows
from kalito_mcp.storage.sqlite.conversation_rows import INSERT_RECORD, packed
from kalito_mcp.storage.sqlite.conversations import SELECT_NEXT_KEY, SELECT_OWNERSHIP, UPDATE_AGENT_COUNT
from kalito_mcp.storage.sqlite.forgotten_values import ForgottenValues
from kalito_mcp.storage.sqlite.numbered import key_of
from kalito_mcp.storage.sqlite.projects import rename_project
from kalito_mcp.storage.sqlite.record_rows import INSERT_EDIT, STORED_COLUMNS, UPDATE_RECORD, StoredRow
from kalito_mcp.storage.sqlite.records import SELECT_RECORDS_OF_KEYS, RecordQueries, message_key
from kalito_mcp.storage.sqlite.request_keys import RequestKeys
from kalito_mcp.storage.sqlite.row_hash import hash_of_record
from kalito_mcp.storage.sqlite.session_changes import INSERT_AGENT, INSERT_PROJECT, PROJECT_KEY, SessionStatements
from kalito_mcp.storage.sqlite.superseded import named_in, supersede
from kalito_mcp.storage.sqlite.text_index import IndexEntry, TextIndexStatements, index_entry
from kalito_mcp.storage.sqlite.tombstones import Tombstones
from kalito_mcp.text.analysis import index_text
from kalito_mcp.text.repetition import keys_to_forget

SELECT_OWNER: Final = "SELECT owner FROM agents WHERE key = :agent_key"
SELECT_STORED: Final = f"SELECT {STORED_COLUMNS} FROM records r WHERE r.key = :key"
SELECT_EFFECTS: Final = f"SELECT {STORED_COLUMNS} FROM records r WHERE r.caused_by = :key"
SELECT_CAUSED_BY_ITSELF: Final = """
WITH RECURSIVE causes(key) AS (
    SELECT :cause
    UNION SELECT r.caused_by FROM causes JOIN records r ON r.key = causes.key WHERE r.caused_by IS NOT NULL
)
SELECT 1 FROM causes WHERE key = :key
"""
SELECT_OF_CLIENT_KEY: Final = """
SELECT key, text FROM records WHERE session_key = :session_key AND type = :type AND client_key = :client_key
UNION ALL
SELECT key, text FROM records
WHERE :session_key IS NULL AND session_key IS NULL AND agent_key = :agent_key AND type = :type
    AND client_key = :client_key
"""
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
UPSERT_USAGE: Final = """
INSERT INTO record_usage (record_key, usage_count, last_used)
SELECT key, :count, :used_at FROM records
WHERE key = coalesce(:number, (SELECT key FROM records WHERE id = :id)) AND purged_at IS NULL
ON CONFLICT (record_key) DO UPDATE SET
    usage_count = usage_count + excluded.usage_count, last_used = max(last_used, excluded.last_used)
"""
DELETE_EDITS: Final = "DELETE FROM memory_edits WHERE record_key = :key"
DELETE_USAGE: Final = "DELETE FROM record_usage WHERE record_key = :key"
DELETE_FEEDBACK: Final = "DELETE FROM feedback WHERE record_key = :key"
DELETE_RECORD: Final = "DELETE FROM records WHERE key = :key"

_SUMMARY_PLACE: Final = ("start_message_id", "end_message_id", "started_at", "ended_at", "method")


class RecordStatements(RecordQueries):
    """`ports.records.RecordWriter`."""

    async def add_records(self, scope: Scope, drafts: Sequence[RecordDraft], *, now_ms: int) -> Sequence[MemoryRecord]:
        if not drafts:
            return []
        where = await self._place(scope, now_ms)
        for kind in {draft.type for draft in drafts}:
            texts = [str(draft.content["text"]) for draft in drafts if draft.type is kind]
            await Tombstones(self._connection).refuse(scope, kind, texts)
        [[next_key]] = await self._all(SELECT_NEXT_KEY)
        keys: list[int] = []
        named: dict[str, int] = {}
        new: list[StoredRow] = []
        for draft in drafts:
            key = await self._known(where, draft)
            if key is None:
                key, next_key = next_key, next_key + 1
                cause = draft.content.get("caused_by")
                caused_by = None if cause is None else named.get(cause) or await self._cause(scope, cause)
                new.append(rows.new_row(key, where, draft, caused_by=caused_by, now_ms=now_ms))
                named[draft.id] = key
                if draft.content.get("scope") == Reach.PROJECT and where.project_key is None:
                    raise InvalidInput(NO_PROJECT)
            keys.append(key)
        try:
            await self._connection.executemany(INSERT_RECORD, [rows.insert_parameters(row) for row in new])
        except sqlite3.IntegrityError as error:
            raise Conflict("this id, or this part of the source, is stored already; update that record") from error
        for row in new:
            await self._update_derived(None, row)
        if where.session_key is not None:
            await self._all(UPDATE_WRITTEN, now_ms=now_ms, session_key=where.session_key)
        found = await self._records(SELECT_RECORDS_OF_KEYS, keys=json.dumps(keys))
        by_key = {key_of(one): one for one in found}
        return [by_key[key] for key in keys]

    async def change(self, record: MemoryRecord, edit: EditDraft, *, readings: Readings | None = None) -> MemoryRecord:
        before = await self._stored(record)
        cause = edit.content.get("caused_by")
        caused_by = before["caused_by"] if cause == before["cause"] else None
        if cause is not None and caused_by is None:
            caused_by = await self._cause(Scope(await self._owner(before)), cause)
            if await self._all(SELECT_CAUSED_BY_ITSELF, cause=caused_by, key=key_of(record)):
                raise Conflict(f"{record.id} led to {cause}, so {cause} cannot be its cause; leave caused_by out")
        version = record.revision + 1
        after = rows.with_content(
            {**before, "revision": version},
            edit.content,
            caused_by=caused_by,
            project_key=await self._project_key_after(before, edit),
            tokens=edit.tokens,
        )
        await self._replace(after)
        changes = changed_fields(rows.content_of(before), rows.content_of(after))
        row = rows.edit_row(key_of(record), version, edit.type, edit.editor, edit.edited_at, changes)
        await self._connection.execute_fetchall(INSERT_EDIT, row)
        await self._update_derived(before, after, readings)
        return await self._reread(record)

    async def _replace(self, row: StoredRow) -> None:
        try:
            await self._all(UPDATE_RECORD, **row)
        except sqlite3.IntegrityError as error:
            raise Conflict(
                f"the project has a document of the source {row['source']!r} already; forget or move that one first"
            ) from error

    async def rename_project(self, owner: str, old: str, new: str) -> None:
        try:
            await rename_project(self._connection, owner, old, new)
        except sqlite3.IntegrityError as error:
            raise Conflict("both projects have a document of one source; forget or move one of them first") from error

    async def drop_history(self, record: MemoryRecord) -> MemoryRecord:
        await self._stored(record)
        await self._all(DELETE_EDITS, key=key_of(record))
        return await self._reread(record)

    async def purge(
        self, record: MemoryRecord, *, now_ms: int, text_keys: Sequence[str] = (), readings: Readings | None = None
    ) -> None:
        before = await self._stored(record, is_revision_checked=False)
        earlier = [edit.before["text"] for edit in await self.edits(record) if edit.before.get("text")]
        owner = await self._owner(before)
        texts = list(dict.fromkeys([before["text"], *earlier]))
        readings = readings or Readings()
        keys = frozenset[str]().union(*[await readings.of(keys_to_forget, text, record.type) for text in texts])
        await self.forget_values(scope_of(owner, record), keys, now_ms=now_ms, is_erased=True)
        tombstones = Tombstones(self._connection)
        # The forgotten value stops a pin from coming back, and the user can bring it back.
        kept = [record.id] if record.type is RecordType.PIN else texts
        await tombstones.add(before, kept, owner=owner, now_ms=now_ms)
        await tombstones.owe_sweep(text_keys)
        for effect in await self._all(SELECT_EFFECTS, key=key_of(record)):
            await self._all(UPDATE_RECORD, **rows.hashed({**rows.stored(effect), "caused_by": None}))
        if record.type in (RecordType.MESSAGE, RecordType.SUMMARY):
            await self._all(DELETE_EDITS, key=key_of(record))
            await self._all(DELETE_USAGE, key=key_of(record))
            await self._all(DELETE_FEEDBACK, key=key_of(record))
            stub = _stub(before, now_ms)
            await self._all(UPDATE_RECORD, **stub)
            await self._update_derived(before, stub, readings)
            model = rows.content_of(before).get("model_id")
            if record.type is RecordType.MESSAGE and model is not None:
                await self._all(UPDATE_MODEL, session_key=before["session_key"], model=model)
        else:
            await self._all(DELETE_RECORD, key=key_of(record))
            await self._update_derived(before, None, readings)

    async def forget_values(self, scope: Scope, keys: Collection[str], *, now_ms: int, is_erased: bool = False) -> None:
        await ForgottenValues(self._connection).add(scope, keys, now_ms=now_ms, is_erased=is_erased)

    async def bring_back_values(self, scope: Scope, keys: Collection[str]) -> None:
        await ForgottenValues(self._connection).remove(scope, keys)

    async def count_uses(self, uses: Mapping[str, int], *, used_at: int) -> None:
        await self._connection.executemany(
            UPSERT_USAGE,
            [
                {"number": message_key(record_id), "id": record_id, "count": count, "used_at": used_at}
                for record_id, count in uses.items()
            ],
        )

    async def _place(self, scope: Scope, now_ms: int) -> rows.Place:
        """The keys of the scope's agent, session and project. Creates them if they are new."""
        scope = scope.landing()
        if scope.session is not None:
            session = await SessionStatements(self._connection).ensure(scope, now_ms=now_ms)
            agent_key = await self._agent_key(Scope(scope.owner, session.agent))
            session_key: int | None = key_of(session)
            project = session.project
        else:
            agent = scope.agent or DEFAULT_AGENT
            await self._all(INSERT_AGENT, owner=scope.owner, agent=agent)
            agent_key, session_key = await self._agent_key(Scope(scope.owner, agent)), None
            project = scope.project
        assert agent_key is not None  # noqa: S101 - it was read or written in this transaction
        return rows.Place(agent_key, session_key, await self._project_key(scope.owner, project))

    async def _project_key(self, owner: str, project: str | None) -> int | None:
        """The key of a project, which is created if it is new; None without a project."""
        if project in (None, PERSONAL):
            return None
        await self._all(INSERT_PROJECT, owner=owner, project=project)
        [[key]] = await self._all(f"SELECT {PROJECT_KEY}", owner=owner, project=project)
        return int(key)

    async def _project_key_after(self, before: StoredRow, edit: EditDraft) -> int | None:
        """The key of the project that the record is of after the edit.

        Raises:
            InvalidInput: it should reach its whole project, and is of none.
        """
        content = edit.content
        project_key: int | None = before["project_key"]
        if content.get("scope") == Reach.PERSON:
            return None
        if before["session_key"] is None:
            if content.get("project") != before["project"]:
                project_key = await self._project_key(await self._owner(before), content.get("project"))
        elif content.get("scope") != before["reach"]:
            [[_, project_key]] = await self._all(SELECT_OWNERSHIP, session_key=before["session_key"])
        if content.get("scope") == Reach.PROJECT and project_key is None and edit.type is EditType.UPDATE:
            raise InvalidInput(NO_PROJECT)
        return project_key

    async def _known(self, where: rows.Place, draft: RecordDraft) -> int | None:
        """The key of the record that was written with the draft's client_key, or None."""
        if draft.client_key is None:
            return None
        await RequestKeys(self._connection).refuse_reused(
            [draft.client_key], draft.type, session_key=where.session_key, agent_key=where.agent_key
        )
        found = await self._all(
            SELECT_OF_CLIENT_KEY,
            agent_key=where.agent_key,
            session_key=where.session_key,
            type=str(draft.type),
            client_key=draft.client_key,
        )
        for key, text in found:
            if text != draft.content["text"] and chosen_part(draft.client_key) is None:
                raise ClientKeyReused(draft.client_key)
            return int(key)
        return None

    async def _cause(self, scope: Scope, record_id: str) -> int:
        cause = await self.record(scope.anywhere(), record_id)
        if cause is None:
            raise RecordNotFound(f"no record {record_id!r} for caused_by; send the id of a record")
        return key_of(cause)

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
        self, before: StoredRow | None, after: StoredRow | None, readings: Readings | None = None
    ) -> None:
        """Update the text index, the counters and what is superseded for a row that has changed. Forgotten records are
        neither indexed nor counted."""
        shown_before = before if before is not None and before["deleted_at"] is None else None
        shown_after = after if after is not None and after["deleted_at"] is None else None
        readings = readings or Readings()
        old, new = await _index_entry(shown_before, readings), await _index_entry(shown_after, readings)
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
            await supersede(self._connection, row["key"], before=earlier)
        records = (shown_after is not None) - (shown_before is not None)
        importance = _importance(shown_after) - _importance(shown_before)
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


async def _index_entry(row: StoredRow | None, readings: Readings) -> IndexEntry | None:
    """As `entry_of_row`."""
    if row is None:
        return None
    return index_entry(row["key"], row["agent_key"], await readings.of(index_text, row["text"], row["name"]))


def _importance(row: StoredRow | None) -> float:
    return 0.0 if row is None else float(row["importance"])


def _stub(row: StoredRow, now_ms: int) -> StoredRow:
    """The row that remains of an erased message or summary: its place, without text."""
    attributes = None
    if row["type"] == RecordType.SUMMARY:
        content = rows.content_of(row)
        attributes = packed({name: content[name] for name in _SUMMARY_PLACE})
    words = dict.fromkeys(("name", "client_key", "client", "tags", "caused_by"))
    deleted_at = now_ms if row["deleted_at"] is None else row["deleted_at"]
    return rows.hashed(
        {
            **row,
            **words,
            "text": "",
            "tokens": 0,
            "attributes": attributes,
            "revision": 1,
            "is_critical": 0,
            "deleted_at": deleted_at,
            "purged_at": now_ms,
        }
    )
