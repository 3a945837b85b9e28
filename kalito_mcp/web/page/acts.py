"""What a person does to records on the page. Each act hands back the one that undoes it."""

from typing import Annotated, Final
from urllib.parse import quote

from pydantic import Field

from kalito_mcp.domain.records import RecordType
from kalito_mcp.errors import SessionFinalized
from kalito_mcp.memory.verbs import forgetting, records, search
from kalito_mcp.memory.verbs.shapes import ReachName, RecordName, Text, Version
from kalito_mcp.text.plurals import plural
from kalito_mcp.web.page.view import Act, Done, Nothing, Undo, ViewFields, Visit, link

_MOST: Final = 1_000


class Chosen(ViewFields):
    """Records that were ticked, or the one of a button."""

    record_ids: Annotated[list[RecordName], Field(min_length=1, max_length=_MOST)]


class Correction(ViewFields):
    """The right words for a record that the person has seen at this revision."""

    record_id: RecordName
    revision: Version
    text: Text


class EarlierVersion(ViewFields):
    """An earlier version of a record, to go back to."""

    record_id: RecordName
    version: Version


class Rated(ViewFields):
    """A message that did not help, or did."""

    message_id: RecordName


class NewPin(ViewFields):
    """A record whose words are to be known from now on, and where."""

    record_id: RecordName
    scope: ReachName = "person"


async def forget(visit: Visit[Chosen]) -> Done:
    """Hide records from every context and search."""
    found = await forgetting.forget(visit.caller(), forgetting.NamedRecords(record_ids=visit.sent.record_ids))
    ids = [one.id for one in found]
    return Done(f"{plural(len(ids), 'record')} forgotten", Undo("restore", {"record_ids": ids}))


async def restore(visit: Visit[Chosen]) -> Done:
    """Bring back what was forgotten."""
    ids: list[str] = []
    for record_id in visit.sent.record_ids:
        back = await records.restore(visit.caller(), records.Restore(record_id=record_id))
        ids += [one.id for one in back.records] if back.is_changed else []
    return Done(f"{plural(len(ids), 'record')} brought back", Undo("forget", {"record_ids": ids}) if ids else None)


async def correct(visit: Visit[Correction]) -> Done:
    """Replace the words of a record. The old ones stay in its history."""
    sent = visit.sent
    changed = await records.update_memory(
        visit.caller(),
        records.UpdateMemory(record_id=sent.record_id, changes={"text": sent.text}, expected_revision=sent.revision),
    )
    if changed.revision == sent.revision:
        return Done("Nothing changed: these are its words already")
    undo = Undo("revert", {"record_id": sent.record_id, "version": sent.revision})
    return Done("Corrected", undo, more=link(f"/r/{quote(sent.record_id, safe='')}", like=sent.revision))


async def revert(visit: Visit[EarlierVersion]) -> Done:
    """Give a record the content of an earlier version."""
    sent, before = visit.sent, await visit.memory.records.get(visit.sent.record_id)
    await records.restore(visit.caller(), records.Restore(record_id=sent.record_id, version=sent.version))
    undo = Undo("revert", {"record_id": sent.record_id, "version": before.revision})
    return Done(f"Back to version {sent.version}", undo)


async def pin(visit: Visit[NewPin]) -> Done:
    """Have every conversation of the person, or of the project, know a record's words."""
    record = await visit.memory.records.get(visit.sent.record_id)
    memory = visit.memory if record.project is None else await visit.memory.in_project(record.project)
    new = records.CreatePin(content=record.text, scope=visit.sent.scope, confirmed=True)
    if record.type is RecordType.MESSAGE and record.session_id is not None:
        # Made from the message, it is erased with it.
        source = {"session_id": record.session_id, "source_message_id": record.id}
        try:
            made = await records.create_pin(visit.caller(memory), new.model_copy(update=source))
        except SessionFinalized:
            made = await records.create_pin(visit.caller(memory), new)
    else:
        made = await records.create_pin(visit.caller(memory), new)
    undo = None if made.is_known else Undo("forget", {"record_ids": [made.id]})
    return Done("It is known already" if made.is_known else "Pinned", undo)


async def not_this(visit: Visit[Rated]) -> Done:
    """Note that a passage did not help. Similar questions get other answers first."""
    message_id = visit.sent.message_id
    await search.record_feedback(visit.caller(), search.Feedback(target_id=message_id, label="down"))
    return Done("Noted: not this", Undo("after_all", {"message_id": message_id}))


async def after_all(visit: Visit[Rated]) -> Done:
    """Take that back."""
    message_id = visit.sent.message_id
    await visit.memory.conversations.withdraw_feedback(message_id, "down")
    return Done("Taken back", Undo("not_this", {"message_id": message_id}))


async def dismiss(visit: Visit[Nothing]) -> Done:
    """Close the undo bar."""
    return Done("")


ACTS: Final = (
    Act("forget", forget, Chosen),
    Act("restore", restore, Chosen),
    Act("correct", correct, Correction),
    Act("revert", revert, EarlierVersion),
    Act("pin", pin, NewPin),
    Act("not_this", not_this, Rated),
    Act("after_all", after_all, Rated),
    Act("dismiss", dismiss, Nothing),
)
