"""Handles words that repeat something forgotten.

The user's own words in a conversation bring it back, if they were said after it was forgotten and state it. Other turns
of a conversation are stored, but hidden. Everything else is left out, and so is anything that repeats erased words.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

import anyio.to_thread

from kalito_mcp.domain.memory_records import DELETED_AT, SYSTEM_EDITOR, EditDraft, EditType, with_changes
from kalito_mcp.domain.records import Origin, Repetition, Role, message_record_id, origin_of_role
from kalito_mcp.domain.scope import NO_LIMITS, Limits, Scope
from kalito_mcp.domain.sessions import Session
from kalito_mcp.errors import Conflict
from kalito_mcp.ports.conversations import AppendedMessage, MessageDraft
from kalito_mcp.ports.records import ForgottenValue, RecordReader, RecordWriter
from kalito_mcp.ports.store import Store
from kalito_mcp.runtime.long_texts import LONG_CHARS, read_aside
from kalito_mcp.text.repetition import keys_of, keys_stated

_IN_CONVERSATION: Final = (Origin.USER, Origin.ASSISTANT, Origin.TOOL)


class Repetitions:
    """The drafts of a batch that repeat what was forgotten, by their places. Empty in a memory that forgot nothing.

    `keys` are the keys of some drafts, by their places (see `keys_of_long`).
    """

    def __init__(self, scope: Scope, keys: Mapping[int, frozenset[str]]) -> None:
        self._scope = scope
        self._keys = keys
        self._found: dict[int, Repetition] = {}
        self._stated: dict[int, frozenset[str]] = {}

    async def look_for(self, records: RecordReader, drafts: Mapping[int, MessageDraft]) -> Mapping[int, MessageDraft]:
        """Find them among these drafts of the batch, before they are appended. Returns the drafts to append."""
        if not await records.has_forgotten_values(self._scope.owner):
            return drafts
        back = set[str]()
        for place, draft in drafts.items():
            keys = self._keys.get(place)
            if keys is None:
                keys = await read_aside(len(draft.text), partial(keys_of, draft.text))
            forgotten = await records.forgotten_values(self._scope, keys - back)
            if not forgotten:
                continue
            stated = await read_aside(len(draft.text), partial(keys_stated, draft.text)) & forgotten.keys()
            if stated and _is_live(draft, forgotten):
                self._found[place], self._stated[place] = Repetition.BROUGHT_BACK, stated
                back |= stated
            elif _origin(draft) in _IN_CONVERSATION and not _is_erased(forgotten) and not _is_old(draft, forgotten):
                self._found[place] = Repetition.HIDDEN
            else:
                self._found[place] = Repetition.LEFT_OUT
        return {place: one for place, one in drafts.items() if self._found.get(place) is not Repetition.LEFT_OUT}

    async def settle(
        self,
        records: RecordWriter,
        appended: Mapping[int, AppendedMessage],
        drafts: Mapping[int, MessageDraft],
        now_ms: int,
    ) -> Mapping[int, AppendedMessage]:
        """Hide and bring back, after the others were appended. Returns what became of those that repeat something."""
        settled: dict[int, AppendedMessage] = {}
        for place, repetition in self._found.items():
            if repetition is Repetition.LEFT_OUT:
                settled[place] = AppendedMessage(0, 0, is_new=False, repetition=repetition)
                continue
            settled[place] = replace(appended[place], repetition=repetition)
            if repetition is Repetition.BROUGHT_BACK:
                await records.bring_back_values(self._scope, self._stated[place])
            else:
                await _hide(records, self._scope.owner, appended[place], drafts[place].tokens, now_ms)
        return settled


async def keys_of_long(store: Store, owner: str, drafts: Sequence[MessageDraft]) -> Mapping[int, frozenset[str]]:
    """The keys of the long drafts, by their places. Empty in a memory that forgot nothing.

    For before the transaction: to read a long text takes some tens of milliseconds, in which no other call could write.
    """
    texts = {place: draft.text for place, draft in enumerate(drafts) if len(draft.text) > LONG_CHARS}
    if not texts:
        return {}
    if not await store.read(lambda view: view.records.has_forgotten_values(owner)):
        return {}
    return await anyio.to_thread.run_sync(lambda: {place: keys_of(text) for place, text in texts.items()})


def scope_of_session(session: Session, limits: Limits = NO_LIMITS) -> Scope:
    """The agent and the project of a session, for a caller with these limits."""
    return Scope(session.owner, session.agent, project=session.project, limits=limits)


def repetition_refused() -> Conflict:
    """The error for a record that repeats what was forgotten."""
    return Conflict(
        "this was forgotten or erased, so it is not stored again. It comes back if the user says it again in a "
        "recorded message, or by restore"
    )


async def _hide(records: RecordWriter, owner: str, message: AppendedMessage, tokens: int, now_ms: int) -> None:
    record = await records.record(Scope(owner), message_record_id(message.id))
    assert record is not None  # noqa: S101 - it was appended in this transaction
    content = with_changes(record.content, {DELETED_AT: now_ms})
    await records.change(record, EditDraft(EditType.DELETE, SYSTEM_EDITOR, now_ms, content, tokens))


def _is_live(draft: MessageDraft, forgotten: Mapping[str, ForgottenValue]) -> bool:
    """Whether the user says it now, rather than before it was forgotten."""
    return draft.role is Role.USER and _origin(draft) is Origin.USER and not _is_old(draft, forgotten)


def _is_old(draft: MessageDraft, forgotten: Mapping[str, ForgottenValue]) -> bool:
    return draft.created_at < max(one.forgotten_at for one in forgotten.values())


def _is_erased(forgotten: Mapping[str, ForgottenValue]) -> bool:
    return any(one.is_erased for one in forgotten.values())


def _origin(draft: MessageDraft) -> Origin:
    return draft.origin or origin_of_role(draft.role)
