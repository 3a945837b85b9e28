"""Recognises messages and texts that were stored before, or erased for good. Reads only."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kalito_mcp.domain.records import RecordType
from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.time import to_iso
from kalito_mcp.domain.validation import message_number
from kalito_mcp.errors import Conflict
from kalito_mcp.ports.conversations import AppendedMessage, MessageDraft
from kalito_mcp.ports.records import ErasedText, RecordReader
from kalito_mcp.records.client_keys import check_same_words, known_by_key


@dataclass(frozen=True, slots=True)
class StoredBefore:
    """The drafts of a batch that are not new, by their places: where they are stored, or were before they were erased.
    `repeats` have the client_key of an earlier draft: the place of that."""

    found: Mapping[int, AppendedMessage]
    repeats: Mapping[int, int]

    def __contains__(self, at: int) -> bool:
        return at in self.found or at in self.repeats


async def stored_before(records: RecordReader, place: Scope, drafts: Mapping[int, MessageDraft]) -> StoredBefore:
    """Which of the drafts are not new to the session of this place.

    Raises:
        ClientKeyReused: a known `client_key` came with another role or text.
    """
    known = await known_by_key(records, place, RecordType.MESSAGE, [draft.client_key for draft in drafts.values()])
    found: dict[int, AppendedMessage] = {}
    for at, draft in drafts.items():
        if (before := known.get(draft.client_key)) is not None:
            check_same_words(draft.client_key, is_same=(before.text, before.role) == (draft.text, draft.role))
            found[at] = AppendedMessage(message_number(before.id), before.seq or 0, is_new=False)
    found |= await _erased(records, place, {at: draft for at, draft in drafts.items() if at not in found})
    firsts: dict[str, int] = {}
    repeats: dict[int, int] = {}
    for at, draft in drafts.items():
        if at in found or draft.client_key is None:
            continue
        first = firsts.setdefault(draft.client_key, at)
        if first != at:
            said = drafts[first]
            check_same_words(draft.client_key, is_same=(said.text, said.role) == (draft.text, draft.role))
            repeats[at] = first
    return StoredBefore(found, repeats)


async def _erased(
    records: RecordReader, place: Scope, drafts: Mapping[int, MessageDraft]
) -> dict[int, AppendedMessage]:
    """The drafts that are erased messages of the owner: with the same text, and the same client_key or time."""
    keys = {draft.client_key for draft in drafts.values() if draft.client_key is not None}
    texts = {draft.text for draft in drafts.values()}
    by_text: dict[str, list[ErasedText]] = {}
    for one in await records.erased_texts(place.anywhere(), RecordType.MESSAGE, texts, keys):
        by_text.setdefault(one.text, []).append(one)
    return {
        at: AppendedMessage(one.number, one.seq, is_new=False, is_erased=True)
        for at, draft in drafts.items()
        for one in by_text.get(draft.text, ())
        if one.created_at == draft.created_at or (one.client_key is not None and one.client_key == draft.client_key)
    }


async def refuse_erased(records: RecordReader, scope: Scope, record_type: RecordType, texts: Sequence[str]) -> None:
    """Refuse a new record of this type with a text that an erased one had.

    Raises:
        Conflict: one of the texts was erased.
    """
    if erased := await records.erased_texts(scope, record_type, texts):
        last, noun = erased[-1], "note or document" if record_type is RecordType.DOCUMENT else record_type
        raise Conflict(
            f"a {noun} with this text ({len(last.text):,} characters) was erased for good on "
            f"{to_iso(last.purged_at)[:10]} and stays erased; nothing was written. Put it in other words if you need "
            "it after all"
        )
