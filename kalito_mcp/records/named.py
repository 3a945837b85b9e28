"""Checks the records that another one names, as its cause or as superseded. Reads only."""

from collections.abc import Collection

from kalito_mcp.domain.memory_records import MemoryRecord
from kalito_mcp.domain.scope import Scope
from kalito_mcp.errors import Conflict, RecordNotFound
from kalito_mcp.ports.records import RecordReader

CAUSE = "caused_by"
SUPERSEDES = "supersedes"


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
    """Check that the records that a written one supersedes are others of its agent and project. `known` are those that
    it superseded before.

    Raises:
        RecordNotFound: one is not.
    """
    record = await records.record(Scope(owner), record_id)
    assert record is not None  # noqa: S101 - it was written in this transaction
    for named in record.content.get(SUPERSEDES) or ():
        found = None if named in known else await records.record(Scope(owner, record.agent_id), named)
        if named not in known and (found is None or found.id == record.id or found.project != record.project):
            raise RecordNotFound(f"record {named!r} does not exist; use ids returned by a search")
