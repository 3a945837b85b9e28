"""Adds the pins of a session that are new to it."""

from collections.abc import Sequence

from kalito_mcp.domain.records import RecordType
from kalito_mcp.domain.scope import NO_LIMITS, Limits, Scope
from kalito_mcp.domain.sessions import Session
from kalito_mcp.ports.conversations import PinDraft
from kalito_mcp.ports.records import RecordReader
from kalito_mcp.ports.store import WriteTransaction
from kalito_mcp.records.client_keys import known_by_key
from kalito_mcp.records.named import check_superseded
from kalito_mcp.records.repetitions import scope_of_session
from kalito_mcp.runtime.long_texts import read_aside
from kalito_mcp.text.repetition import keys_of


async def add_new_pins(
    transaction: WriteTransaction, session: Session, drafts: Sequence[PinDraft], *, limits: Limits = NO_LIMITS
) -> int:
    """Add the pins and return how many were added. Skips those whose client_key the session knows, and those that say
    what was forgotten or erased within the limits.

    Raises:
        ClientKeyReused: a client_key was chosen for another request.
        RecordNotFound: a pin supersedes what does not exist.
    """
    records, place = transaction.records, scope_of_session(session, limits)
    keys = [draft.client_key for draft in drafts]
    known = set(await known_by_key(records, place.of_session(session.id), RecordType.PIN, keys))
    gone = await _gone(records, place, {draft.content for draft in drafts})
    fresh: list[PinDraft] = []
    for draft in drafts:
        if draft.client_key not in known and draft.content not in gone:
            fresh.append(draft)
            known |= {draft.client_key} - {None}
    await transaction.conversations.add_pins(session, fresh)
    for draft in fresh:
        if draft.supersedes:
            await check_superseded(records, session.owner, draft.id)
    return len(fresh)


async def _gone(records: RecordReader, place: Scope, contents: set[str]) -> set[str]:
    """Those of the contents that were erased, or repeat what was forgotten."""
    gone = {one.text for one in await records.erased_texts(place, RecordType.PIN, contents)}
    if not contents or not await records.has_forgotten_values(place.owner):
        return gone
    keys = await read_aside(sum(map(len, contents)), lambda: {content: keys_of(content) for content in contents})
    forgotten = await records.forgotten_values(place, frozenset[str]().union(*keys.values()))
    return gone | {content for content in contents if not keys[content].isdisjoint(forgotten)}
