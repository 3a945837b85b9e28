"""Endpoints that erase, and those that forget or erase all that speaks of a subject, after a preview."""

from typing import Final

from kalito_mcp.memory.verbs import forgetting as verbs
from kalito_mcp.memory.verbs.shapes import Output
from kalito_mcp.web.rest.endpoint import Call, InProject, Reply, serves
from kalito_mcp.web.rest.records import Changed, reply_with_changes


class Purged(Output):
    """What is gone. `rewritten` are summaries and snapshots that were rewritten without it; `remaining` are places that
    may still have the words, and what to do there."""

    erased: list[str]
    rewritten: list[str]
    remaining: dict[str, str]


class FoundRecord(Output):
    """A record, and the beginning of its text."""

    id: str
    text: str


class Preview(Output):
    """What would be forgotten or erased, oldest first. `token` stands for exactly these records; left out if there are
    no records."""

    records: list[FoundRecord]
    token: str | None = None


async def purge_records(call: Call[verbs.NamedRecords, InProject]) -> Reply:
    """Erase records for good."""
    return Reply(Purged(**(await verbs.purge(await call.caller(), call.body)).to_dict()))


async def preview_forgetting(call: Call[verbs.SubjectToPreview, InProject]) -> Reply:
    """What would be forgotten."""
    found = await verbs.preview(await call.caller(), call.body)
    return Reply(Preview(records=[FoundRecord(id=one.id, text=one.text) for one in found.records], token=found.token))


async def forget_subject(call: Call[verbs.PreviewedSubject, InProject]) -> Reply:
    """Forget what a preview listed."""
    return await reply_with_changes(call, await verbs.forget_previewed(await call.caller(), call.body))


async def purge_subject(call: Call[verbs.PreviewedSubject, InProject]) -> Reply:
    """Erase what a preview listed."""
    return Reply(Purged(**(await verbs.purge_previewed(await call.caller(), call.body)).to_dict()))


FORGETTING: Final = (
    serves(verbs.PURGE, "POST", "/purge", purge_records, Purged, tag="records", is_idempotent=True),
    serves(
        verbs.PREVIEW, "POST", "/forgetting/preview", preview_forgetting, Preview, tag="records", is_idempotent=True
    ),
    serves(verbs.FORGET_SUBJECT, "POST", "/forgetting", forget_subject, Changed, tag="records", is_idempotent=True),
    serves(verbs.PURGE_SUBJECT, "POST", "/forgetting/purge", purge_subject, Purged, tag="records", is_idempotent=True),
)
