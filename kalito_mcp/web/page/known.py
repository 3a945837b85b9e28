"""What is known: what is stated, what was found and waits for a decision, and which statements disagree."""

from collections.abc import Iterable
from itertools import groupby
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from kalito_mcp.domain.memory_records import MemoryRecord
from kalito_mcp.domain.records import Reach
from kalito_mcp.domain.statements import Standing, StatementGroup, Subject
from kalito_mcp.errors import InvalidInput, KalitoError
from kalito_mcp.memory.verbs.shapes import ReachName, RecordName
from kalito_mcp.text.plurals import plural
from kalito_mcp.web.page.acts import back_to
from kalito_mcp.web.page.view import Act, Done, Shown, Undo, View, ViewFields, Visit

_PAGE: Final = 50
"""Groups, found pins and pairs on one page. The undo of a whole page fits into a cookie."""
_MOST_CHOSEN: Final = 100
_TABS: Final = (("stated", "Statements"), ("found", "Inbox"), ("disagree", "Disagreements"))
_REACHES: Final = {Reach.PERSON: "in every project", Reach.PROJECT: "in its project", Reach.SESSION: "in its session"}


class Known(ViewFields):
    """Which part to show; and of what is stated, which subject, with which words, and whether what no longer holds."""

    show: Literal["stated", "found", "disagree"] = "stated"
    subject: Subject | None = None
    words: Annotated[str | None, Field(max_length=200)] = None
    gone: bool = False
    start: Annotated[int, Field(ge=0, le=1_000)] = 0


class Kept(ViewFields):
    """Pins that were ticked, and which conversations are to know them; without a reach, those that do now."""

    record_ids: Annotated[list[RecordName], Field(min_length=1, max_length=_MOST_CHOSEN)]
    reach: ReachName | None = None


class Pair(ViewFields):
    """A record and another one that it seems to disagree with."""

    record_id: RecordName
    other_id: RecordName


async def known(visit: Visit[Known]) -> Shown:
    """One part of what is known."""
    sent = visit.sent
    values: dict[str, Any] = {"sent": sent, "tabs": _TABS, "reaches": _REACHES, "start": sent.start, "page": _PAGE}
    page = slice(sent.start, sent.start + _PAGE)
    if sent.show == "found":
        found = await visit.memory.records.inbox(limit=sent.start + _PAGE + 1)
        titles = await _titles(visit, found[page])
        proposed = [] if sent.start else await visit.memory.records.proposed()
        values |= {"found": found[page], "count": len(found), "titles": titles, "proposed": proposed}
    elif sent.show == "disagree":
        pairs = await visit.memory.records.disagreements()
        titles = await _titles(visit, [one for pair in pairs[page] for one in (pair.newer, pair.older)])
        values |= {"pairs": pairs[page], "count": len(pairs), "titles": titles}
    else:
        groups = await visit.memory.records.statements()
        chosen = [one for one in groups if _is_chosen(one, sent)]
        titles = await _titles(visit, [one.first.record for one in chosen[page]])
        values |= {
            "places": _places(chosen[page]),
            "count": len(chosen),
            "is_empty": not groups,
            "gone_count": sum(not _stands(one) for one in groups),
            "subjects": list(Subject),
            "titles": titles,
        }
    return Shown("known.html", "What is known", values)


async def keep(visit: Visit[Kept]) -> Done:
    """Keep pins that were found, as if the person had asked for them, and say whose they are; or make notes of one's
    own of what others propose in spaces."""
    kept: list[tuple[str, int]] = []
    adopted: list[str] = []
    refused: list[KalitoError] = []
    for record_id in dict.fromkeys(visit.sent.record_ids):
        before = await visit.memory.records.get(record_id)
        try:
            after = await visit.memory.records.keep(record_id, visit.sent.reach, editor=visit.caller().editor)
        except InvalidInput as error:
            refused.append(error)
        else:
            if before.space is None:
                kept.append((record_id, before.revision))
            else:
                adopted.append(after.id)
    if adopted:
        return Done(f"{plural(len(adopted), 'note')} kept as your own", Undo("forget", {"record_ids": adopted}))
    if not kept:
        raise refused[0]
    not_kept = f"; {plural(len(refused), 'pin')} could not be" if refused else ""
    return Done(f"{plural(len(kept), 'pin')} kept{not_kept}", back_to(kept))


async def replace(visit: Visit[Pair]) -> Done:
    """Let a record take the place of another, which no longer holds."""
    sent, before = visit.sent, await visit.memory.records.get(visit.sent.record_id)
    await visit.memory.records.replace(sent.record_id, sent.other_id, editor=visit.caller().editor)
    return Done("The other one no longer holds", back_to([(before.id, before.revision)]))


async def keep_both(visit: Visit[Pair]) -> Done:
    """Note that two records hold, so that they are not asked about again."""
    sent, before = visit.sent, await visit.memory.records.get(visit.sent.record_id)
    await visit.memory.records.keep_both(sent.record_id, sent.other_id, editor=visit.caller().editor)
    return Done("Both hold", back_to([(before.id, before.revision)]))


def _is_chosen(group: StatementGroup, sent: Known) -> bool:
    if _stands(group) is sent.gone or sent.subject not in (None, group.first.subject):
        return False
    text = "\n".join(one.record.text for one in (group.first, *group.others)).casefold()
    return all(word in text for word in (sent.words or "").casefold().split())


def _stands(group: StatementGroup) -> bool:
    return group.first.standing is Standing.CURRENT


def _places(groups: Iterable[StatementGroup]) -> list[tuple[str | None, list[tuple[Subject, list[StatementGroup]]]]]:
    """By project, None for the person, and by subject, as they come."""
    return [
        (project, [(subject, list(some)) for subject, some in groupby(of_place, lambda one: one.first.subject)])
        for project, of_place in groupby(groups, lambda one: one.project)
    ]


async def _titles(visit: Visit[Known], records: Iterable[MemoryRecord]) -> Any:
    """What the sessions of the records are called, by id."""
    ids = [one.session_id for one in records if one.session_id is not None]
    return await visit.memory.conversations.titles(list(dict.fromkeys(ids)))


KNOWN: Final = (
    View("/known", known, Known),
    Act("keep", keep, Kept),
    Act("replace", replace, Pair),
    Act("keep_both", keep_both, Pair),
)
