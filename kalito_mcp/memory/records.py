"""Whole records: read, compare, move and forget them."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from kalito_mcp.domain.arguments import checks_arguments
from kalito_mcp.domain.erasing import ForgetPreview, ForgetRequest, PurgeReport
from kalito_mcp.domain.known import KnownRecord, Profile
from kalito_mcp.domain.memory_records import PROGRAM, Derived, Editor, MemoryRecord
from kalito_mcp.domain.records import Reach, RecordType
from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.sizes import VectorCounts
from kalito_mcp.domain.statements import Disagreement, Statement, StatementGroup, Subject
from kalito_mcp.editing.decisions import holding_with, kept, replacing
from kalito_mcp.editing.editor import Change
from kalito_mcp.memory.part import Part
from kalito_mcp.memory.sharing import Sharing, labelled
from kalito_mcp.pins.disagreements import disagreements
from kalito_mcp.pins.found import is_found_pin
from kalito_mcp.pins.pinner import checked_reach
from kalito_mcp.pins.profile import read_profile, read_proposed
from kalito_mcp.pins.statements import grouped, read_shared_statements, read_statements, read_undecided
from kalito_mcp.ports.store import ReadView
from kalito_mcp.records.reached import reached
from kalito_mcp.upkeep.store_layers import no_new_words

_PAGE: Final = 200
_MOST_LOOKED_AT: Final = 200


@checks_arguments
class Records(Part):
    """Reads records and their history, moves them, and forgets many at once."""

    async def get(self, record_id: str) -> MemoryRecord:
        """One record as it is, forgotten or not.

        Raises:
            RecordNotFound: no such record, or it was erased.
            StorageDamaged: its row is not as it was written.
        """
        scope = await self._scope_of(record_id)
        return labelled(scope.owner, await self._services.historian.record(scope, record_id))

    async def get_all(self, record_id: str) -> Sequence[MemoryRecord]:
        """The record of this id, or all parts of the document of this id. Raises RecordNotFound."""
        scope = await self._scope_of(record_id)
        return [labelled(scope.owner, one) for one in await self._services.historian.records(scope, record_id)]

    async def all(
        self, types: frozenset[RecordType], *, agent_id: str | None = None, session_id: str | None = None
    ) -> Sequence[MemoryRecord]:
        """All thoughts, documents, tasks, pins and summaries of an agent, or of a session, that are not forgotten,
        newest first; only those of the `types`, if any are given."""
        found: list[MemoryRecord] = []
        scope = await self.place.of_session(session_id, agent_id)
        while True:
            page = await self._page(scope, types, after=found[-1].id if found else None)
            if not page:
                return await reached(self.place.store, scope, found)
            found += page

    async def page(
        self,
        types: frozenset[RecordType],
        *,
        agent_id: str | None = None,
        session_id: str | None = None,
        after: str | None = None,
        limit: int = _PAGE,
    ) -> Sequence[MemoryRecord]:
        """As `list_records`: those that follow the record `after`, at most `limit`. Raises RecordNotFound if `after` is
        gone."""
        scope = await self.place.of_session(session_id, agent_id)
        return await reached(self.place.store, scope, await self._page(scope, types, after=after, limit=limit))

    async def _page(
        self, scope: Scope, types: frozenset[RecordType], *, after: str | None = None, limit: int = _PAGE
    ) -> Sequence[MemoryRecord]:
        return await self.place.store.read(
            lambda view: view.records.list_records(scope, types, after=after, limit=limit)
        )

    async def vectors(self) -> VectorCounts | None:
        """The vectors of the embedder that searches use, of all owners; None without one. It may read every record.

        Raises:
            AccessDenied: this memory is limited to an agent or a project.
        """
        self.place.limits.check_none("the number of vectors")

        async def count(view: ReadView) -> VectorCounts | None:
            for index in await view.vectors.indexes():
                if index.is_active:
                    made_by = index.fingerprint
                    waiting = await view.vectors.owed_count(made_by)
                    return VectorCounts(made_by, await view.vectors.count(made_by), waiting)
            return None

        return await self.place.store.read(count)

    async def completions(self, prefix: str) -> Sequence[str]:
        """Of the newest two hundred thoughts, documents, tasks, pins and summaries, those whose id starts with the
        prefix, newest first."""
        found = await self._page(self.place.scope(), frozenset(), limit=_MOST_LOOKED_AT)
        return [one.id for one in found if one.id.startswith(prefix)]

    async def tasks(self, *, agent_id: str | None = None, is_done: bool | None = None) -> list[MemoryRecord]:
        """The agent's tasks, those due first at the top. `is_done` narrows them to finished or open ones."""
        return await self._services.historian.tasks(self.place.scope(None, agent_id or None), is_done=is_done)

    async def profile(self, *, agent_id: str | None = None, include_untrusted: bool = False) -> Profile:
        """Facts of the person that every conversation knows, and facts of a project that its conversations know, by
        subject.

        Words of tools, documents and imports that read like an instruction need `include_untrusted`.
        """
        return await self.place.store.read(
            lambda view: read_profile(view, self.place.scope(None, agent_id), include_untrusted=include_untrusted)
        )

    async def statements(self, *, agent_id: str | None = None) -> Sequence[StatementGroup]:
        """Rules, decisions, plans and facts that are known beyond their session, and open points of sessions, in groups
        of what is about the same: the person's first, then each project's. With what was superseded and forgotten.

        Of the newest 400 that are known beyond their session, of 150 others, and of 150 forgotten ones; and of each of
        the person's spaces, without what contexts withhold: 400, and of 150 forgotten ones those they may bring back.
        """
        scope = self.place.scope(None, agent_id)
        shared = await self.place.store.read(lambda view: read_shared_statements(view, scope))
        return grouped(sorted([*await self._statements(agent_id), *shared], key=lambda one: -one.record.created_at))

    async def disagreements(self, *, agent_id: str | None = None) -> Sequence[Disagreement]:
        """Pairs of these statements that hold and seem to disagree, the newest first, without those that `keep_both`
        was called for. It compares words: some pairs do not disagree, and what is said in other words is not found."""
        return list(disagreements([one for one in await self._statements(agent_id) if one.subject is not Subject.OPEN]))

    async def inbox(self, *, agent_id: str | None = None, limit: int = _PAGE) -> Sequence[MemoryRecord]:
        """Pins that were found automatically, or that only their session knows though they say something lasting, which
        nobody has kept (`keep`) or dropped (`forget`), newest first: at most `limit`, of the newest 300 of each."""
        scope = self.place.scope(None, agent_id)
        found = await self.place.store.read(lambda view: read_undecided(view, scope))
        return await self.place.reached(found[:limit])

    async def proposed(self) -> Sequence[KnownRecord]:
        """What others propose in the person's spaces (`kinds.shared_words`), and they have not kept: in turn of those
        who shared it."""
        return await self.place.store.read(lambda view: read_proposed(view, self.place.scope()))

    async def keep(self, record_id: str, reach: Reach | str | None = None, *, editor: Editor = PROGRAM) -> MemoryRecord:
        """Keep a pin or a note as if a person had asked for it: it is as important as that, and a pin no longer follows
        the message it was found in. `reach` says which conversations know it; None leaves that. `revert` undoes it. Of
        what somebody shared in a space, a note with its words becomes one's own, which `forget` undoes.

        Raises:
            RecordNotFound: no such record, or it was erased.
            InvalidInput: it is neither, the reach is unknown, or the record has no project and the reach is one.
            Conflict: it is forgotten.
        """
        wanted, now_ms = checked_reach(reach), self.place.clock.now_ms()
        if (place := await self.place.holding(record_id)) is not self.place:
            shared = await self._services.historian.record(place.scope(), record_id)
            return await Sharing(self.place, self._services).adopted(shared, wanted, editor)
        return await self._decide(record_id, lambda record: kept(record, wanted, now_ms), editor)

    async def replace(self, record_id: str, replaced_id: str, *, editor: Editor = PROGRAM) -> MemoryRecord:
        """Let a record supersede another: contexts and lists no longer have that one. `revert` of the first undoes it.

        Raises:
            RecordNotFound: either does not exist, or the two are not of one agent and project.
            Conflict: the record is forgotten, or the other one replaces it.
        """
        replaced = await self.get(replaced_id)
        return await self._decide(record_id, lambda record: replacing(record, replaced), editor)

    async def keep_both(self, record_id: str, other_id: str, *, editor: Editor = PROGRAM) -> MemoryRecord:
        """Note at a record that another one holds as well: the two are no disagreement. `revert` undoes it. Raises
        RecordNotFound, or Conflict if the record is forgotten."""
        other = await self.get(other_id)
        return await self._decide(record_id, lambda record: holding_with(record, other), editor)

    async def _scope_of(self, record_id: str) -> Scope:
        """Where a record is to be read: here, or in a space of the owner's."""
        return (await self.place.holding(record_id)).scope()

    async def _decide(self, record_id: str, change: Change, editor: Editor) -> MemoryRecord:
        with no_new_words():
            changed = await self._services.editor.change(self.place.scope(), record_id, change, editor=editor)
            return (await self.place.reached([changed]))[0]

    async def _statements(self, agent_id: str | None) -> Sequence[Statement]:
        scope = self.place.scope(None, agent_id)
        found = await self.place.store.read(lambda view: read_statements(view, scope))
        shown = await self.place.reached([one.record for one in found])
        return [replace(one, record=record) for one, record in zip(found, shown, strict=True)]

    async def derived_from(self, record_id: str) -> tuple[Sequence[MemoryRecord], Sequence[MemoryRecord]]:
        """Pins made from a message, except automatic ones, and the summaries over it. Raises RecordNotFound."""
        pins, summaries = await self._services.historian.derived_from(await self._scope_of(record_id), record_id)
        # Automatic pins follow their message by themselves.
        return [pin for pin in pins if not is_found_pin(pin)], summaries

    async def derived_from_all(self, records: Sequence[MemoryRecord]) -> Derived:
        """What was made from all of these records, which a change has just returned; pins as in `derived_from`."""
        found = await self._services.historian.derived_from_all(self.place.scope(), records)
        return replace(found, pins=[(pin, made_from) for pin, made_from in found.pins if not is_found_pin(pin)])

    async def history(self, record_id: str) -> list[dict[str, Any]]:
        """Every edit of a record, oldest first, JSON-ready. Raises RecordNotFound."""
        return await self._services.historian.history(await self._scope_of(record_id), record_id)

    async def version(self, record_id: str, number: int) -> MemoryRecord:
        """A record as it was in one version. Raises RecordNotFound, InvalidInput."""
        scope = await self._scope_of(record_id)
        return labelled(scope.owner, await self._services.historian.version(scope, record_id, number))

    async def as_of(self, record_id: str, moment_ms: int) -> MemoryRecord:
        """A record as it was at a moment. Raises RecordNotFound, even if it did not exist yet."""
        scope = await self._scope_of(record_id)
        return labelled(scope.owner, await self._services.historian.as_of(scope, record_id, moment_ms))

    async def diff(self, record_id: str, old: int, new: int) -> list[str]:
        """The differences between two versions, one line each. Raises RecordNotFound, InvalidInput."""
        return await self._services.historian.diff(await self._scope_of(record_id), record_id, old, new)

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
            async with Sharing(self.place, self._services).changing(record_id, editor) as (scope, who):
                reverted = await self._services.editor.revert(
                    scope, record_id, version, editor=who, expected_revision=expected_revision
                )
            return labelled(scope.owner, (await self.place.reached([reverted]))[0])

    async def move(self, record_id: str, project: str | None, *, editor: Editor = PROGRAM) -> Sequence[MemoryRecord]:
        """Give a record that is in no session, or all parts of such a document, to a project; None makes it personal.
        The record's history tells of it.

        Raises:
            RecordNotFound: no such record, or it was erased.
            InvalidInput: see `move_session`.
            Conflict: the record belongs to a session; or the project has a document of the same source.
        """
        scope = self.place.scope().anywhere()
        with no_new_words():
            moved = await self._services.editor.move(scope, record_id, await self.place.target(project), editor=editor)
        return await reached(self.place.store, scope, moved)

    async def preview_forgetting(self, request: ForgetRequest, *, agent_id: str | None = None) -> ForgetPreview:
        """The records that a request would forget or erase, of this project and personal: all records that speak of its
        subject or have its identifier. A purge includes forgotten ones. Changes nothing.

        Raises:
            InvalidInput: it names no subject and no identifier, or matches too much.
        """
        return await self._services.forgetter.preview(self.place.scope(None, agent_id), request)

    async def forget_previewed(
        self, request: ForgetRequest, token: str, *, agent_id: str | None = None, editor: Editor = PROGRAM
    ) -> Sequence[MemoryRecord]:
        """Forget the records of a preview. Raises Conflict if the list is another one by now, and as the preview."""
        with no_new_words():
            scope = self.place.scope(None, agent_id)
            return await self.place.reached(await self._services.forgetter.forget(scope, request, token, editor=editor))

    async def purge_previewed(self, request: ForgetRequest, token: str, *, agent_id: str | None = None) -> PurgeReport:
        """Erase the records of a preview; see `purge`. Raises Conflict if the list is another one by now."""
        with no_new_words():
            return await self._services.forgetter.purge(self.place.scope(None, agent_id), request, token)
