"""What was made of a record follows it when it is changed, forgotten, restored or erased: pins, summaries, graphs.

All of it happens in the transaction of the change. So there is no moment, and no crash, at which something still says
what its source no longer says.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from kalito_mcp.domain.memory_records import (
    DELETED_AT,
    SYSTEM_EDITOR,
    Editor,
    EditorType,
    EditType,
    MemoryRecord,
    versions,
    with_changes,
)
from kalito_mcp.domain.records import RecordType, Visibility
from kalito_mcp.domain.scope import LOCAL_OWNER, Scope
from kalito_mcp.domain.sessions import FinalizeStage, Session
from kalito_mcp.graph.canonical import canonical_key
from kalito_mcp.orchestrator.graph_cache import GraphCache
from kalito_mcp.orchestrator.observer import LOOK_BACK, Observer, observe_again
from kalito_mcp.orchestrator.snapshot_import import detach
from kalito_mcp.pins.automatic import is_found_pin
from kalito_mcp.pins.collector import PinCollector
from kalito_mcp.ports.clock import Clock
from kalito_mcp.ports.conversations import PinDraft
from kalito_mcp.ports.records import RecordWriter
from kalito_mcp.ports.store import Store, WriteTransaction
from kalito_mcp.summaries.rewriter import SummaryRewriter

if TYPE_CHECKING:
    from kalito_mcp.graph.store import GraphStore

_FOLLOWED: Final = (RecordType.MESSAGE, RecordType.PIN, RecordType.SUMMARY)
_IN_GRAPHS: Final = (RecordType.MESSAGE, RecordType.PIN)
_PROMOTED: Final = (FinalizeStage.PROMOTION, FinalizeStage.CHECKPOINT)


@dataclass(frozen=True, slots=True)
class CascadeTransaction:
    """A write transaction, and the graphs that may hold the record which it changes, by their scopes."""

    transaction: WriteTransaction
    graphs: Sequence[tuple[Scope, "GraphStore"]] = ()

    @property
    def records(self) -> RecordWriter:
        """Whole records and their edits."""
        return self.transaction.records


@dataclass(frozen=True, slots=True)
class CascadeResult:
    """What a change took along: the ids of pins that were erased, of summaries that read otherwise now, and the
    canonical keys of the texts that were erased, those of earlier versions included."""

    erased: tuple[str, ...] = ()
    rewritten: tuple[str, ...] = ()
    erased_keys: tuple[str, ...] = ()


@dataclass(slots=True)
class _Change:
    """One change on its way. `after` is None where the record is about to be erased."""

    following: CascadeTransaction
    session: Session
    before: MemoryRecord
    after: MemoryRecord | None
    at_ms: int
    detached: list[str] = field(default_factory=list)
    erased_keys: list[str] = field(default_factory=list)

    @property
    def records(self) -> RecordWriter:
        return self.following.records

    @property
    def editor(self) -> Editor:
        """Who edits what follows: the memory, because of this version."""
        return _because_of(self.after or self.before)

    @property
    def is_back(self) -> bool:
        """Whether the record was hidden and is not any more."""
        return _said(self.before) is None and self.after is not None and _said(self.after) is not None

    @property
    def is_shown(self) -> bool:
        """Whether the record is there and not hidden."""
        return self.after is not None and _said(self.after) is not None


class Cascade:
    """Joins what follows a record to its change."""

    def __init__(
        self,
        store: Store,
        cache: GraphCache,
        summaries: SummaryRewriter,
        pins: PinCollector,
        observer: Observer,
        clock: Clock,
        *,
        owner: str = LOCAL_OWNER,
    ) -> None:
        self._store = store
        self._cache = cache
        self._summaries = summaries
        self._pins = pins
        self._policy = observer.policy
        self._clock = clock
        self._owner = owner

    @asynccontextmanager
    async def changing(self, record: MemoryRecord) -> AsyncIterator[CascadeTransaction]:
        """The write transaction in which to change the record, with the graphs that may hold it. A graph that there is
        not is not made."""
        scopes = self._scopes(record)
        while True:
            async with self._store.read() as view:
                kept = [scope for scope in scopes if (await view.graphs.state(scope)).revision]
            async with AsyncExitStack() as stack:
                if kept:
                    transaction, graphs = await stack.enter_async_context(self._cache.changing(*kept))
                else:
                    transaction, graphs = await stack.enter_async_context(self._store.write()), []
                now = [scope for scope in scopes if (await transaction.graphs.state(scope)).revision]
                if now != kept:
                    continue  # one was made, or collected, in between
                yield CascadeTransaction(transaction, tuple(zip(kept, graphs, strict=True)))
                return

    async def follow(
        self, following: CascadeTransaction, *, before: MemoryRecord, after: MemoryRecord | None
    ) -> CascadeResult:
        """Take along what was made of the record: as it was `before`, and is `after`, already written; None where it is
        about to be erased.

        Automatic pins of a message that no longer says them are forgotten, and come back with it; once erased, a
        message takes all its pins along. Summaries over it are written anew. In the graphs its place is taken by what
        it says now. Nothing happens where a change is not of words nor of whether they are hidden.
        """
        if before.session_id is None or before.type not in _FOLLOWED:
            return CascadeResult()
        if after is not None and _said(before) == _said(after):
            return CascadeResult()
        session = await following.transaction.sessions.get(self._session(before))
        assert session is not None  # noqa: S101 - the record belongs to it, and sessions stay
        change = _Change(following, session, before, after, self._clock.now_ms())
        erased: list[str] = []
        change.detached.append(before.id)
        if after is None:
            change.erased_keys += await self._keys_ever(change, before)
            erased = await self._erase_pins(change)
        elif before.type is RecordType.MESSAGE:
            await self._change_pins(change, after)
        rewritten: list[str] = []
        if before.type is not RecordType.PIN:
            rewritten = await self._summaries.rewrite(
                following.transaction,
                session,
                before,
                editor=change.editor,
                at_ms=change.at_ms,
                undoes=_because_of(before) if change.is_back else None,
                is_erased=after is None,
            )
        if before.type in _IN_GRAPHS:
            await self._change_graphs(change)
        return CascadeResult(tuple(erased), tuple(rewritten), tuple(change.erased_keys))

    async def _erase_pins(self, change: _Change) -> list[str]:
        erased: list[str] = []
        for pin in await change.records.pins_of(change.before):
            change.erased_keys += await self._keys_ever(change, pin)
            await change.records.purge(pin, now_ms=change.at_ms)
            erased.append(pin.id)
        change.detached += erased
        return erased

    async def _change_pins(self, change: _Change, after: MemoryRecord) -> None:
        """Forget the automatic pins that the message no longer says, have back those that were forgotten because of it
        and that it says again, and add those that it says now."""
        pins = [pin for pin in await change.records.pins_of(change.before) if is_found_pin(pin)]
        wanted = await self._wanted(change)
        has_its_words = change.is_back and _words(after) == _words(change.before)
        for pin in pins:
            if pin.is_deleted:
                # What is forgotten was edited, last by who forgot it.
                because = (await change.records.edits(pin))[-1].editor
                if (has_its_words and because == _because_of(change.before)) or (
                    pin.client_key in wanted and (because.id or "").startswith(_cause(after.id))
                ):
                    await self._set_deleted_at(change, pin, None)
            elif not (has_its_words or pin.client_key in wanted):
                await self._set_deleted_at(change, pin, change.at_ms)
                change.detached.append(pin.id)
        known = {pin.client_key for pin in pins}
        news = [draft for key, draft in wanted.items() if key not in known]
        if news:
            await change.following.transaction.conversations.add_pins(change.session, news)

    async def _wanted(self, change: _Change) -> dict[str | None, PinDraft]:
        """The pins that the message deserves as it is now, by their keys. One that owed work has not come to yet has
        none."""
        seq = change.before.seq
        if not change.is_shown or seq is None or seq > change.session.pinned_seq:
            return {}
        conversations = change.following.transaction.conversations
        messages = await conversations.messages(change.session, first_seq=seq, last_seq=seq)
        return {draft.client_key: draft for draft in self._pins.drafts(messages)}

    async def _set_deleted_at(self, change: _Change, pin: MemoryRecord, deleted_at: int | None) -> None:
        edit_type = EditType.RESTORE if deleted_at is None else EditType.DELETE
        content = with_changes(pin.content, {DELETED_AT: deleted_at})
        await change.records.change(pin, self._summaries.edit(content, edit_type, change.editor, change.at_ms))

    async def _keys_ever(self, change: _Change, record: MemoryRecord) -> list[str]:
        """The canonical keys of what the record says, and ever said."""
        made = versions(record, await change.records.edits(record))
        return list(dict.fromkeys(canonical_key(str(content["text"])) for _, content in made[::-1]))

    async def _change_graphs(self, change: _Change) -> None:
        for scope, graph in change.following.graphs:
            owner = Scope(owner=self._owner)
            is_held = await detach(graph, change.detached, change.erased_keys, change.records, owner)
            if self._policy.enabled and change.is_shown and change.before.type is RecordType.MESSAGE:
                is_back = change.is_back and (scope.session is not None or change.session.stage in _PROMOTED)
                if is_held or is_back:
                    await self._observe(change, graph)

    async def _observe(self, change: _Change, graph: "GraphStore") -> None:
        seq, session = change.before.seq, change.session
        if seq is None or seq > session.observed_seq:
            return  # owed work comes to it
        messages = await change.following.transaction.conversations.messages(
            session, first_seq=seq - LOOK_BACK, last_seq=min(seq + LOOK_BACK, session.observed_seq)
        )
        observe_again(graph, messages, seq, self._policy)

    def _scopes(self, record: MemoryRecord) -> list[Scope]:
        if record.session_id is None or record.type not in _IN_GRAPHS:
            return []
        return [self._session(record), Scope(owner=self._owner, agent=record.agent_id)]

    def _session(self, record: MemoryRecord) -> Scope:
        return Scope(owner=self._owner, agent=record.agent_id, session=record.session_id)


def _said(record: MemoryRecord) -> tuple[str, str | None] | None:
    """What others could say after it; None where it is hidden."""
    return None if record.is_deleted or record.visibility is Visibility.INTERNAL else _words(record)


def _words(record: MemoryRecord) -> tuple[str, str | None]:
    return record.text, record.content.get("name")


def _because_of(record: MemoryRecord) -> Editor:
    return Editor(EditorType.SYSTEM, _cause(record.id) + str(record.revision))


def _cause(record_id: str) -> str:
    return f"{SYSTEM_EDITOR.id}:{record_id}@"
