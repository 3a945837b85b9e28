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
from kalito_mcp.storage.forgotten_values import ForgottenValues
from kalito_mcp.storage.numbered import key_of, message_key, owner_of
from kalito_mcp.storage.queries import places_of
from kalito_mcp.storage.record_fields import packed
from kalito_mcp.storage.record_rows import StoredRow
from kalito_mcp.storage.records import RecordQueries
from kalito_mcp.storage.row_hash import hash_of_record
from kalito_mcp.storage.superseded import named_in
from kalito_mcp.storage.tombstones import Tombstones
from kalito_mcp.text.analysis import IndexedText, index_text

_SUMMARY_PLACE: Final = ("start_message_id", "end_message_id", "started_at", "ended_at", "method")


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
        stored, indexed = list(map(rows.insert_parameters, new)), [await _indexed(row) for row in new]
        await self._sql.text_index.TextIndexStatements(self._transaction).insert(owner, stored, indexed)
        for row in new:
            if named := named_in(row["attributes"]):
                await self._sql.superseded.supersede(self._transaction, owner, row["key"], named)
        counted = {"owner": owner, "records": len(new)}
        await self._all(self._sql.record_statements.UPDATE_AGENT_COUNT, agent_key=where.agent_key, **counted)
        if where.session_key is not None:
            written = {"session_key": where.session_key, "now_ms": now_ms}
            await self._all(self._sql.record_changes.UPDATE_WRITTEN, **written, **counted)
        return await self._records(self._sql.records.SELECT_RECORDS_OF_KEYS, owner=owner, keys=list(taken))

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
        with self._transaction.stored_once():
            await self._all(self._sql.record_statements.UPDATE_RECORD, owner=owner, **after)
        changes = changed_fields(rows.content_of(before), rows.content_of(after))
        row = rows.edit_row(key_of(record), version, edit.type, edit.editor, edit.edited_at, changes)
        await self._all(self._sql.record_statements.INSERT_EDIT, owner=owner, **row)
        await self._update_derived(owner, before, after, indexed)
        return await self._reread(record)

    async def rename_project(self, owner: str, old: str, new: str) -> None:
        with self._transaction.stored_once():
            found = await self._all(self._sql.projects.SELECT_PROJECT_KEYS, owner=owner, ids=[old, new])
            keys = {str(row[0]): int(row[1]) for row in found}
            await self._all(self._sql.projects.UPDATE_GIVEN_OF_PROJECT, owner=owner, old=old, new=new)
            if new in keys:
                await self._merge_projects(owner, old_key=keys[old], new_key=keys[new])
            else:
                await self._all(self._sql.projects.UPDATE_PROJECT_ID, owner=owner, key=keys[old], new=new)

    async def drop_history(self, record: MemoryRecord) -> MemoryRecord:
        await self._stored(record)
        await self._all(self._sql.record_changes.DELETE_EDITS, owner=owner_of(record), key=key_of(record))
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
        effects = map(rows.stored, await self._all(self._sql.record_changes.SELECT_EFFECTS, owner=owner, key=key))
        without_cause = [rows.hashed({**one, "caused_by": None}) for one in effects]
        await self._many(self._sql.record_statements.UPDATE_RECORD, without_cause, owner=owner)
        if record.type in (RecordType.MESSAGE, RecordType.SUMMARY):
            for statement in self._sql.record_changes.DELETES_OF_RECORD:
                await self._all(statement, owner=owner, key=key)
            stub = _erased_stub(before, now_ms)
            await self._all(self._sql.record_statements.UPDATE_RECORD, owner=owner, **stub)
            await self._update_derived(owner, before, stub, (indexed, None))
            model = rows.content_of(before).get("model_id")
            if record.type is RecordType.MESSAGE and model is not None:
                await self._all(
                    self._sql.record_changes.UPDATE_MODEL, owner=owner, session_key=before["session_key"], model=model
                )
        else:
            await self._all(self._sql.record_changes.DELETE_RECORD, owner=owner, key=key)
            await self._update_derived(owner, before, None, (indexed, None))

    async def forget_values(self, scope: Scope, keys: Collection[str], *, now_ms: int, is_erased: bool = False) -> None:
        await ForgottenValues(self._transaction).add(scope, keys, now_ms=now_ms, is_erased=is_erased)
        self._has_forgotten.clear()

    async def bring_back_values(self, scope: Scope, keys: Collection[str]) -> None:
        await ForgottenValues(self._transaction).remove(scope, keys)
        self._has_forgotten.clear()

    async def count_uses(self, owner: str, uses: Mapping[str, int], *, used_at: int) -> None:
        if uses:
            used = {"ids": list(uses), "numbers": list(map(message_key, uses)), "counts": list(uses.values())}
            await self._all(self._sql.record_changes.UPSERT_USAGE, owner=owner, used_at=used_at, **used)

    async def _merge_projects(self, owner: str, *, old_key: int, new_key: int) -> None:
        """Give all that is of the project `old_key` to `new_key`."""
        merged = {"owner": owner, "old_key": old_key, "new_key": new_key}
        for statement in (
            self._sql.projects.UPDATE_SESSIONS_OF_PROJECT,
            self._sql.projects.UPDATE_SESSION_RECORDS_OF_PROJECT,
            self._sql.projects.DELETE_FORGOTTEN_OF_BOTH,
            self._sql.projects.UPDATE_FORGOTTEN_OF_PROJECT,
        ):
            await self._all(statement, **merged)
        found = await self._all(self._sql.projects.SELECT_OWN_RECORDS_OF_PROJECT, owner=owner, old_key=old_key)
        own = [rows.hashed({**rows.stored(row), "project_key": new_key}) for row in found]
        await self._many(self._sql.record_statements.UPDATE_RECORD, own, owner=owner)
        await self._all(self._sql.projects.DELETE_PROJECT, owner=owner, old_key=old_key)

    async def _place(self, scope: Scope, count: int) -> tuple[rows.Place, Sequence[int]]:
        """The keys of the scope's session, agent and project, and of as many new records. Creates the agent and the
        project if they are new."""
        names = {**places_of(scope), "count": count}
        if scope.session is not None:
            [[*place, keys]] = await self._all(self._sql.record_changes.SELECT_PLACE_OF_SESSION, **names)
            return rows.Place(*place), self._sql.record_statements.new_keys(keys, count)
        names["agent"] = scope.agent or DEFAULT_AGENT
        has_project = scope.project not in (None, PERSONAL)
        [[*place, keys]] = await self._all(self._sql.record_changes.SELECT_PLACE_OF_AGENT, **names)
        if place[0] is None or (place[2] is None and has_project):
            await self._all(self._sql.session_changes.INSERT_AGENT, **names)
            if has_project:
                await self._all(self._sql.session_changes.INSERT_PROJECT, **names)
            [[*place, keys]] = await self._all(self._sql.record_changes.SELECT_PLACE_OF_AGENT, **names)
        return rows.Place(*place), self._sql.record_statements.new_keys(keys, count)

    async def _project_key(self, owner: str, project: str | None) -> int | None:
        """The key of a project, which is created if it is new; None without a project."""
        if project in (None, PERSONAL):
            return None
        await self._all(self._sql.session_changes.INSERT_PROJECT, owner=owner, project=project)
        [[key]] = await self._all(self._sql.record_changes.SELECT_PROJECT_KEY, owner=owner, project=project)
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
            [[_, project_key]] = await self._all(
                self._sql.record_statements.SELECT_OWNERSHIP, owner=owner, session_key=before["session_key"]
            )
        return project_key

    async def _key(self, owner: str, record_id: str) -> int:
        """The key of the owner's record of this id."""
        [[key]] = await self._all(
            self._sql.record_changes.SELECT_KEY, owner=owner, id=record_id, number=message_key(record_id)
        )
        return int(key)

    async def _stored(self, record: MemoryRecord, *, is_revision_checked: bool = True) -> StoredRow:
        owner, key = owner_of(record), key_of(record)
        sql = self._sql.record_changes
        found = list(map(rows.stored, await self._all(sql.SELECT_STORED, owner=owner, key=key) if owner else ()))
        if not found or found[0]["purged_at"] is not None:
            raise RecordNotFound(f"{record.id} was erased; nothing was written")
        if is_revision_checked and found[0]["revision"] != record.revision:
            raise RevisionConflict(record.id, record.revision, found[0]["revision"])
        return found[0]

    async def _reread(self, record: MemoryRecord) -> MemoryRecord:
        [found] = await self._records(
            self._sql.records.SELECT_RECORDS_OF_KEYS, owner=owner_of(record), keys=[key_of(record)]
        )
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
            await self._sql.superseded.supersede(self._transaction, owner, before["key"], named)
        records = (shown_after is not None) - (shown_before is not None)
        importance = _importance_of(shown_after) - _importance_of(shown_before)
        if records:
            counted = {"records": records, "agent_key": before["agent_key"]}
            await self._all(self._sql.record_statements.UPDATE_AGENT_COUNT, owner=owner, **counted)
        if before["session_key"] is not None and (records or importance):
            kind = before["type"]
            await self._all(
                self._sql.record_changes.UPDATE_COUNTERS,
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
        index = self._sql.text_index.TextIndexStatements(self._transaction)
        agent_key, key = before["agent_key"], before["key"]
        if before["hash"] != hash_of_record(before):
            await index.replace_decayed(owner, agent_key, key, new)
            return
        if old is not None:
            await index.remove(owner, agent_key, [(key, old)])
        if new is not None:
            await index.add(owner, agent_key, [(key, new)])


async def _indexed(row: StoredRow) -> IndexedText:
    """The terms of a row, whose text is read here."""
    text, name = row["text"], row["name"]
    return await read_aside(len(text), lambda: index_text(text, name))


def _importance_of(row: StoredRow | None) -> float:
    """What a row adds to the sum of importances. Nothing without a row."""
    return 0.0 if row is None else float(row["importance"])


def _erased_stub(row: StoredRow, now_ms: int) -> StoredRow:
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
