"""The verbs of `Memory` for whole records: create, read, edit, forget, restore and erase them."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from kalito_mcp.domain.digest import Digest, KeptDigest
from kalito_mcp.domain.erasing import ForgetPreview, ForgetRequest, PurgeReport
from kalito_mcp.domain.importance import clamp_importance
from kalito_mcp.domain.kinds import LASTING
from kalito_mcp.domain.memory_records import PROGRAM, Derived, Editor, EditorType, MemoryRecord
from kalito_mcp.domain.records import PIN_IMPORTANCE, CreatePinRequest, Origin, Reach, RecordType, SemanticPin
from kalito_mcp.domain.request_keys import key_within
from kalito_mcp.domain.scope import PERSONAL
from kalito_mcp.domain.search import SearchRequest
from kalito_mcp.editing.eraser import Eraser
from kalito_mcp.editing.forgetter import Forgetter
from kalito_mcp.editing.kinds import NOTE, as_record
from kalito_mcp.errors import InvalidInput
from kalito_mcp.kinds.judge import SentenceJudge
from kalito_mcp.kinds.kinds import NOTED_FROM, Sentence
from kalito_mcp.pins.digest_pins import DigestPinner
from kalito_mcp.pins.found import is_found_pin
from kalito_mcp.pins.pinner import checked_reach
from kalito_mcp.pins.reach import reach_of
from kalito_mcp.ports.clock import Clock, IdSource
from kalito_mcp.project_verbs import ProjectVerbs
from kalito_mcp.records.borrowed_words import sources_of_words, unconfirmed
from kalito_mcp.records.historian import Historian
from kalito_mcp.records.reached import reached
from kalito_mcp.records.same_words import NOTE_SOURCE
from kalito_mcp.retrieval.search import Searcher
from kalito_mcp.upkeep.owed_worker import OwedWorker
from kalito_mcp.upkeep.store_layers import no_new_words

_LONGEST_NOTE: Final = 400
"""Characters, above which a note is not taken for a fact about the person."""

_RECORD_ID: Final = re.compile(r"(?:msg_\d+|(?:pin|summary|thought|task|document)_[\w.:-]+)")
_MOST_WITH_WORDS: Final = 5
_NO_SESSION: Final = (
    "session_id is missing: without a conversation, a fact is known in its project or to the person; send "
    "scope='person' or 'project', or the session_id that record_messages returned"
)


class RecordVerbs(ProjectVerbs):
    """The part of `Memory` that works on whole records."""

    clock: Clock
    _digests: DigestPinner
    _eraser: Eraser
    _forgetter: Forgetter
    _historian: Historian
    _ids: IdSource
    _judge: SentenceJudge
    _owed: OwedWorker
    _searcher: Searcher

    async def create_pin(self, request: CreatePinRequest) -> SemanticPin:
        """Pin a text in a session; a new session is created. Without a session it is kept as a note of the project or
        the person. A known `client_key`, and exactly the same words, return what has them already.

        Its `scope` says which contexts show it: those of the session, of its project, or all of the person's.

        Raises:
            InvalidInput: the text, an id, the scope or the importance is not acceptable, there is no project, there is
                no session and only that would know it, or nothing says what it `replaces`.
            ClientKeyReused: a known `client_key` with another text.
            RecordNotFound: `source_message_id` is not a message of the session, or what it replaces is no record here.
            Conflict: the words, or those of the source message, are a tool's, a document's or an import's, and
                `is_confirmed` does not say that the user wants that; or the same pin was erased.
            SessionFinalized: the session is closed.
        """
        self.check_remembered()
        request = replace(request, replaces=await self._replaced_ids(request))
        if request.session_id is not None:
            return await self.manager.create_semantic_pin(request)
        has_project = self._project not in (None, PERSONAL)
        [judged] = await self._judge.judge([Sentence(request.content)])
        reach = checked_reach(request.scope) or reach_of(
            judged, has_project=has_project, pin_type=request.pin_type, origin=request.origin
        )
        if reach is Reach.SESSION or request.source_message_id is not None:
            raise InvalidInput(_NO_SESSION)
        score = PIN_IMPORTANCE if request.importance_score is None else clamp_importance(request.importance_score)
        fields = {"text": request.content, "scope": str(reach), "importance_score": score}
        if request.replaces:
            fields["supersedes"] = list(request.replaces)
        own_words = EditorType.HUMAN if request.origin is Origin.USER else EditorType.AGENT
        editor = Editor(own_words, request.client)
        [note] = await self.remember(
            NOTE, fields, editor=editor, client_key=request.client_key, is_confirmed=request.is_confirmed
        )
        return self.manager.as_pin(note)

    async def keep_digest(self, session_id: str, digest: Digest, *, editor: Editor = PROGRAM) -> KeptDigest:
        """Pin the sentences of a session's digest: what was decided or learned where `create_pin` would, what was done
        or is open in the session, where the next conversation begins. What is pinned in these words is not pinned
        again. If the digest says what is `open`, the open points that were found before are forgotten, unless it has
        them, too.

        Raises:
            InvalidInput: a list or a sentence is too long, or a sentence is blank.
            SessionNotFound, SessionFinalized: the session does not exist, or is closed.
            Conflict: a sentence repeats what was forgotten. Nothing was written.
        """
        self.check_remembered()
        scope = await self._of_session(session_id)
        if digest.open is not None:
            await self._owed.pin(scope)
        return await self._digests.keep(scope, digest, editor)

    async def remember(
        self,
        record_type: RecordType | str,
        fields: Mapping[str, Any],
        *,
        session_id: str | None = None,
        agent_id: str | None = None,
        editor: Editor = PROGRAM,
        client_key: str | None = None,
        is_confirmed: bool = False,
    ) -> Sequence[MemoryRecord]:
        """Store a note, a thought, a document or a task, in a session or for an agent as a whole.

        A document is stored in parts, one record each. One with a known `source` replaces the former: parts that read
        the same stay, parts that are gone are forgotten, and parts that were erased for good are left out. A `note` is
        a short document without a source. With an `editor` of type HUMAN the text counts as the user's own words.
        A note that repeats the words of a tool, a document or an import has their origin, and no other conversation
        knows it as a fact unless it `is_confirmed`. Without a source, a known `client_key`, and exactly the same words
        of the same type, session and project, return what was stored: `MemoryRecord.is_known` says so.

        Raises:
            InvalidInput: an unknown type, or a field that is unknown, missing or wrong; nothing was written.
            Conflict: the session is closed, the document is forgotten, or the same text was erased for good; nothing
                was written. Or nothing is remembered in this project. Or a note with a `scope` repeats the words of a
                tool, a document or an import, and `is_confirmed` does not say that the user wants that.
            RecordNotFound: `caused_by` names no record; nothing was written.
            ClientKeyReused: a known `client_key` with another text; nothing was written.
        """
        self.check_remembered()
        scope = await self._of_session(session_id, agent_id, may_be_new=True)
        has_project = scope.project not in (None, PERSONAL)
        reach = await self._reach_of_note(fields, has_project=has_project) if record_type == NOTE else None
        kind, given, origin = as_record(str(record_type), fields, editor, reach=reach, new_source=self._new_source)
        if kind is RecordType.DOCUMENT and origin is Origin.ASSISTANT:  # a note
            [source] = await sources_of_words(self._store, scope, [str(fields.get("text"))])
            if source is not None:
                if "scope" in fields and not is_confirmed:
                    raise unconfirmed(source.record_id, source.origin)
                given = given if is_confirmed else {**given, "scope": None}
                origin = source.origin
        if client_key is not None and scope.session is None:
            client_key = key_within(client_key, self._limits)
        remembered = await self._editor.remember(
            scope, kind, given, editor=editor, origin=origin, client_key=client_key
        )
        return await self._seen(remembered)

    async def _replaced_ids(self, request: CreatePinRequest) -> tuple[str, ...]:
        """The ids of what the pin replaces: of words, that of the record that has them.

        Raises:
            InvalidInput: nothing here has the words.
        """
        scope = await self._of_session(request.session_id, may_be_new=True)
        found: list[str] = []
        for named in request.replaces:
            if _RECORD_ID.fullmatch(named):
                found.append(named)
                continue
            page = await self._searcher.search(scope.anywhere(), SearchRequest(named, k=_MOST_WITH_WORDS))
            same = (hit.record_id for hit in page.hits if _plain(named) in _plain(hit.text))
            if (record_id := next(same, None)) is None:
                raise InvalidInput(f"replaces: nothing here says {named[:80]!r}; send its id as a search returns it")
            found.append(record_id)
        return tuple(dict.fromkeys(found))

    async def _reach_of_note(self, fields: Mapping[str, Any], *, has_project: bool) -> Reach | None:
        """PERSON if this note says something lasting of the person, in a few words; else None."""
        text = fields.get("text")
        if not isinstance(text, str) or len(text) > _LONGEST_NOTE:
            return None
        [judged] = await self._judge.judge([Sentence(text)])
        is_lasting = judged.kind in LASTING and judged.worth >= NOTED_FROM
        return Reach.PERSON if is_lasting and reach_of(judged, has_project=has_project) is Reach.PERSON else None

    def _new_source(self) -> str:
        return f"{NOTE_SOURCE}{self._ids.record_id(NOTE, self.clock.now_ms())}"

    async def record(self, record_id: str) -> MemoryRecord:
        """One record as it is, forgotten or not.

        Raises:
            RecordNotFound: no such record, or it was erased.
            StorageDamaged: its row is not as it was written.
        """
        return await self._historian.record(self._scope(None), record_id)

    async def records(self, record_id: str) -> Sequence[MemoryRecord]:
        """The record of this id, or all parts of the document of this id. Raises RecordNotFound."""
        return await self._historian.records(self._scope(None), record_id)

    async def derived_from(self, record_id: str) -> tuple[Sequence[MemoryRecord], Sequence[MemoryRecord]]:
        """Pins made from a message, except automatic ones, and the summaries over it. Raises RecordNotFound."""
        pins, summaries = await self._historian.derived_from(self._scope(None), record_id)
        # Automatic pins follow their message by themselves.
        return [pin for pin in pins if not is_found_pin(pin)], summaries

    async def derived_from_all(self, records: Sequence[MemoryRecord]) -> Derived:
        """What was made from all of these records, which a change has just returned; pins as in `derived_from`."""
        found = await self._historian.derived_from_all(self._scope(None), records)
        return replace(found, pins=[(pin, made_from) for pin, made_from in found.pins if not is_found_pin(pin)])

    async def update_memory(
        self, record_id: str, changes: Mapping[str, Any], *, expected_revision: int, editor: Editor = PROGRAM
    ) -> MemoryRecord:
        """Change fields of a record; a field set to None is removed. What was derived from it follows. If nothing
        changes, no edit is made.

        Raises:
            RevisionConflict: the record is no longer at `expected_revision`; nothing was written.
            RecordNotFound: no such record, or it was erased.
            InvalidInput: a field that is unknown, fixed or wrong.
            Conflict: the record is forgotten, or its state does not allow the change.
        """
        self.check_remembered()
        if isinstance(changes.get("project"), str):
            changes = {**changes, "project": await self._target(changes["project"])}
        updated = await self._editor.update(
            self._scope(None), record_id, changes, expected_revision=expected_revision, editor=editor
        )
        return (await self._seen([updated]))[0]

    async def forget(
        self, record_id: str, *, editor: Editor = PROGRAM, expected_revision: int | None = None
    ) -> Sequence[MemoryRecord]:
        """Hide a record, or all parts of a document, from every context and search.

        Raises:
            RecordNotFound: no such record, or it was erased.
            RevisionConflict: it, or the first part, is no longer at `expected_revision`; nothing was written.
        """
        with no_new_words():
            forgotten = await self._editor.forget(
                self._scope(None), record_id, editor=editor, expected_revision=expected_revision
            )
            return await self._seen(forgotten)

    async def preview_forgetting(self, request: ForgetRequest, *, agent_id: str | None = None) -> ForgetPreview:
        """What a request would forget or erase, of this project and personal: all records that speak of its subject
        or have its identifier. A purge includes forgotten ones. Changes nothing.

        Raises:
            InvalidInput: it names no subject and no identifier, or matches too much.
        """
        return await self._forgetter.preview(self._scope(None, agent_id), request)

    async def forget_previewed(
        self, request: ForgetRequest, token: str, *, agent_id: str | None = None, editor: Editor = PROGRAM
    ) -> Sequence[MemoryRecord]:
        """Forget the records of a preview. Raises Conflict if the list is another one by now, and as the preview."""
        with no_new_words():
            scope = self._scope(None, agent_id)
            return await self._seen(await self._forgetter.forget(scope, request, token, editor=editor))

    async def purge_previewed(self, request: ForgetRequest, token: str, *, agent_id: str | None = None) -> PurgeReport:
        """Erase the records of a preview; see `purge`. Raises Conflict if the list is another one by now."""
        with no_new_words():
            return await self._forgetter.purge(self._scope(None, agent_id), request, token)

    async def restore(
        self, record_id: str, *, editor: Editor = PROGRAM, expected_revision: int | None = None
    ) -> Sequence[MemoryRecord]:
        """Undo `forget`. Raises as `forget`."""
        with no_new_words():
            restored = await self._editor.restore(
                self._scope(None), record_id, editor=editor, expected_revision=expected_revision
            )
            return await self._seen(restored)

    async def revert(
        self, record_id: str, version: int, *, editor: Editor = PROGRAM, expected_revision: int | None = None
    ) -> MemoryRecord:
        """Give a record the content of an earlier version, as a new version.

        Raises:
            RecordNotFound: no such record, or it was erased.
            InvalidInput: no such version.
            Conflict: the state of the record does not allow it.
            RevisionConflict: the record is no longer at `expected_revision`; nothing was written.
        """
        with no_new_words():
            reverted = await self._editor.revert(
                self._scope(None), record_id, version, editor=editor, expected_revision=expected_revision
            )
            return (await self._seen([reverted]))[0]

    async def history(self, record_id: str) -> list[dict[str, Any]]:
        """Every edit of a record, oldest first, JSON-ready. Raises RecordNotFound."""
        return await self._historian.history(self._scope(None), record_id)

    async def version(self, record_id: str, number: int) -> MemoryRecord:
        """A record as it was in one version. Raises RecordNotFound, InvalidInput."""
        return await self._historian.version(self._scope(None), record_id, number)

    async def record_as_of(self, record_id: str, moment_ms: int) -> MemoryRecord:
        """A record as it was at a moment. Raises RecordNotFound, even if it did not exist yet."""
        return await self._historian.as_of(self._scope(None), record_id, moment_ms)

    async def diff(self, record_id: str, old: int, new: int) -> list[str]:
        """The differences between two versions, one line each. Raises RecordNotFound, InvalidInput."""
        return await self._historian.diff(self._scope(None), record_id, old, new)

    async def tasks(self, *, agent_id: str | None = None, is_done: bool | None = None) -> list[MemoryRecord]:
        """The agent's tasks, those due first at the top. `is_done` narrows them to finished or open ones."""
        return await self._historian.tasks(self._scope(None, agent_id or None), is_done=is_done)

    async def purge(self, record_ids: Sequence[str]) -> PurgeReport:
        """Erase records and everything made from them, from every file. Ids that were erased before are accepted.

        Without ids it only finishes what an earlier purge could not. `PurgeReport.remaining` names the places that may
        still hold the words, and `is_owed` says that the memory itself will try again.

        Raises:
            RecordNotFound: an id is unknown; nothing was erased.
            InvalidInput: `record_ids` is a string, not a list.
        """
        if isinstance(record_ids, str):
            raise InvalidInput("record_ids is a string; send a list of ids")
        with no_new_words():
            return await self._eraser.purge(self._scope(None), record_ids)

    async def _seen(self, records: Sequence[MemoryRecord]) -> Sequence[MemoryRecord]:
        """The records, without the ids of what is beyond the limits."""
        return await reached(self._store, self._scope(None), records)


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())
