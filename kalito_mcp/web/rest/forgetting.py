"""Endpoints that erase, and those that forget or erase all that speaks of a subject, after a preview."""

from typing import Annotated, Final

from pydantic import Field

from kalito_mcp.domain.access import Permission
from kalito_mcp.domain.erasing import ForgetRequest
from kalito_mcp.shapes import Output
from kalito_mcp.web.rest.endpoint import REST, Call, Endpoint, InProject, Input, Reply
from kalito_mcp.web.rest.records import Changed, RecordName, reply_with_changes
from kalito_mcp.web.rest.shapes import AgentName


class Purge(Input):
    """What to erase for good."""

    record_ids: Annotated[list[RecordName], Field(min_length=1, max_length=100)]


class Purged(Output):
    """What is gone. `rewritten` are summaries and snapshots that were rewritten without it; `remaining` are places that
    may still have the words, and what to do there."""

    erased: list[str]
    rewritten: list[str]
    remaining: dict[str, str]


class Subject(Input):
    """Everything that speaks of a person, a thing or a topic, or that has a number, a key or an address."""

    about: Annotated[str | None, Field(min_length=1, max_length=200)] = None
    identifier: Annotated[str | None, Field(min_length=1, max_length=200)] = None
    agent_id: AgentName = None


class PreviewSubject(Subject):
    """The same, to forget or to erase."""

    purge: Annotated[bool, Field(description="To erase: it includes what is forgotten.")] = False


class SubjectToken(Subject):
    """The same, with the token of its preview."""

    token: Annotated[str, Field(min_length=1, max_length=40)]


class FoundRecord(Output):
    """A record, and the beginning of its text."""

    id: str
    text: str


class Preview(Output):
    """What would be forgotten or erased, oldest first. `token` stands for exactly these records; left out if there are
    no records."""

    records: list[FoundRecord]
    token: str | None = None


async def purge_records(call: Call[Purge, InProject]) -> Reply:
    """Erase records for good."""
    report = await call.memory.purge(call.body.record_ids)
    return Reply(Purged(**report.to_dict()))


async def preview_forgetting(call: Call[PreviewSubject, InProject]) -> Reply:
    """What would be forgotten."""
    body = call.body
    request = ForgetRequest(body.about, body.identifier, is_purge=body.purge)
    found = await call.memory.records.preview_forgetting(request, agent_id=body.agent_id)
    return Reply(Preview(records=[FoundRecord(id=one.id, text=one.text) for one in found.records], token=found.token))


async def forget_subject(call: Call[SubjectToken, InProject]) -> Reply:
    """Forget what a preview listed."""
    body = call.body
    request = ForgetRequest(body.about, body.identifier)
    return await reply_with_changes(
        call,
        await call.memory.records.forget_previewed(request, body.token, agent_id=body.agent_id, editor=REST),
    )


async def purge_subject(call: Call[SubjectToken, InProject]) -> Reply:
    """Erase what a preview listed."""
    body = call.body
    request = ForgetRequest(body.about, body.identifier, is_purge=True)
    report = await call.memory.records.purge_previewed(request, body.token, agent_id=body.agent_id)
    return Reply(Purged(**report.to_dict()))


FORGETTING: Final = (
    Endpoint(
        "POST", "/purge", Permission.ADMIN, "Erase records, and all that was made from them, for good", purge_records,
        Purged, Purge, InProject, tag="records", is_idempotent=True,
    ),
    Endpoint(
        "POST", "/forgetting/preview", Permission.READ, "What would be forgotten of a subject", preview_forgetting,
        Preview, PreviewSubject, InProject, tag="records", is_idempotent=True,
    ),
    Endpoint(
        "POST", "/forgetting", Permission.WRITE, "Forget what a preview listed", forget_subject, Changed,
        SubjectToken, InProject, tag="records", is_idempotent=True,
    ),
    Endpoint(
        "POST", "/forgetting/purge", Permission.ADMIN, "Erase what a preview listed, for good", purge_subject, Purged,
        SubjectToken, InProject, tag="records", is_idempotent=True,
    ),
)  # fmt: skip
