"""What a person does to records on the page. Each act hands back the one that undoes it."""

from collections.abc import Sequence
from typing import Annotated, Final

from pydantic import Field

from kalito_mcp.domain.records import RecordType
from kalito_mcp.errors import InvalidInput, SessionFinalized
from kalito_mcp.memory.verbs import forgetting, records, search
from kalito_mcp.memory.verbs.shapes import ReachName, RecordName, Text, Version
from kalito_mcp.text.plurals import plural
from kalito_mcp.web.page.view import Act, Done, Nothing, Undo, ViewFields, Visit, link, record_url

_MOST: Final = 1_000


class Chosen(ViewFields):
    """Records that were ticked, or the one of a button."""

    record_ids: Annotated[list[RecordName], Field(min_length=1, max_length=_MOST)]


class Correction(ViewFields):
    """The right words for a record that the person has seen at this revision."""

    record_id: RecordName
    revision: Version
    text: Text


class EarlierVersions(ViewFields):
    """For each of these records the version to go back to, in the same order."""

    record_ids: Annotated[list[RecordName], Field(min_length=1, max_length=_MOST)]
    versions: Annotated[list[Version], Field(min_length=1, max_length=_MOST)]


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
    undo = back_to([(sent.record_id, sent.revision)])
    return Done("Corrected", undo, more=link(record_url(sent.record_id), like=sent.revision))


async def go_back(visit: Visit[EarlierVersions]) -> Done:
    """Give records the content of an earlier version each."""
    sent, before = visit.sent, list[tuple[str, int]]()
    if len(sent.record_ids) != len(sent.versions):
        raise InvalidInput("record_ids and versions are not of the same length; load the page again")
    for record_id, version in zip(sent.record_ids, sent.versions, strict=True):
        before.append((record_id, (await visit.memory.records.get(record_id)).revision))
        await records.restore(visit.caller(), records.Restore(record_id=record_id, version=version))
    back = (
        f"Back to version {sent.versions[0]}" if len(before) == 1 else f"{plural(len(before), 'record')} back as before"
    )
    return Done(back, back_to(before))


def back_to(before: Sequence[tuple[str, int]]) -> Undo:
    """What gives records the content of these versions again."""
    ids, versions = zip(*before, strict=True)
    return Undo("go_back", {"record_ids": ids, "versions": versions})


async def pin(visit: Visit[NewPin]) -> Done:
    """Have every conversation of the person, or of the project, know a record's words."""
    record = await visit.memory.records.get(visit.sent.record_id)
    memory = visit.memory if record.project is None else await visit.memory.in_project(record.project)
    new = records.CreatePin(content=record.text, scope=visit.sent.scope, confirmed=True)
    is_message = record.type is RecordType.MESSAGE
    # Made from the message, it is erased with it.
    source = {"session_id": record.session_id, "source_message_id": record.id} if is_message else {}
    try:
        made, _ = await records.create_pin(visit.caller(memory), new.model_copy(update=source))
    except SessionFinalized:
        made, _ = await records.create_pin(visit.caller(memory), new)
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
    Act("go_back", go_back, EarlierVersions),
    Act("pin", pin, NewPin),
    Act("not_this", not_this, Rated),
    Act("after_all", after_all, Rated),
    Act("dismiss", dismiss, Nothing),
)
