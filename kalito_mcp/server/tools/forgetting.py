"""The tool that forgets and erases: forget."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated, Final

from mcp.server.apps import client_supports_apps
from mcp.server.elicitation import AcceptedElicitation, ElicitationResult
from mcp.server.mcpserver import Elicit, Resolve
from mcp.types import CallToolResult
from pydantic import BaseModel, Field

from kalito_mcp.domain.erasing import ForgetPreview, PurgeReport
from kalito_mcp.domain.memory_records import MemoryRecord
from kalito_mcp.errors import Conflict, InvalidInput, RecordErased
from kalito_mcp.memory import Memory
from kalito_mcp.memory.verbs import forgetting as verbs
from kalito_mcp.memory.verbs.shapes import Input
from kalito_mcp.memory.verbs.verb import Caller
from kalito_mcp.server.app.used import with_records
from kalito_mcp.server.tools.answers import answer
from kalito_mcp.server.tools.derived import derived_from, excerpt, listed, more, shown
from kalito_mcp.server.tools.serving import ToolContext, caller_of, serving
from kalito_mcp.server.tools.shapes import ForgottenRecords
from kalito_mcp.text.plurals import plural

_ASKED: Final = 10
_SHOWN: Final = 50
_NOT_CONFIRMED: Final = "Nothing was erased: the user did not confirm."
_FIRST: Final = "a purge cannot be undone: ask the user first, then call again with confirmed=true"


class Forget(Input):
    """The arguments of forget."""

    record_ids: verbs.RecordIds | None = None
    about: Annotated[
        str | None, Field(description="Or: everything on this person, thing or topic.", max_length=200)
    ] = None
    identifier: Annotated[
        str | None, Field(description="Or: everything with this number, key or email.", max_length=200)
    ] = None
    token: Annotated[str | None, Field(description="From the preview.", max_length=20)] = None
    purge: Annotated[bool, Field(description="Erase for good, everywhere; only if the user explicitly asks.")] = False
    confirmed: Annotated[bool, Field(description="The user has confirmed the purge; if the host cannot ask.")] = False
    project: Annotated[
        str | None, Field(description="For about and identifier, as in search_memory.", max_length=1_000)
    ] = None

    def to_preview(self) -> verbs.SubjectToPreview:
        """The subject."""
        return verbs.SubjectToPreview(about=self.about, identifier=self.identifier, purge=self.purge)


class Confirmation(BaseModel):
    """What the user answers before anything is erased."""

    erase: bool = Field(description="Erase for good. This cannot be undone.")


async def ask_before_erasing(context: ToolContext, sent: Forget) -> Elicit[Confirmation] | Confirmation:
    """Ask the user before records are erased, if the host can ask. A preview erases nothing.

    Raises:
        Conflict: the host cannot ask, and `confirmed` is false. RecordNotFound: a record does not exist.
    """
    if not sent.purge or (not sent.record_ids and not sent.token):
        return Confirmation(erase=False)
    caller = caller_of(context, await serving(context).opened.memory_for(sent.project))
    if sent.record_ids:
        found = await _to_erase(caller.memory, sent.record_ids)
    else:
        preview = await verbs.preview(caller, sent.to_preview())
        if preview.token != sent.token:
            return Confirmation(erase=False)  # the answer is a new preview
        found = await _to_erase(caller.memory, [one.id for one in preview.records])
    if not found:
        return Confirmation(erase=True)  # all are erased already; the files are cleaned once more
    capabilities = context.client_capabilities
    if capabilities is None or capabilities.elicitation is None:
        if not sent.confirmed:
            raise Conflict(_FIRST)
        return Confirmation(erase=True)
    listed: list[str] = []
    for one in found[:_ASKED]:
        pins, _ = await caller.memory.records.derived_from(one.id)
        listed += [f"- {each.id}: {excerpt(each.text)!r}" for each in (one, *pins)]
    rest = [f"- and {len(found) - _ASKED} more"] if len(found) > _ASKED else []
    return Elicit("\n".join(["Erase this from the memory for good?", *listed, *rest]), Confirmation)


async def _to_erase(memory: Memory, record_ids: Sequence[str]) -> list[MemoryRecord]:
    """The records that are not erased yet. Raises RecordNotFound if one does not exist."""
    found: list[MemoryRecord] = []
    for record_id in dict.fromkeys(record_ids):
        with suppress(RecordErased):
            found += await memory.records.get_all(record_id)
    return found


async def forget(
    context: ToolContext,
    sent: Forget,
    confirmation: Annotated[ElicitationResult[Confirmation], Resolve(ask_before_erasing)],
) -> Annotated[CallToolResult, ForgottenRecords]:
    """Hide records from every context and search, until `restore` or the user says them again. With about or
    identifier it first returns a preview: ask the user, then call again with its token."""
    caller = caller_of(context, await serving(context).opened.memory_for(sent.project))
    is_agreed = isinstance(confirmation, AcceptedElicitation) and confirmation.data.erase
    if sent.about is not None or sent.identifier is not None:
        return await _forget_subject(caller, sent, is_agreed=is_agreed, has_app=client_supports_apps(context))
    if not sent.record_ids:
        raise InvalidInput("nothing to forget is named; send record_ids, about or identifier")
    if sent.token is not None:
        raise InvalidInput("token belongs to about or identifier; send the arguments of its preview")
    named = verbs.NamedRecords(record_ids=sent.record_ids)
    if not sent.purge:
        return await _forgotten(caller, await verbs.forget(caller, named))
    return _erased(await verbs.purge(caller, named)) if is_agreed else _not_erased()


async def _forget_subject(caller: Caller, sent: Forget, *, is_agreed: bool, has_app: bool) -> CallToolResult:
    if sent.record_ids:
        raise InvalidInput("send record_ids, or about and identifier, not both")
    preview = await verbs.preview(caller, sent.to_preview())
    if sent.token is None or sent.token != preview.token:
        said = _preview(preview, is_purge=sent.purge, is_changed=sent.token is not None)
        found = ({"record_id": one.id, "text": one.text} for one in preview.records)
        return await with_records(caller.memory, said, found) if has_app else said
    subject = verbs.PreviewedSubject(about=sent.about, identifier=sent.identifier, token=sent.token)
    if not sent.purge:
        return await _forgotten(caller, await verbs.forget_previewed(caller, subject))
    return _erased(await verbs.purge_previewed(caller, subject)) if is_agreed else _not_erased()


async def _forgotten(caller: Caller, forgotten: Sequence[MemoryRecord]) -> CallToolResult:
    ids = [one.id for one in forgotten]
    derived = await derived_from(caller.memory, forgotten)
    return answer(
        "\n".join([f"Forgot {listed(ids)}. `restore` brings them back.", *derived.lines()]),
        ForgottenRecords(
            forgotten=shown(ids),
            rewritten=shown(derived.rewritten),
            more=more(forgotten=ids, rewritten=derived.rewritten, still_says=derived.still_says),
            still_says=derived.pins or None,
        ),
    )


def _erased(report: PurgeReport) -> CallToolResult:
    lines = [f"Erased for good: {listed(report.erased)}."]
    if report.rewritten:
        lines.append(f"Rewritten without the erased text: {listed(report.rewritten)}.")
    lines += [f"Could not clean {place}: {why}" for place, why in report.remaining.items()]
    return answer(
        "\n".join(lines),
        ForgottenRecords(
            erased=shown(report.erased),
            rewritten=shown(report.rewritten),
            more=more(erased=report.erased, rewritten=report.rewritten),
            not_reached=dict(report.remaining),
        ),
    )


def _preview(preview: ForgetPreview, *, is_purge: bool, is_changed: bool) -> CallToolResult:
    does = "erase for good" if is_purge else "forget"
    changed = "That token is of another list. " if is_changed else ""
    if preview.token is None:
        note = f"{changed}Nothing to {does}: no record matches (0)."
        return answer(note, ForgottenRecords(found=[], count=0, note=note))
    count, first = len(preview.records), preview.records[:_SHOWN]
    lines = [
        f"{changed}Nothing was changed yet. This would {does} {plural(count, 'record')}; if the user agrees, call "
        f"again with token={preview.token} and the same arguments:",
        *(f"- {one.id}: {one.text!r}" for one in first),
    ]
    if count > _SHOWN:
        lines.append(f"- and {count - _SHOWN} more")
    found = [one.id for one in first]
    return answer("\n".join(lines), ForgottenRecords(found=found, count=count, token=preview.token))


def _not_erased() -> CallToolResult:
    return answer(_NOT_CONFIRMED, ForgottenRecords(note=_NOT_CONFIRMED))
