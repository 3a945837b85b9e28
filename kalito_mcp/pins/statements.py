"""What is stated, in groups of what is about the same; and what was found and nobody has decided on. Reads only."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import ceil
from typing import Final

from kalito_mcp.domain.kinds import LASTING, Kind
from kalito_mcp.domain.memory_records import MemoryRecord
from kalito_mcp.domain.records import PinType, RecordType
from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.spaces import seen_in_spaces
from kalito_mcp.domain.statements import KEPT_AT, Standing, Statement, StatementGroup, Subject
from kalito_mcp.kinds.shared_words import is_withheld
from kalito_mcp.pins.found import is_found_pin
from kalito_mcp.pins.profile import SUBJECTS
from kalito_mcp.pins.repeats import MOSTLY_SHARED, are_close, terms_of
from kalito_mcp.ports.store import ReadView
from kalito_mcp.records.reached import look_up

_LASTING: Final = 400
_OF_SESSIONS: Final = 150
_FORGOTTEN: Final = 150
_MOST_UNDECIDED: Final = 300
"""The most that are read of each: a record takes 30 microseconds."""


async def read_statements(view: ReadView, scope: Scope) -> list[Statement]:
    """The scope's newest rules, decisions, plans, facts and open points, whether they hold or not, newest first."""
    return await _read(view, scope, _OF_SESSIONS)


async def read_shared_statements(view: ReadView, scope: Scope) -> list[Statement]:
    """The same of the spaces that the person is a member of, without what their contexts withhold. Of what was
    forgotten there, what they may bring back."""
    found: list[Statement] = []
    for member, shared in seen_in_spaces(scope, await view.spaces.memberships(scope.owner)):
        stated = await _read(view, shared, of_sessions=0)
        copies = await view.spaces.shared(member.space.name, [one.record.id for one in stated])
        seen = await look_up(view, shared, [one.record for one in stated])
        for one in stated:
            record = replace(seen.record(one.record), space=member.space.name)
            may_change = member.may_change([copies[record.id].user] if record.id in copies else [])
            if may_change if record.is_deleted else not is_withheld(record.origin, record.text, record.space):
                found.append(replace(one, record=record, may_change=may_change))
    return sorted(found, key=_newest_first)


async def _read(view: ReadView, scope: Scope, of_sessions: int) -> list[Statement]:
    records = await view.records.statements(scope, lasting=_LASTING, of_sessions=of_sessions, forgotten=_FORGOTTEN)
    stated = [one for one in records if "scope" in one.content or one.content.get("kind") == Kind.OPEN]
    by = await view.records.superseded(scope, [one.id for one in stated])
    return sorted((_statement(one, by) for one in stated), key=_newest_first)


async def read_undecided(view: ReadView, scope: Scope) -> list[MemoryRecord]:
    """What was found automatically, and what could be made lasting, that a person has neither kept nor dropped, newest
    first. Superseded ones are left out."""
    records = await view.records.statements(scope, lasting=_MOST_UNDECIDED, of_sessions=_MOST_UNDECIDED, forgotten=0)
    found = [one for one in records if is_undecided(one)]
    by = await view.records.superseded(scope, [one.id for one in found])
    return sorted((one for one in found if one.id not in by), key=lambda one: -one.created_at)


def is_undecided(record: MemoryRecord) -> bool:
    """Whether a person could still keep or drop the record: an automatic pin, or a lasting one that only its session
    knows, which nobody kept."""
    if record.type is not RecordType.PIN or record.is_deleted or KEPT_AT in record.content:
        return False
    is_found = is_found_pin(record) and record.content.get("pin_type") != PinType.MANUAL
    return is_found or ("scope" not in record.content and record.content.get("kind") in LASTING)


def grouped(statements: Iterable[Statement]) -> list[StatementGroup]:
    """The statements in groups, those of the person first, then each project's, by subject; newest group first, and
    one's own before those of spaces.

    A statement belongs to the group of what superseded it, or else to one whose first statement says much the same.
    `statements` are newest first.
    """
    newest = list(statements)
    said_in = Counter(term for one in newest for term in terms_of(one.record.text))
    # What holds begins the groups, and what no longer does joins them.
    current_first = sorted(newest, key=lambda one: (one.standing is not Standing.CURRENT, one.record.space is not None))
    groups: dict[str, list[Statement]] = {}
    group_of: dict[str, str] = {}
    by_term: dict[tuple[str | None, str], list[MemoryRecord]] = {}
    for one in current_first:
        record = one.record
        rare = [(record.project, term) for term in _telling_terms(record.text, said_in)]
        firsts = (first for term in rare for first in by_term.get(term, ()))
        close = next((first.id for first in firsts if are_close(first.text, record.text)), record.id)
        group = group_of.setdefault(record.id, group_of.get(one.superseded_by or "", close))
        groups.setdefault(group, []).append(one)
        if group == record.id:
            for term in rare:
                by_term.setdefault(term, []).append(record)
    return sorted((StatementGroup(one, tuple(others)) for one, *others in groups.values()), key=_place)


def _telling_terms(text: str, said_in: Mapping[str, int]) -> list[str]:
    """The rarest terms of a text. Any close text has one of them among its own rarest."""
    terms = sorted(terms_of(text), key=lambda term: (said_in[term], term))
    return terms[: len(terms) - ceil(MOSTLY_SHARED * len(terms)) + 1]


def _newest_first(one: Statement) -> int:
    return -one.record.created_at


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
