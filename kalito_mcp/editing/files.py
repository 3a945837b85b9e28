"""Writes, deletes and renames files of the memory. Each file is one document, and each change an edit in its history.

A change is a function of the stored files. It runs within the transaction that writes its result, so two programs that
change one file at once lose nothing. It also runs before, so that long texts are read outside.

Deleting a file hides its record. Unlike forgetting, it notes no words: they may be written again, in another file.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from kalito_mcp.domain.files import MAX_PATH_CHARS, FileTree, source_of
from kalito_mcp.domain.memory_records import (
    DELETED_AT,
    EditDraft,
    Editor,
    EditorType,
    EditType,
    MemoryRecord,
    RecordDraft,
    with_changes,
)
from kalito_mcp.domain.records import Origin, RecordType
from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.validation import LimitsPolicy, checked_text
from kalito_mcp.editing.forgotten_notes import ForgottenNotes
from kalito_mcp.editing.plans import PlannedChange, planned_change
from kalito_mcp.editing.writing import add_new_records
from kalito_mcp.errors import InvalidInput
from kalito_mcp.ports.clock import Clock, IdSource
from kalito_mcp.ports.records import RecordReader, RecordWriter
from kalito_mcp.ports.store import ReadView, Store, WriteTransaction
from kalito_mcp.ports.tokens import TokenCounter
from kalito_mcp.records.repetitions import repetition_refused
from kalito_mcp.records.schemas import checked_content
from kalito_mcp.runtime.long_texts import read_aside
from kalito_mcp.safety.escaping import as_data
from kalito_mcp.safety.redaction import cleaned

Write = Callable[[FileTree, str | None], str]
"""From all files and the current text of the file to write (None if it is new), its new text. If it raises, nothing is
written."""


@dataclass(frozen=True, slots=True)
class _Text:
    """A text as it may be stored. `given` is what it was before secrets were removed."""

    given: str
    kept: str
    redacted: tuple[str, ...]
    tokens: int


class FileEditor:
    """Changes the files of one project, or the personal ones."""

    def __init__(
        self, store: Store, counter: TokenCounter, clock: Clock, ids: IdSource, *, limits: LimitsPolicy
    ) -> None:
        self._store = store
        self._counter = counter
        self._clock = clock
        self._ids = ids
        self._limits = limits
        self._forgotten = ForgottenNotes(store, clock)

    async def look(self, scope: Scope, path: str) -> tuple[FileTree, MemoryRecord | None]:
        """All files, and the one at this path."""

        async def both(view: ReadView) -> tuple[FileTree, MemoryRecord | None]:
            return await _tree(view.records, scope), await _file(view.records, scope, path)

        return await self._store.read(both)

    async def write(self, scope: Scope, path: str, write: Write, *, editor: Editor) -> MemoryRecord:
        """Give the file at this path the text that `write` returns; a new one is created.

        Raises:
            InvalidInput: the text is blank. TextTooLarge: it is too long.
            Conflict: it repeats what was forgotten or erased.
        """
        tree, seen = await self.look(scope, path)
        text = await self._read(write(tree, None if seen is None else seen.text))
        plan = None if seen is None else await _plan(seen, text)

        async def change(transaction: WriteTransaction) -> MemoryRecord:
            records = transaction.records
            before = await _file(records, scope, path)
            given = write(await _tree(records, scope), None if before is None else before.text)
            now = text if given == text.given else await self._read(given)
            if before is None:
                written = await self._add(records, scope, path, now, editor)
            else:
                # Overtaken, it plans here: many programs may write one file, and each must come to an end.
                if plan is None or now is not text or plan.version_id != before.version_id:
                    fits = await _plan(before, now)
                else:
                    fits = plan
                written = await self._change(records, scope, before, now, editor, fits)
            return replace(written, redacted=now.redacted)

        return await self._store.write(change)

    async def delete(
        self, scope: Scope, select: Callable[[FileTree], Collection[str]], *, editor: Editor
    ) -> list[MemoryRecord]:
        """Hide the files at these paths, all or none of them, until they are restored."""
        now_ms = self._clock.now_ms()

        async def hide(transaction: WriteTransaction) -> list[MemoryRecord]:
            records = transaction.records
            return [
                await self._edit(records, scope, path, {DELETED_AT: now_ms}, EditType.DELETE, editor)
                for path in select(await _tree(records, scope))
            ]

        return await self._store.write(hide)

    async def rename(
        self, scope: Scope, select: Callable[[FileTree], Mapping[str, str]], *, editor: Editor
    ) -> list[MemoryRecord]:
        """Give files other paths, all or none of them. `select` returns the new paths, which are free, by the old."""

        async def move(transaction: WriteTransaction) -> list[MemoryRecord]:
            records = transaction.records
            renamed: list[MemoryRecord] = []
            for old, new in select(await _tree(records, scope)).items():
                await self._vacate(records, scope, new, editor)
                place = {"source": source_of(new), "title": new}
                renamed.append(await self._edit(records, scope, old, place, EditType.UPDATE, editor))
            return renamed

        return await self._store.write(move)

    async def _read(self, given: str) -> _Text:
        checked_text(given, "the file's text", max_bytes=self._limits.max_text_bytes)
        return await read_aside(len(given), partial(self._text, given))

    def _text(self, given: str) -> _Text:
        kept, redacted = cleaned(given)
        if not kept.strip():
            raise InvalidInput("the file's text is blank; write some words, or delete the file")
        return _Text(given, kept, redacted, self._counter.count(as_data(kept)))

    async def _add(self, records: RecordWriter, scope: Scope, path: str, text: _Text, editor: Editor) -> MemoryRecord:
        now_ms = self._clock.now_ms()
        record_id = self._ids.record_id(str(RecordType.DOCUMENT), now_ms)
        content = checked_content(
            RecordType.DOCUMENT, {"text": text.kept, "source": source_of(path), "title": path}, now_ms=now_ms
        )
        draft = RecordDraft(
            id=record_id,
            type=RecordType.DOCUMENT,
            content={**content, "document_id": record_id, "chunk_index": 0, "total_chunks": 1},
            origin=Origin.USER if editor.type is EditorType.HUMAN else Origin.ASSISTANT,
            client=cleaned(editor.id)[0] if editor.type is EditorType.AGENT else None,
            created_at=now_ms,
            tokens=text.tokens,
        )
        if await self._forgotten.repeated(records, scope, [draft], {}):
            raise repetition_refused()
        await self._vacate(records, scope, path, editor)
        [added] = await add_new_records(records, scope.landing(), [draft], now_ms=now_ms)
        return added

    async def _change(
        self,
        records: RecordWriter,
        scope: Scope,
        before: MemoryRecord,
        text: _Text,
        editor: Editor,
        plan: PlannedChange,
    ) -> MemoryRecord:
        if text.kept == before.text:
            return before
        edit = self._draft(with_changes(before.content, {"text": text.kept}), text.tokens, EditType.UPDATE, editor)
        await self._forgotten.follow(records, scope, before, edit, plan.keys)
        return await records.change(before, edit, indexed=plan.indexed)

    async def _vacate(self, records: RecordWriter, scope: Scope, path: str, editor: Editor) -> None:
        """Give a deleted file that has this path another one, under which it can be restored."""
        for hidden in await records.document(scope, source_of(path)):
            aside = f"{path[: MAX_PATH_CHARS - len(hidden.id) - 1]}.{hidden.id}"
            content = with_changes(hidden.content, {"source": source_of(aside), "title": aside})
            await records.change(hidden, self._draft(content, self._tokens(hidden), EditType.UPDATE, editor))

    async def _edit(
        self,
        records: RecordWriter,
        scope: Scope,
        path: str,
        changes: Mapping[str, Any],
        edit_type: EditType,
        editor: Editor,
    ) -> MemoryRecord:
        record = await _file(records, scope, path)
        assert record is not None  # noqa: S101 - the path is one of the tree of this transaction
        content = with_changes(record.content, changes)
        return await records.change(record, self._draft(content, self._tokens(record), edit_type, editor))

    def _tokens(self, record: MemoryRecord) -> int:
        return self._counter.count(as_data(record.text))

    def _draft(self, content: Mapping[str, Any], tokens: int, edit_type: EditType, editor: Editor) -> EditDraft:
        return EditDraft(
            type=edit_type,
            editor=cleaned(editor)[0],
            edited_at=self._clock.now_ms(),
            content=content,
            tokens=tokens,
        )


async def _plan(file: MemoryRecord, text: _Text) -> PlannedChange:
    content = with_changes(file.content, {"text": text.kept})
    return await read_aside(len(file.text) + len(text.kept), partial(planned_change, file, content))


async def _tree(records: RecordReader, scope: Scope) -> FileTree:
    start = source_of("")
    return FileTree({one.removeprefix(start): size for one, size in await records.sources(scope, source_of("/"))})


async def _file(records: RecordReader, scope: Scope, path: str) -> MemoryRecord | None:
    return next((one for one in await records.document(scope, source_of(path)) if not one.is_deleted), None)
