"""When a record changes, what was derived from it changes with it: automatic pins, summaries and graph nodes.

All of it is written in the transaction of the change. So nothing repeats words that its source no longer has, not even
after a crash.
"""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from kalito_mcp.domain.memory_records import (
    DELETED_AT,
    SYSTEM_EDITOR,
    Editor,
    EditorType,
    EditType,
    MemoryRecord,
    texts_ever,
    with_changes,
)
from kalito_mcp.domain.records import MessageWithImportance, RecordType, Role, Visibility
from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.sessions import FinalizeStage, Session
from kalito_mcp.editing.plans import planned_erasure
from kalito_mcp.editing.writing import erase_record
from kalito_mcp.graph.canonical import canonical_key
from kalito_mcp.orchestrator.graph_cache import GraphCache
from kalito_mcp.orchestrator.observer import LOOK_BACK, Observer, observe_again
from kalito_mcp.orchestrator.snapshot_import import detach_records
from kalito_mcp.pins.adding import add_new_pins
from kalito_mcp.pins.collector import PinCollector
from kalito_mcp.pins.found import ANSWERS, is_found_pin
from kalito_mcp.ports.clock import Clock
from kalito_mcp.ports.conversations import ConversationReader, PinDraft
from kalito_mcp.ports.records import RecordWriter
from kalito_mcp.ports.store import Overtaken, ReadView, Store, WriteTransaction
from kalito_mcp.records.historian import get_record
from kalito_mcp.runtime.long_texts import read_aside
from kalito_mcp.summaries.rewriter import SummaryRewriter

if TYPE_CHECKING:
    from kalito_mcp.graph.store import GraphStore

T = TypeVar("T")
_HAS_DERIVED: Final = (RecordType.MESSAGE, RecordType.PIN, RecordType.SUMMARY)
_IN_GRAPHS: Final = (RecordType.MESSAGE, RecordType.PIN)
_PROMOTED: Final = (FinalizeStage.PROMOTION, FinalizeStage.CHECKPOINT)


@dataclass(frozen=True, slots=True)
class CascadePlan:
    """What `Cascade.apply` will need, of a record as it was seen: the canonical keys of its new text, or of all texts
    of one that is to be erased; and the messages that its automatic pins are made of, with these pins."""

    scope: Scope
    record: MemoryRecord
    keys: Sequence[str] = ()
    messages: Sequence[MessageWithImportance] = ()
    pins: Sequence[PinDraft] = ()

    @property
    def owner(self) -> str:
        """Whose record it is."""
        return self.scope.owner


@dataclass(frozen=True, slots=True)
class CascadeTransaction:
    """The write transaction of one change to a record, and the graphs that may contain it, by scope."""

    plan: CascadePlan
    transaction: WriteTransaction
    graphs: Sequence[tuple[Scope, "GraphStore"]] = ()

    @property
    def records(self) -> RecordWriter:
        """Whole records and their edits."""
        return self.transaction.records


@dataclass(frozen=True, slots=True)
class CascadeResult:
    """What changed with a record: the ids of the pins erased and the summaries rewritten.

    `erased_keys` are the canonical keys of all erased texts, including earlier versions.
    """

    erased: tuple[str, ...] = ()
    rewritten: tuple[str, ...] = ()
    erased_keys: tuple[str, ...] = ()


@dataclass(slots=True)
class _Change:
    """One change being applied. `after` is None if the record is about to be erased."""

    within: CascadeTransaction
    session: Session
    before: MemoryRecord
    after: MemoryRecord | None
    at_ms: int
    detached: list[str] = field(default_factory=list)
    erased_keys: list[str] = field(default_factory=list)

    @property
    def records(self) -> RecordWriter:
        return self.within.records

    @property
    def editor(self) -> Editor:
        """The author of the derived edits: the memory, with this version as the cause."""
        return _because_of(self.after or self.before)

    @property
    def is_back(self) -> bool:
        """Whether the record was hidden before and is visible now."""
        return _visible_words(self.before) is None and self.after is not None and _visible_words(self.after) is not None

    @property
    def is_visible(self) -> bool:
        """Whether the record exists and is visible after the change."""
        return self.after is not None and _visible_words(self.after) is not None


class Cascade:
    """Changes what was derived from a record together with the record."""

    def __init__(
        self,
        store: Store,
        cache: GraphCache,
        summaries: SummaryRewriter,
        pins: PinCollector,
        observer: Observer,
        clock: Clock,
    ) -> None:
        self._store = store
        self._cache = cache
        self._summaries = summaries
        self._pins = pins
        self._policy = observer.policy
        self._clock = clock

    async def change(
        self, plan: CascadePlan, work: Callable[[CascadeTransaction, MemoryRecord], Coroutine[Any, Any, T]]
    ) -> T:
        """The result of `work` in a write transaction that may change the record of the plan, with the record and the
        graphs that may contain it. Graphs that do not exist are not created.

        Raises:
            Overtaken: the record was changed, or a graph created or removed; plan the change again.
        """
        scopes = _graph_scopes(plan.owner, plan.record)
        kept = await self._store.read(partial(_with_graph, scopes))

        async def change(transaction: WriteTransaction, graphs: Sequence["GraphStore"]) -> T:
            record = await get_record(transaction.records, plan.scope, plan.record.id)
            if record.revision != plan.record.revision or await _with_graph(scopes, transaction) != kept:
                raise Overtaken
            return await work(CascadeTransaction(plan, transaction, tuple(zip(kept, graphs, strict=True))), record)

        return await self._cache.change(kept, change)

    async def prepare(self, scope: Scope, record: MemoryRecord, content: Mapping[str, Any]) -> CascadePlan:
        """Read what `apply` will need of the record as it is with this content, before the transaction that writes it:
        the sentences of its summaries, and a message's pins."""
        owner, plan = scope.owner, CascadePlan(scope, record)
        text, after = str(content["text"]), replace(record, content=content)
        if _visible_words(after) == _visible_words(record):
            return plan
        await self._prepare_summaries(owner, record, None if _visible_words(after) is None else text)
        if record.type is not RecordType.MESSAGE or record.seq is None or _visible_words(after) is None:
            return plan
        seq, keys = record.seq, (await read_aside(len(text), partial(canonical_key, text)),)

        async def look(view: ReadView) -> tuple[bool, Sequence[MessageWithImportance]]:
            session = await view.sessions.get(_session_scope(owner, record))
            if session is None or seq > session.pinned_seq:
                return False, ()
            return session.project is not None, await _around(view.conversations, session, seq)

        has_project, around = await self._store.read(look)
        if not around:
            return replace(plan, keys=keys)
        messages = [
            replace(one, text=text, name=content.get("name"), is_hidden=False) if one.seq == record.seq else one
            for one in around
        ]
        pins = await self._pins.drafts(messages, seq - 1, has_project)
        return replace(plan, keys=keys, messages=_searched(messages), pins=pins)

    async def prepare_erasing(self, scope: Scope, record: MemoryRecord, keys: Sequence[str]) -> CascadePlan:
        """The same for a record that is about to be erased, whose texts have these canonical keys."""
        await self._prepare_summaries(scope.owner, record, None)
        return CascadePlan(scope, record, keys)

    async def _prepare_summaries(self, owner: str, record: MemoryRecord, text: str | None) -> None:
        if record.session_id is not None and record.type in (RecordType.MESSAGE, RecordType.SUMMARY):
            await self._summaries.prepare(self._store, _session_scope(owner, record), record, text)

    async def apply(
        self, within: CascadeTransaction, *, before: MemoryRecord, after: MemoryRecord | None
    ) -> CascadeResult:
        """Update what was derived from the record. Call it after `after` is written; None means that it is about to be
        erased.

        A message's automatic pins are forgotten if its text no longer contains them, and restored if it does again.
        Erasing a message erases all its pins, and pins of the user's answer that quote it. Summaries that cover the
        record are rewritten, and graph nodes take its new text. Without a change of text or visibility, it does
        nothing.
        """
        if before.session_id is None or before.type not in _HAS_DERIVED:
            return CascadeResult()
        if after is not None and _visible_words(before) == _visible_words(after):
            return CascadeResult()
        session = await within.transaction.sessions.get(_session_scope(within.plan.owner, before))
        assert session is not None  # noqa: S101 - the record belongs to it, and sessions stay
        change = _Change(within, session, before, after, self._clock.now_ms())
        erased: list[str] = []
        change.detached.append(before.id)
        if after is None:
            change.erased_keys += within.plan.keys
            erased = await self._erase_pins(change)
        elif before.type is RecordType.MESSAGE:
            await self._change_pins(change, after)
        rewritten: list[str] = []
        if before.type is not RecordType.PIN:
            rewritten = await self._summaries.rewrite(
                within.transaction,
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
        for pin in (*await change.records.pins_of(change.before), *await self._quoting(change)):
            plan = planned_erasure(pin, await change.records.edits(pin))
            change.erased_keys += plan.canonical_keys
            await erase_record(change.records, change.within.plan.owner, pin, plan, now_ms=change.at_ms)
            erased.append(pin.id)
        change.detached += erased
        return erased

    async def _change_pins(self, change: _Change, after: MemoryRecord) -> None:
        """Bring the message's automatic pins, and those that quote it, in line with its text: forget stale ones,
        restore those that its earlier edits had removed, add new ones."""
        quoting = await self._quoting(change)
        pins = [pin for pin in (*await change.records.pins_of(change.before), *quoting) if is_found_pin(pin)]
        wanted = await self._wanted(change, has_quoting=bool(quoting))
        has_its_words = change.is_back and _words(after) == _words(change.before)
        for pin in pins:
            if pin.is_deleted:
                # A forgotten pin's last edit is the one that forgot it.
                forgotten_by = (await change.records.edits(pin))[-1].editor
                if (has_its_words and forgotten_by == _because_of(change.before)) or (
                    pin.client_key in wanted and (forgotten_by.id or "").startswith(_cause(after.id))
                ):
                    await self._set_deleted_at(change, pin, None)
            elif not (has_its_words or pin.client_key in wanted):
                await self._set_deleted_at(change, pin, change.at_ms)
                change.detached.append(pin.id)
        known = {pin.client_key for pin in pins}
        new = [draft for key, draft in wanted.items() if key not in known]
        if new:
            await add_new_pins(change.within.transaction, change.session, new)

    async def _quoting(self, change: _Change) -> list[MemoryRecord]:
        """The automatic pins of the user's answer that quote the message, or did before somebody changed them."""
        seq, conversations = change.before.seq, change.within.transaction.conversations
        if seq is None or change.before.role is not Role.ASSISTANT:
            return []
        found: list[MemoryRecord] = []
        for answer in await conversations.messages(change.session, first_seq=seq + 1, last_seq=seq + 1):
            record = await change.records.record(
                _session_scope(change.within.plan.owner, change.before), answer.record_id
            )
            for pin in [] if record is None else await change.records.pins_of(record):
                texts = texts_ever(pin, await change.records.edits(pin)) if pin.is_automatic else ()
                found += [pin] if any(ANSWERS in text for text in texts) else []
        return found

    async def _wanted(self, change: _Change, *, has_quoting: bool) -> dict[str | None, PinDraft]:
        """The automatic pins that the message's new text yields, by key, with any pins of its answer that quote it.
        Empty if owed work has yet to search it.

        Raises:
            Overtaken: it was planned with other messages around it.
        """
        seq = change.before.seq
        if not change.is_visible or seq is None or seq > change.session.pinned_seq:
            return {}
        plan = change.within.plan
        messages = await _around(change.within.transaction.conversations, change.session, seq)
        if _searched(messages) != plan.messages:
            raise Overtaken
        return {
            draft.client_key: draft
            for draft in plan.pins
            if draft.source_message_id == change.before.id or (has_quoting and ANSWERS in draft.content)
        }

    async def _set_deleted_at(self, change: _Change, pin: MemoryRecord, deleted_at: int | None) -> None:
        edit_type = EditType.RESTORE if deleted_at is None else EditType.DELETE
        content = with_changes(pin.content, {DELETED_AT: deleted_at})
        await change.records.change(pin, self._summaries.edit(content, edit_type, change.editor, change.at_ms))

    async def _change_graphs(self, change: _Change) -> None:
        for scope, graph in change.within.graphs:
            owner = Scope(owner=change.within.plan.owner)
            was_in_graph = await detach_records(graph, change.detached, change.erased_keys, change.records, owner)
            if self._policy.enabled and change.is_visible and change.before.type is RecordType.MESSAGE:
                is_back = change.is_back and (scope.session is not None or change.session.stage in _PROMOTED)
                if was_in_graph or is_back:
                    await self._observe(change, graph)

    async def _observe(self, change: _Change, graph: "GraphStore") -> None:
        seq, session = change.before.seq, change.session
        if seq is None or seq > session.observed_seq:
            return  # it is added when the graph is next needed
        messages = await change.within.transaction.conversations.messages(
            session, first_seq=seq - LOOK_BACK, last_seq=min(seq + LOOK_BACK, session.observed_seq)
        )
        text = change.after.text if change.after is not None else ""
        observe_again(graph, messages, seq, self._policy, {text: change.within.plan.keys[0]})


async def _around(conversations: ConversationReader, session: Session, seq: int) -> Sequence[MessageWithImportance]:
    """The message, the one before, which may ask for its code, and the next one, which may confirm it."""
    return await conversations.messages(session, first_seq=max(1, seq - 1), last_seq=seq + 1)


def _searched(messages: Sequence[MessageWithImportance]) -> list[MessageWithImportance]:
    """The messages without what their pins do not depend on."""
    return [
        replace(one, model_id=None, token_usage=None, importance_score=0.0, tokens=0, client_key=None)
        for one in messages
    ]


def _graph_scopes(owner: str, record: MemoryRecord) -> list[Scope]:
    if record.session_id is None or record.type not in _IN_GRAPHS:
        return []
    return [_session_scope(owner, record), Scope(owner=owner, agent=record.agent_id)]


def _session_scope(owner: str, record: MemoryRecord) -> Scope:
    return Scope(owner=owner, agent=record.agent_id, session=record.session_id)


def _visible_words(record: MemoryRecord) -> tuple[str, str | None] | None:
    """The words that pins, summaries and graphs may repeat; None if the record is hidden."""
    return None if record.is_deleted or record.visibility is Visibility.INTERNAL else _words(record)


def _words(record: MemoryRecord) -> tuple[str, str | None]:
    return record.text, record.content.get("name")


async def _with_graph(scopes: Sequence[Scope], view: ReadView | WriteTransaction) -> list[Scope]:
    """The scopes that have a graph."""
    return [scope for scope in scopes if (await view.graphs.state(scope)).revision]


def _because_of(record: MemoryRecord) -> Editor:
    return Editor(EditorType.SYSTEM, _cause(record.id) + str(record.revision))


def _cause(record_id: str) -> str:
    return f"{SYSTEM_EDITOR.id}:{record_id}@"
