"""The endpoint of the audit log: what was done for the principal's owner."""

from typing import Annotated, Any, Final

from pydantic import Field

from kalito_mcp.domain.access import Permission
from kalito_mcp.domain.audit import AuditEntry
from kalito_mcp.domain.time import from_iso, to_iso
from kalito_mcp.memory.verbs.shapes import Input, Output
from kalito_mcp.web.rest.cursors import cursor_of, place_in
from kalito_mcp.web.rest.endpoint import Call, Endpoint, Nothing, Reply


class AuditQuery(Input):
    """Which entries."""

    since: Annotated[
        str | None, Field(description="Only from this moment on: ISO 8601.", min_length=1, max_length=100)
    ] = None
    limit: Annotated[int, Field(description="The most entries to return.", ge=1, le=1_000)] = 100
    cursor: Annotated[str | None, Field(description="`next_cursor` of the page before.", max_length=1_000)] = None


class ChangeBody(Output):
    """What was done to some ids. `count` is of all of them, `ids` are the first fifty."""

    what: str
    count: int
    ids: list[str]


class AuditEntryBody(Output):
    """Who did what. `number` counts from 1 over all owners; `count` says how many equal calls the entry stands for."""

    number: int
    at: str
    principal: str
    client: str | None = None
    action: str
    outcome: str
    count: int
    changes: list[ChangeBody]


class AuditPage(Output):
    """Entries, the newest first."""

    entries: list[AuditEntryBody]
    next_cursor: str | None = None


async def read_audit(call: Call[Nothing, AuditQuery]) -> Reply:
    """The entries about the owner."""
    query = call.query
    since_ms = 0 if query.since is None else from_iso(query.since, "since", call.memory.zone)
    before = None if query.cursor is None else int(place_in(call, query, query.cursor, int)[0])
    found = await call.memory.access.audit(since_ms=since_ms, before=before, limit=query.limit)
    more = cursor_of(call, query, found[-1].number) if len(found) == query.limit else None
    return Reply(AuditPage(entries=[_shown(one) for one in found], next_cursor=more))


def _shown(entry: AuditEntry) -> AuditEntryBody:
    said = entry.said
    return AuditEntryBody(
        number=entry.number,
        at=to_iso(said.at),
        principal=said.principal,
        client=said.client,
        action=said.action,
        outcome=str(said.outcome),
        count=said.count,
        changes=[ChangeBody(what=one.what, count=one.count, ids=list(one.ids)) for one in said.changes],
    )


AUDIT: Final[tuple[Endpoint[Any, Any], ...]] = (
    Endpoint(
        "GET", "/audit", Permission.ADMIN, "Who did what", read_audit, AuditPage, Nothing, AuditQuery, tag="audit"
    ),
)
