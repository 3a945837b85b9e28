"""What is stated, in groups of what is about the same; and what was found and nobody has decided on. Reads only."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from kalito_mcp.domain.kinds import LASTING, Kind
from kalito_mcp.domain.memory_records import MemoryRecord
from kalito_mcp.domain.records import RecordType
from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.statements import KEPT_AT, Standing, Statement, StatementGroup, Subject
from kalito_mcp.pins.found import is_found_pin
from kalito_mcp.pins.profile import SUBJECTS
from kalito_mcp.pins.repeats import are_alike, terms_of
from kalito_mcp.ports.store import ReadView

_LASTING: Final = 500
_OF_SESSIONS: Final = 300
_FORGOTTEN: Final = 200
"""The most that are read of each; together a thousand."""


async def read_statements(view: ReadView, scope: Scope) -> list[Statement]:
    """The scope's newest rules, decisions, plans, facts and open points, whether they hold or not, newest first."""
    records = await view.records.statements(scope, lasting=_LASTING, of_sessions=_OF_SESSIONS, forgotten=_FORGOTTEN)
    stated = [one for one in records if "scope" in one.content or one.content.get("kind") == Kind.OPEN]
    by = await view.records.superseded(scope, [one.id for one in stated])
    return sorted((_statement(one, by) for one in stated), key=lambda one: -one.record.created_at)


async def read_undecided(view: ReadView, scope: Scope) -> list[MemoryRecord]:
    """What was found automatically, and what could be made lasting, that a person has neither kept nor dropped, newest
    first. Superseded ones are left out."""
    records = await view.records.statements(scope, lasting=_LASTING, of_sessions=_LASTING, forgotten=0)
    found = [one for one in records if is_undecided(one)]
    by = await view.records.superseded(scope, [one.id for one in found])
    return sorted((one for one in found if one.id not in by), key=lambda one: -one.created_at)


def is_undecided(record: MemoryRecord) -> bool:
    """Whether a person could still keep or drop the record: an automatic pin, or a lasting one that only its session
    knows, which nobody kept."""
    if record.type is not RecordType.PIN or record.is_deleted or KEPT_AT in record.content:
        return False
    return is_found_pin(record) or ("scope" not in record.content and record.content.get("kind") in LASTING)


def grouped(statements: Iterable[Statement]) -> list[StatementGroup]:
    """The statements in groups, those of the person first, then each project's, by subject; newest group first.

    A statement belongs to the group of what superseded it, or else to the one whose first statement it is most alike.
    `statements` are newest first.
    """
    newest = list(statements)
    # What holds begins the groups, and what no longer does joins them.
    current_first = sorted(newest, key=lambda one: one.standing is not Standing.CURRENT)
    groups: dict[str, list[Statement]] = {}
    group_of: dict[str, str] = {}
    by_term: dict[tuple[str | None, str], list[Statement]] = {}
    for one in current_first:
        place, record = one.record.project, one.record
        first = group_of.get(one.superseded_by or "") or _most_alike(one, by_term)
        if first is None:
            first = record.id
            for term in terms_of(record.text):
                by_term.setdefault((place, term), []).append(one)
        groups.setdefault(first, []).append(one)
        group_of[record.id] = first
    return sorted((StatementGroup(one, tuple(others)) for one, *others in groups.values()), key=_place)


def _most_alike(statement: Statement, by_term: Mapping[tuple[str | None, str], Sequence[Statement]]) -> str | None:
    """The id of the first statement of a group, if any is alike."""
    text, place = statement.record.text, statement.record.project
    shared = Counter(one.record.id for term in terms_of(text) for one in by_term.get((place, term), ()))
    texts = {one.record.id: one.record.text for term in terms_of(text) for one in by_term.get((place, term), ())}
    return next((one for one, _ in shared.most_common() if are_alike(text, texts[one])), None)


def _place(group: StatementGroup) -> tuple[bool, str, int]:
    return group.project is not None, group.project or "", tuple(Subject).index(group.first.subject)


def _statement(record: MemoryRecord, by: Mapping[str, tuple[str, int]]) -> Statement:
    said = record.content.get("kind")
    kind = None if said is None else Kind(said)
    subject = Subject.OPEN if kind is Kind.OPEN else SUBJECTS.get(kind, Subject.FACTS)
    superseded_by, _ = by.get(record.id, (None, 0))
    if record.is_deleted:
        return Statement(record, subject, Standing.FORGOTTEN, superseded_by)
    return Statement(record, subject, Standing.SUPERSEDED if superseded_by else Standing.CURRENT, superseded_by)
