"""The profile: what is known of the person and of their projects, by subject. Reads only."""

from collections.abc import Mapping, Sequence
from typing import Final

from kalito_mcp.domain.kinds import LASTING, Kind
from kalito_mcp.domain.known import KnownRecord, OfferedPin, Profile, ProfileLine
from kalito_mcp.domain.records import Reach, RecordType
from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.statements import Subject
from kalito_mcp.kinds.shared_words import is_proposal, is_withheld
from kalito_mcp.pins.known import known_records
from kalito_mcp.pins.repeats import without_repeats
from kalito_mcp.ports.store import ReadView
from kalito_mcp.safety.instructions import is_instruction_like

_MOST: Final = 1_000
_MOST_PROPOSED: Final = 50
_MOST_SEARCHED: Final = 500
"""Of the newest pins, for those that could be made lasting."""

SUBJECTS: Final[Mapping[Kind | None, Subject]] = {
    Kind.RULE: Subject.RULES,
    Kind.DECISION: Subject.DECISIONS,
    Kind.CHANGE: Subject.DECISIONS,
    Kind.PLAN: Subject.PLANS,
}
"""Other kinds are facts."""

_ORDER: Final = tuple(Subject)


async def read_profile(view: ReadView, scope: Scope, *, include_untrusted: bool = False) -> Profile:
    """What is known to the scope's agent, of the person and of the scope's project (all of them, without one), and the
    pins of sessions that could be made lasting. Each statement is there once, in its newest form."""
    records = [
        one
        for one in await known_records(view, scope, limit=_MOST)
        if include_untrusted or not is_withheld(one.origin, one.text, one.space)
    ]
    by_place: dict[str | None, list[ProfileLine]] = {}
    for one in records:
        by_place.setdefault(one.project, []).append(ProfileLine(SUBJECTS.get(one.kind, Subject.FACTS), one))
    lines: list[ProfileLine] = []
    for place in sorted(by_place, key=lambda project: (project is not None, project or "")):
        kept = without_repeats([line.record for line in by_place[place]], (), most=_MOST)
        kept_ids = {one.record_id for one in kept}
        listed = [line for line in by_place[place] if line.record.record_id in kept_ids]
        lines += sorted(listed, key=lambda line: _ORDER.index(Subject(line.subject)))
    return Profile(tuple(lines), tuple(await _offered(view, scope, [line.record.text for line in lines])))


async def _offered(view: ReadView, scope: Scope, known: Sequence[str]) -> list[OfferedPin]:
    """The pins of sessions that say something lasting, newest first, without what is known already."""
    offered: list[OfferedPin] = []
    for pin in await view.records.list_records(scope, frozenset({RecordType.PIN}), limit=_MOST_SEARCHED):
        if "scope" not in pin.content and pin.content.get("kind") in LASTING:
            reach = Reach.PERSON if pin.project is None else Reach.PROJECT
            offered.append(OfferedPin(pin.id, reach, pin.text, pin.created_at, pin.session_id))
    return without_repeats(offered, known, most=_MOST_SEARCHED)


async def read_proposed(view: ReadView, scope: Scope) -> list[KnownRecord]:
    """What others propose in the person's spaces, in turn of those who shared it, without what the person knows
    already. What is written to steer an assistant is left out."""
    known = await known_records(view, scope, limit=_MOST)
    own = [one.text for one in known if one.space is None]
    proposed = [one for one in known if one.space is not None and is_proposal(one.text)]
    return without_repeats([one for one in proposed if not is_instruction_like(one.text)], own, most=_MOST_PROPOSED)
