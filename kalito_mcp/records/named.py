"""Checks the records that another one names, as its cause or as superseded. Reads only."""

from collections.abc import Collection, Mapping, Set
from typing import Any, Final

from kalito_mcp.domain.memory_records import DELETED_AT, MemoryRecord
from kalito_mcp.domain.scope import NO_LIMITS, Scope
from kalito_mcp.domain.spaces import space_of
from kalito_mcp.errors import AccessDenied, Conflict, RecordNotFound
from kalito_mcp.ports.records import RecordReader
from kalito_mcp.ports.spaces import SpaceReader

CAUSE: Final = "caused_by"
SUPERSEDES: Final = "supersedes"


async def check_named(records: RecordReader, scope: Scope, named: Mapping[str, Any] | None) -> None:
    """Refuse ids beyond the caller's limits with the message for ids that do not exist.

    Raises:
        RecordNotFound: the cause, or a superseded record, is not within the limits.
    """
    if scope.limits == NO_LIMITS or named is None:
        return
    if named.get(CAUSE) is not None:
        await check_cause(records, scope, str(named[CAUSE]))
    for one in named.get(SUPERSEDES) or ():
        if await records.record(scope.anywhere(), one) is None:
            raise _unknown(one)


async def check_cause(records: RecordReader, scope: Scope, cause: str, effect: MemoryRecord | None = None) -> None:
    """Check that a record of the owner, within the limits, can be the cause of a new one, or of `effect`.

    Raises:
        RecordNotFound: it does not exist.
        Conflict: the effect led to it.
    """
    found = await records.record(scope.anywhere(), cause)
    if found is None:
        raise RecordNotFound(f"no record {cause!r} for caused_by; send the id of a record")
    if effect is not None and effect.id in {found.id, *await records.causes(found)}:
        raise Conflict(f"{effect.id} led to {cause}, so {cause} cannot be its cause; leave caused_by out")


async def check_superseded(records: RecordReader, owner: str, record_id: str, known: Collection[str] = ()) -> None:
    """Check that what a written record supersedes are other records of its agent and project. `known` are those that it
    superseded before.

    Raises:
        RecordNotFound: one is not.
    """
    record = await records.record(Scope(owner), record_id)
    assert record is not None  # noqa: S101 - it was written in this transaction
    for one in record.content.get(SUPERSEDES) or ():
        if one not in known:
            found = await records.record(Scope(owner, record.agent_id), one)
            if found is None or found.id == record.id or found.project != record.project:
                raise _unknown(one)


async def check_may_end(
    spaces: SpaceReader, owner: str, user: str | None, before: MemoryRecord, content: Mapping[str, Any]
) -> None:
    """Check that `user` may end what a record of this owner, with this new content, supersedes and did not before. In a
    space, a writer ends what they shared themselves, and a curator what anybody did.

    Raises:
        AccessDenied: somebody else shared one of these records.
    """
    ended = _ended_by(content) - _ended_by(before.content)
    if (space := space_of(owner)) is None or not ended:
        return
    mine = {one.space.name: one for one in await spaces.memberships(user or "")}
    for one in (await spaces.shared(space, sorted(ended))).values():
        if space not in mine or not mine[space].may_change([one.user]):
            raise AccessDenied(
                f"{one.record_id} was shared by {one.user}; only they or a curator of {space!r} may end it: leave it "
                "out of supersedes, or ask one of them"
            )


def _ended_by(content: Mapping[str, Any]) -> Set[str]:
    """The ids that a record with this content supersedes: none while it is forgotten."""
    return set() if content.get(DELETED_AT) is not None else {*(content.get(SUPERSEDES) or ())}


def _unknown(record_id: str) -> RecordNotFound:
    return RecordNotFound(f"record {record_id!r} does not exist; use ids returned by a search")
