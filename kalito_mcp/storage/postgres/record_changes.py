"""Changes whole records, and with them the text index, the counters and the causes that other records name."""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from kalito_mcp.domain.memory_records import EditDraft, MemoryRecord, RecordDraft, changed_fields
from kalito_mcp.domain.records import Reach, RecordType
from kalito_mcp.domain.scope import DEFAULT_AGENT, PERSONAL, Scope
from kalito_mcp.errors import RecordNotFound, RevisionConflict
from kalito_mcp.ports.records import IndexedPair
from kalito_mcp.runtime.long_texts import read_aside
from kalito_mcp.storage import record_rows as rows
from kalito_mcp.storage.numbered import key_of, message_key, owner_of
from kalito_mcp.storage.postgres.forgotten_values import ForgottenValues
from kalito_mcp.storage.postgres.projects import ProjectStatements
from kalito_mcp.storage.postgres.queries import places_of, within
from kalito_mcp.storage.postgres.record_statements import (
    INSERT_EDIT,
    SELECT_OWNERSHIP,
    STORED_COLUMNS,
    UPDATE_AGENT_COUNT,
    UPDATE_RECORD,
    attribute,
    inserted_edit,
    stored_once,
)
from kalito_mcp.storage.postgres.records import SELECT_RECORDS_OF_KEYS, RecordQueries
from kalito_mcp.storage.postgres.session_changes import INSERT_AGENT, INSERT_PROJECT, PROJECT_KEY
from kalito_mcp.storage.postgres.superseded import supersede
from kalito_mcp.storage.postgres.text_index import TextIndexStatements
from kalito_mcp.storage.postgres.tombstones import Tombstones
from kalito_mcp.storage.record_rows import StoredRow
from kalito_mcp.storage.row_hash import hash_of_record
from kalito_mcp.storage.stored_changes import erased_stub, importance_of
from kalito_mcp.storage.superseded import named_in
from kalito_mcp.text.analysis import IndexedText, index_text

_KEYS: Final = "ARRAY(SELECT nextval('record_keys') FROM generate_series(1, :count::integer))"
SELECT_PLACE_OF_SESSION: Final = f"""
SELECT s.agent_key, s.key, s.project_key, {_KEYS}
FROM sessions s JOIN agents a ON a.owner_key = :owner AND a.key = s.agent_key
WHERE s.owner_key = :owner AND s.id = :session AND (:agent IS NULL OR a.id = :agent) AND {within("s")}
"""
SELECT_PLACE_OF_AGENT: Final = f"""
SELECT (SELECT key FROM agents WHERE owner_key = :owner AND id = :agent), NULL::bigint, {PROJECT_KEY}, {_KEYS}
"""
SELECT_KEY: Final = """
SELECT key FROM records WHERE owner_key = :owner AND (id = :id OR (key = :number AND type = 'message'))
"""
SELECT_PROJECT_KEY: Final = f"SELECT {PROJECT_KEY}"
SELECT_STORED: Final = f"SELECT {STORED_COLUMNS} FROM records r WHERE r.owner_key = :owner AND r.key = :key"
SELECT_EFFECTS: Final = f"SELECT {STORED_COLUMNS} FROM records r WHERE r.owner_key = :owner AND r.caused_by = :key"
UPDATE_COUNTERS: Final = """
UPDATE sessions SET
    hidden_count = hidden_count + :hidden, pin_count = pin_count + :pins, summary_count = summary_count + :summaries,
    importance_sum = importance_sum + :importance, revision = revision + 1
WHERE owner_key = :owner AND key = :session_key
"""
# Only if no other message of the session named the same model.
UPDATE_MODEL: Final = f"""
UPDATE sessions SET model = (
    SELECT {attribute("r", "model_id")} FROM records r
    WHERE r.owner_key = :owner AND r.session_key = :session_key AND r.type = 'message'
        AND {attribute("r", "model_id")} IS NOT NULL
    ORDER BY r.seq DESC LIMIT 1
) WHERE owner_key = :owner AND key = :session_key AND model = :model
"""
# Once for the call, and once for each record that is counted.
UPDATE_WRITTEN: Final = """
UPDATE sessions SET updated_at = greatest(updated_at, :now_ms), revision = revision + 1 + :records
WHERE owner_key = :owner AND key = :session_key
"""
UPSERT_USAGE: Final = """
INSERT INTO record_usage (owner_key, record_key, usage_count, last_used)
SELECT :owner, used.key, listed.count, :used_at
FROM unnest(:ids, :numbers, :counts::bigint[]) AS listed (id, number, count) CROSS JOIN LATERAL (
    SELECT key FROM records WHERE owner_key = :owner AND key = listed.number AND purged_at IS NULL
    UNION ALL
    SELECT key FROM records
    WHERE owner_key = :owner AND id = listed.id AND listed.number IS NULL AND purged_at IS NULL
) used
ON CONFLICT (owner_key, record_key) DO UPDATE SET
    usage_count = record_usage.usage_count + excluded.usage_count,
    last_used = greatest(record_usage.last_used, excluded.last_used)
"""
DELETE_EDITS: Final = "DELETE FROM memory_edits WHERE owner_key = :owner AND record_key = :key"
DELETE_OF_RECORD: Final = """
WITH edits AS (
    DELETE FROM memory_edits WHERE owner_key = :owner AND record_key = :key
), usage AS (
    DELETE FROM record_usage WHERE owner_key = :owner AND record_key = :key
)
DELETE FROM feedback WHERE owner_key = :owner AND record_key = :key
"""
DELETE_RECORD: Final = "DELETE FROM records WHERE owner_key = :owner AND key = :key"

# A row that decayed does not say which terms the index has for it. All lists of the agent are read.
DELETE_DECAYED_ENTRY: Final = """
WITH fresh AS (
    DELETE FROM fresh_terms WHERE owner_key = :owner AND agent_key = :agent_key AND record_key = :key
), shape AS (
    DELETE FROM record_shapes WHERE owner_key = :owner AND record_key = :key
)
UPDATE term_lists SET offsets = array_remove(offsets, (:key - first)::integer)
WHERE owner_key = :owner AND agent_key = :agent_key AND :key - first = ANY(offsets)
"""


class RecordStatements(RecordQueries):
    """`ports.records.RecordWriter`."""

    async def add_records(self, scope: Scope, drafts: Sequence[RecordDraft], *, now_ms: int) -> Sequence[MemoryRecord]:
        if not drafts:
            return []
        owner = scope.owner
        where, taken = await self._place(scope, len(drafts))
        keys = {draft.id: key for draft, key in zip(drafts, taken, strict=True)}
        new: list[StoredRow] = []
        for draft in drafts:
            cause = draft.content.get("caused_by")
            caused_by = None if cause is None else keys.get(cause) or await self._key(owner, cause)
            new.append(rows.new_row(keys[draft.id], where, draft, caused_by=caused_by, now_ms=now_ms))
        stored = list(map(rows.insert_parameters, new))
        await TextIndexStatements(self._transaction).insert(owner, stored, [await _indexed(row) for row in new])
        for row in new:
            if named := named_in(row["attributes"]):
                await supersede(self._transaction, owner, row["key"], named)
        await self._all(UPDATE_AGENT_COUNT, owner=owner, records=len(new), agent_key=where.agent_key)
        if where.session_key is not None:
            written = {"now_ms": now_ms, "records": len(new)}
            await self._all(UPDATE_WRITTEN, owner=owner, session_key=where.session_key, **written)
        return await self._records(SELECT_RECORDS_OF_KEYS, owner=owner, keys=taken)

    async def change(
        self, record: MemoryRecord, edit: EditDraft, *, indexed: IndexedPair | None = None
    ) -> MemoryRecord:
        owner, before = owner_of(record), await self._stored(record)
        cause = edit.content.get("caused_by")
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
            await self._all(UPDATE_RECORD, owner=owner, **after)
        changes = changed_fields(rows.content_of(before), rows.content_of(after))
        row = rows.edit_row(key_of(record), version, edit.type, edit.editor, edit.edited_at, changes)
        await self._all(INSERT_EDIT, owner=owner, **inserted_edit(row))
        await self._update_derived(owner, before, after, indexed)
        return await self._reread(record)

    async def rename_project(self, owner: str, old: str, new: str) -> None:
        with stored_once():
            await ProjectStatements(self._transaction).rename_project(owner, old, new)

    async def drop_history(self, record: MemoryRecord) -> MemoryRecord:
        await self._stored(record)
        await self._all(DELETE_EDITS, owner=owner_of(record), key=key_of(record))
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
        owner, key = owner_of(record), key_of(record)
        before = await self._stored(record, is_revision_checked=False)
        tombstones = Tombstones(self._transaction)
        await tombstones.add(before, texts, owner=owner, now_ms=now_ms)
        await tombstones.owe_sweep(text_keys)
        effects = map(rows.stored, await self._all(SELECT_EFFECTS, owner=owner, key=key))
        await self._many(UPDATE_RECORD, [rows.hashed({**one, "caused_by": None}) for one in effects], owner=owner)
        if record.type in (RecordType.MESSAGE, RecordType.SUMMARY):
            await self._all(DELETE_OF_RECORD, owner=owner, key=key)
            stub = erased_stub(before, now_ms)
            await self._all(UPDATE_RECORD, owner=owner, **stub)
            await self._update_derived(owner, before, stub, (indexed, None))
            model = rows.content_of(before).get("model_id")
            if record.type is RecordType.MESSAGE and model is not None:
                await self._all(UPDATE_MODEL, owner=owner, session_key=before["session_key"], model=model)
        else:
            await self._all(DELETE_RECORD, owner=owner, key=key)
            await self._update_derived(owner, before, None, (indexed, None))

    async def forget_values(self, scope: Scope, keys: Collection[str], *, now_ms: int, is_erased: bool = False) -> None:
        await ForgottenValues(self._transaction).add(scope, keys, now_ms=now_ms, is_erased=is_erased)

    async def bring_back_values(self, scope: Scope, keys: Collection[str]) -> None:
        await ForgottenValues(self._transaction).remove(scope, keys)

    async def count_uses(self, owner: str, uses: Mapping[str, int], *, used_at: int) -> None:
        if uses:
            numbers, counts = [message_key(one) for one in uses], list(uses.values())
            await self._all(UPSERT_USAGE, owner=owner, ids=list(uses), numbers=numbers, counts=counts, used_at=used_at)

    async def _place(self, scope: Scope, count: int) -> tuple[rows.Place, list[int]]:
        """The keys of the scope's session, agent and project, and of as many new records. Creates the agent and the
        project if they are new."""
        names = {**places_of(scope), "count": count}
        if scope.session is not None:
            [[*place, keys]] = await self._all(SELECT_PLACE_OF_SESSION, **names)
            return rows.Place(*place), keys
        names["agent"] = scope.agent or DEFAULT_AGENT
        has_project = scope.project not in (None, PERSONAL)
        [[*place, keys]] = await self._all(SELECT_PLACE_OF_AGENT, **names)
        if place[0] is None or (place[2] is None and has_project):
            await self._all(INSERT_AGENT, **names)
            if has_project:
                await self._all(INSERT_PROJECT, **names)
            [[*place, keys]] = await self._all(SELECT_PLACE_OF_AGENT, **names)
        return rows.Place(*place), keys

    async def _project_key(self, owner: str, project: str | None) -> int | None:
        """The key of a project, which is created if it is new; None without a project."""
        if project in (None, PERSONAL):
            return None
        await self._all(INSERT_PROJECT, owner=owner, project=project)
        [[key]] = await self._all(SELECT_PROJECT_KEY, owner=owner, project=project)
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
            [[_, project_key]] = await self._all(SELECT_OWNERSHIP, owner=owner, session_key=before["session_key"])
        return project_key

    async def _key(self, owner: str, record_id: str) -> int:
        """The key of the owner's record of this id."""
        [[key]] = await self._all(SELECT_KEY, owner=owner, id=record_id, number=message_key(record_id))
        return int(key)

    async def _stored(self, record: MemoryRecord, *, is_revision_checked: bool = True) -> StoredRow:
        owner, key = owner_of(record), key_of(record)
        found = [rows.stored(row) for row in (await self._all(SELECT_STORED, owner=owner, key=key) if owner else ())]
        if not found or found[0]["purged_at"] is not None:
            raise RecordNotFound(f"{record.id} was erased; nothing was written")
        if is_revision_checked and found[0]["revision"] != record.revision:
            raise RevisionConflict(record.id, record.revision, found[0]["revision"])
        return found[0]

    async def _reread(self, record: MemoryRecord) -> MemoryRecord:
        [found] = await self._records(SELECT_RECORDS_OF_KEYS, owner=owner_of(record), keys=[key_of(record)])
        return found

    async def _update_derived(
        self, owner: str, before: StoredRow, after: StoredRow | None, indexed: IndexedPair | None = None
    ) -> None:
        """Update the text index, the counters and what is superseded for a row that has changed. Forgotten records are
        neither indexed nor counted."""
        shown_before = before if before["deleted_at"] is None else None
        shown_after = after if after is not None and after["deleted_at"] is None else None
        await self._update_index(owner, before, shown_before, shown_after, indexed or (None, None))
        named = named_in(None if after is None else after["attributes"])
        if named != named_in(before["attributes"]):
            await supersede(self._transaction, owner, before["key"], named)
        records = (shown_after is not None) - (shown_before is not None)
        importance = importance_of(shown_after) - importance_of(shown_before)
        if records:
            await self._all(UPDATE_AGENT_COUNT, owner=owner, records=records, agent_key=before["agent_key"])
        if before["session_key"] is not None and (records or importance):
            kind = before["type"]
            await self._all(
                UPDATE_COUNTERS,
                owner=owner,
                hidden=-records if kind == RecordType.MESSAGE else 0,
                pins=records if kind == RecordType.PIN else 0,
                summaries=records if kind == RecordType.SUMMARY else 0,
                importance=importance if kind == RecordType.MESSAGE else 0.0,
                session_key=before["session_key"],
            )

    async def _update_index(
        self,
        owner: str,
        before: StoredRow,
        shown_before: StoredRow | None,
        shown_after: StoredRow | None,
        indexed: IndexedPair,
    ) -> None:
        """Update the text index for the row `before`, which was and will be shown like this."""
        old = None if shown_before is None else indexed[0] or await _indexed(shown_before)
        new = None if shown_after is None else indexed[1] or await _indexed(shown_after)
        if old == new:
            return
        index = TextIndexStatements(self._transaction)
        if before["hash"] != hash_of_record(before):
            await self._all(DELETE_DECAYED_ENTRY, owner=owner, agent_key=before["agent_key"], key=before["key"])
        elif old is not None:
            await index.remove(owner, before["agent_key"], [(before["key"], old)])
        if new is not None:
            await index.add(owner, before["agent_key"], [(before["key"], new)])


async def _indexed(row: StoredRow) -> IndexedText:
    """The terms of a row, whose text is read here."""
    text, name = row["text"], row["name"]
    return await read_aside(len(text), lambda: index_text(text, name))
