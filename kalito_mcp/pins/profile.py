"""The profile: what is known of the person and of their projects, by subject. Reads only."""

from collections.abc import Mapping, Sequence
from typing import Final

from kalito_mcp.domain.known import OfferedPin, Profile, ProfileLine
from kalito_mcp.domain.records import Reach, RecordType
from kalito_mcp.domain.scope import Scope
from kalito_mcp.pins.known import known_records
from kalito_mcp.pins.reach import as_said, kind_of, reach_of
from kalito_mcp.pins.repeats import superseded, without_repeats
from kalito_mcp.pins.rules import PinKind
from kalito_mcp.ports.store import ReadView
from kalito_mcp.safety.trust import is_withheld

_MOST: Final = 1_000
_MOST_SEARCHED: Final = 500
"""Of the newest pins, for those that could be made lasting."""

_SUBJECTS: Final[Mapping[PinKind | None, str]] = {
    PinKind.WISH: "how to answer",
    PinKind.HEALTH: "health",
    PinKind.IDENTITY: "who",
    PinKind.CONTACT: "who",
    PinKind.PREFERENCE: "preferences",
    PinKind.DECISION: "decisions",
    PinKind.TECHNICAL: "technical",
}
"""In the order of the profile; whatever else there is comes last."""

_OTHER: Final = "facts"
_ORDER: Final = (*dict.fromkeys(_SUBJECTS.values()), _OTHER)


async def read_profile(view: ReadView, scope: Scope, *, include_untrusted: bool = False) -> Profile:
    """What is known to the scope's agent, of the person and of the scope's project (all of them, without one), and the
    pins of sessions that could be made lasting. Each statement is there once, in its newest form."""
    records = [
        one
        for one in await known_records(view, scope, limit=_MOST)
        if include_untrusted or not is_withheld(one.origin, one.text)
    ]
    older = superseded(records)
    by_place: dict[str | None, list[ProfileLine]] = {}
    for one in records:
        if one.record_id not in older:
            by_place.setdefault(one.project, []).append(ProfileLine(_subject(one.text), one))
    lines: list[ProfileLine] = []
    for place in sorted(by_place, key=lambda project: (project is not None, project or "")):
        kept = without_repeats([line.record for line in by_place[place]], (), most=_MOST)
        kept_ids = {one.record_id for one in kept}
        listed = [line for line in by_place[place] if line.record.record_id in kept_ids]
        lines += sorted(listed, key=lambda line: _ORDER.index(line.subject))
    return Profile(tuple(lines), tuple(await _offered(view, scope, [line.record.text for line in lines])))


async def _offered(view: ReadView, scope: Scope, known: Sequence[str]) -> list[OfferedPin]:
    """The pins of sessions whose words call for a wider reach, newest first, without what is known already."""
    offered: list[OfferedPin] = []
    for pin in await view.records.list_records(scope, frozenset({RecordType.PIN}), limit=_MOST_SEARCHED):
        if "scope" in pin.content:
            continue
        reach = reach_of(pin.text, has_project=pin.project is not None, origin=pin.origin)
        if reach is not Reach.SESSION:
            offered.append(OfferedPin(pin.id, reach, pin.text, pin.created_at, pin.session_id))
    return without_repeats(offered, known, most=_MOST_SEARCHED)


def _subject(text: str) -> str:
    return _SUBJECTS.get(kind_of(as_said(text)), _OTHER)
