"""The tool that forgets and erases: forget."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated, Any, Final

from mcp.server.elicitation import AcceptedElicitation, ElicitationResult
from mcp.server.mcpserver import Context, Elicit, Resolve
from mcp.types import CallToolResult
from pydantic import BaseModel, Field

from kalito_mcp.domain.erasing import ForgetPreview, ForgetRequest, PurgeReport
from kalito_mcp.domain.memory_records import MemoryRecord
from kalito_mcp.errors import Conflict, InvalidInput, RecordErased
from kalito_mcp.memory import Memory
from kalito_mcp.server.memory_handle import MemoryHandle, handle_of
from kalito_mcp.server.tools.answers import answer
from kalito_mcp.server.tools.derived import derived_from, excerpt, listed, more, shown
from kalito_mcp.server.tools.records import editor_of
from kalito_mcp.server.tools.shapes import ForgottenRecords
from kalito_mcp.text.plurals import plural

RecordIds = list[Annotated[str, Field(min_length=1, max_length=200)]]
_ASKED: Final = 10
_SHOWN: Final = 50
_NOT_CONFIRMED: Final = "Nothing was erased: the user did not confirm."
_FIRST: Final = "a purge cannot be undone: ask the user first, then call again with confirmed=true"


class Confirmation(BaseModel):
    """What the user answers before anything is erased."""

    erase: bool = Field(description="Erase for good. This cannot be undone.")


async def ask_before_erasing(
    context: Context[None, Any],
    record_ids: list[str] | None,
    purge: bool,
    confirmed: bool,
    about: str | None,
    identifier: str | None,
    token: str | None,
    project: str | None,
) -> Elicit[Confirmation] | Confirmation:
    """Ask the user before records are erased, if the host can ask. A preview erases nothing.

    Raises:
        Conflict: the host cannot ask, and `confirmed` is false. RecordNotFound: a record does not exist.
    """
    if not purge or (not record_ids and not token):
        return Confirmation(erase=False)
    memory = await handle_of(context).memory_for(project)
    if record_ids:
        found = await _to_erase(memory, record_ids)
    else:
        preview = await memory.records.preview_forgetting(ForgetRequest(about, identifier, is_purge=True))
        if preview.token != token:
            return Confirmation(erase=False)  # the answer is a new preview
        found = await _to_erase(memory, [one.id for one in preview.records])
    if not found:
        return Confirmation(erase=True)  # all are erased already; the files are cleaned once more
    capabilities = context.client_capabilities
    if capabilities is None or capabilities.elicitation is None:
        if not confirmed:
            raise Conflict(_FIRST)
        return Confirmation(erase=True)
    listed: list[str] = []
    for one in found[:_ASKED]:
        pins, _ = await memory.records.derived_from(one.id)
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


class ForgettingTools:
    """The tool that forgets and erases records."""

    def __init__(self, opened: MemoryHandle) -> None:
        self._opened = opened

    async def forget(
        self,
        context: Context[None, Any],
        confirmation: Annotated[ElicitationResult[Confirmation], Resolve(ask_before_erasing)],
        record_ids: Annotated[
            RecordIds | None, Field(description="As returned: `msg_45`.", min_length=1, max_length=100)
        ] = None,
        about: Annotated[
            str | None, Field(description="Or: everything on this person, thing or topic.", max_length=200)
        ] = None,
        identifier: Annotated[
            str | None, Field(description="Or: everything with this number, key or email.", max_length=200)
        ] = None,
        token: Annotated[str | None, Field(description="From the preview.", max_length=20)] = None,
        purge: Annotated[
            bool, Field(description="Erase for good, everywhere; only if the user explicitly asks.")
        ] = False,
        confirmed: Annotated[
            bool, Field(description="The user has confirmed the purge; if the host cannot ask.")
        ] = False,
        project: Annotated[
            str | None, Field(description="For about and identifier, as in search_memory.", max_length=1_000)
        ] = None,
    ) -> Annotated[CallToolResult, ForgottenRecords]:
        """Hide records from every context and search, until `restore` or the user says them again. With about or
        identifier it first returns a preview: ask the user, then call again with its token."""
        memory = await self._opened.memory_for(project)
        is_agreed = isinstance(confirmation, AcceptedElicitation) and confirmation.data.erase
        if about is None and identifier is None:
            if not record_ids:
                raise InvalidInput("nothing to forget is named; send record_ids, about or identifier")
            if token is not None:
                raise InvalidInput("token belongs to about or identifier; send the arguments of its preview")
            if not purge:
                return await self._forget(context, memory, record_ids)
            found = await _to_erase(memory, record_ids)
            return await self._erased(await memory.purge(record_ids), found) if is_agreed else _not_erased()
        if record_ids:
            raise InvalidInput("send record_ids, or about and identifier, not both")
        request = ForgetRequest(about, identifier, is_purge=purge)
        preview = await memory.records.preview_forgetting(request)
        if token is None or token != preview.token:
            return _preview(preview, request, is_changed=token is not None)
        if purge and not is_agreed:
            return _not_erased()
        if purge:
            found = await _to_erase(memory, [one.id for one in preview.records])
            return await self._erased(await memory.records.purge_previewed(request, token), found)
        forgotten = await memory.records.forget_previewed(request, token, editor=editor_of(context))
        return await self._forgotten(memory, forgotten)

    async def _forget(self, context: Context[None, Any], memory: Memory, record_ids: Sequence[str]) -> CallToolResult:
        given = list(dict.fromkeys(record_ids))
        for record_id in given:
            await memory.records.get_all(record_id)
        editor = editor_of(context)
        hidden = {one.id: one for record_id in given for one in await memory.forget(record_id, editor=editor)}
        return await self._forgotten(memory, list(hidden.values()))

    async def _forgotten(self, memory: Memory, forgotten: Sequence[MemoryRecord]) -> CallToolResult:
        ids = [one.id for one in forgotten]
        derived = await derived_from(memory, forgotten)
        return answer(
            "\n".join([f"Forgot {listed(ids)}. `restore` brings them back.", *derived.lines()]),
            ForgottenRecords(
                forgotten=shown(ids),
                rewritten=shown(derived.rewritten),
                more=more(forgotten=ids, rewritten=derived.rewritten, still_says=derived.still_says),
                still_says=derived.pins or None,
            ),
        )

    async def _erased(self, report: PurgeReport, found: Sequence[MemoryRecord]) -> CallToolResult:
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


def _preview(preview: ForgetPreview, request: ForgetRequest, *, is_changed: bool) -> CallToolResult:
    does = "erase for good" if request.is_purge else "forget"
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
