"""Forgetting and erasing: records by their ids, or after a preview all that speaks of a subject."""

from collections.abc import Sequence
from typing import Annotated, Final

from pydantic import Field

from kalito_mcp.domain.access import Permission
from kalito_mcp.domain.erasing import ForgetPreview, ForgetRequest, PurgeReport
from kalito_mcp.domain.memory_records import MemoryRecord
from kalito_mcp.memory.verbs.shapes import AgentName, Input, RecordName
from kalito_mcp.memory.verbs.verb import Caller, Verb

RecordIds = Annotated[list[RecordName], Field(description="As returned: `msg_45`.", min_length=1, max_length=100)]


class NamedRecords(Input):
    """Records to forget or to erase."""

    record_ids: RecordIds


class Subject(Input):
    """Everything on a person, a thing or a topic, or with a number, a key or an address."""

    about: Annotated[
        str | None, Field(description="Everything on this person, thing or topic.", min_length=1, max_length=200)
    ] = None
    identifier: Annotated[
        str | None, Field(description="Everything with this number, key or email.", min_length=1, max_length=200)
    ] = None
    agent_id: AgentName = None


class SubjectToPreview(Subject):
    """A subject to forget or to erase."""

    purge: Annotated[bool, Field(description="To erase: it includes what is forgotten.")] = False


class PreviewedSubject(Subject):
    """A subject, with the token of its preview, which stands for exactly the records that it listed."""

    token: Annotated[str, Field(description="From the preview.", min_length=1, max_length=40)]


async def forget(caller: Caller, sent: NamedRecords) -> Sequence[MemoryRecord]:
    """Hide records, or all parts of documents. Raises RecordNotFound, and then nothing was changed."""
    named = list(dict.fromkeys(sent.record_ids))
    for record_id in named:
        await caller.memory.records.get_all(record_id)
    return list(
        {
            one.id: one
            for record_id in named
            for one in await caller.memory.forget(
                record_id, editor=caller.editor, expected_revision=caller.expected_revision
            )
        }.values()
    )


async def purge(caller: Caller, sent: NamedRecords) -> PurgeReport:
    """Erase records for good."""
    return await caller.memory.purge(sent.record_ids)


async def preview(caller: Caller, sent: SubjectToPreview) -> ForgetPreview:
    """What would be forgotten or erased of a subject."""
    request = ForgetRequest(sent.about, sent.identifier, is_purge=sent.purge)
    return await caller.memory.records.preview_forgetting(request, agent_id=sent.agent_id)


async def forget_previewed(caller: Caller, sent: PreviewedSubject) -> Sequence[MemoryRecord]:
    """Forget what a preview listed."""
    request = ForgetRequest(sent.about, sent.identifier)
    return await caller.memory.records.forget_previewed(
        request, sent.token, agent_id=sent.agent_id, editor=caller.editor
    )


async def purge_previewed(caller: Caller, sent: PreviewedSubject) -> PurgeReport:
    """Erase what a preview listed."""
    request = ForgetRequest(sent.about, sent.identifier, is_purge=True)
    return await caller.memory.records.purge_previewed(request, sent.token, agent_id=sent.agent_id)


FORGET: Final = Verb("forget", Permission.WRITE, "Forget a record: it can be restored", NamedRecords)
PURGE: Final = Verb("purge", Permission.ADMIN, "Erase records, and all that was made from them, for good", NamedRecords)
PREVIEW: Final = Verb("preview_forgetting", Permission.READ, "What would be forgotten of a subject", SubjectToPreview)
FORGET_SUBJECT: Final = Verb("forget_subject", Permission.WRITE, "Forget what a preview listed", PreviewedSubject)
PURGE_SUBJECT: Final = Verb(
    "purge_subject", Permission.ADMIN, "Erase what a preview listed, for good", PreviewedSubject
)
