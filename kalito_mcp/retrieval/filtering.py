"""Selects the records that a search may show: those of its scope that the caller does not see already and that its
filters admit. Pure.

Messages of its own conversation that an assistant still sees, above all its newest prompt, are more similar to a
question than anything else, and of no use to it. They are left out here, for searches, contexts and prompts alike.
"""

from collections.abc import Collection
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kalito_mcp.domain.records import NOTE, Origin, RecordType, Role
from kalito_mcp.domain.search import SearchFilters
from kalito_mcp.ports.search import RecordColumns, SearchIndex

_TYPES: Final = tuple(RecordType)
_ROLES: Final = tuple(Role)
_ORIGINS: Final = tuple(Origin)
_SAID: Final = [_TYPES.index(one) for one in (RecordType.MESSAGE, RecordType.PIN, RecordType.SUMMARY)]
"""Types of records that repeat a conversation. Records stored on purpose are found even in it: a task, or a pin that
the assistant made."""
_PIN: Final = _TYPES.index(RecordType.PIN)
_MESSAGE: Final = _TYPES.index(RecordType.MESSAGE)
SHOWN: Final = SearchFilters()
"""Admits whatever is not forgotten or internal."""


def in_scope(index: SearchIndex, filters: SearchFilters) -> NDArray[np.bool_]:
    """For each record, whether the search may use it at all, if only as a neighbour of a hit."""
    records = index.records
    found = records.is_shown
    if not filters.include_internal:
        is_asked_thought = records.types == _TYPES.index(RecordType.THOUGHT) if filters.types else False
        found = found & (~records.is_internal | is_asked_thought)
    for part in filters.seen:
        number = records.session_numbers.get(part.session_id)
        if number is not None:
            found = found & ~_is_seen(records, number, part.after_seq)
    return found


def _is_seen(records: RecordColumns, session: int, after_seq: int) -> NDArray[np.bool_]:
    """For each record, whether it repeats what was said in the session after its message with this seq."""
    is_own_pin = (records.types == _PIN) & (records.origins == _ORIGINS.index(Origin.ASSISTANT))
    of_session = records.sessions == session
    found: NDArray[np.bool_] = np.isin(records.types, _SAID) & ~is_own_pin & of_session
    if after_seq:
        lost = np.flatnonzero(of_session & (records.types == _MESSAGE))[:after_seq]
        found[: int(lost.max(initial=-1)) + 1] = False
    return found


def is_admitted(index: SearchIndex, places: NDArray[np.int64], filters: SearchFilters) -> NDArray[np.bool_]:
    """For each of these places of the scope, whether its record may be a hit."""
    records = index.records
    found = np.ones(len(places), bool)
    if filters.types:
        found &= np.isin(records.types[places], [_TYPES.index(one) for one in filters.types if one != NOTE])
        if RecordType.DOCUMENT not in filters.types and not filters.types.isdisjoint({NOTE, RecordType.PIN}):
            found |= np.isin(places, index.places_of_notes(are_lasting=NOTE not in filters.types))
    if filters.roles:
        found &= np.isin(records.roles[places], [_ROLES.index(one) for one in filters.roles])
    if filters.origins:
        found &= np.isin(records.origins[places], [_ORIGINS.index(one) for one in filters.origins])
    if filters.since is not None:
        found &= records.created_at[places] >= filters.since
    if filters.until is not None:
        found &= records.created_at[places] <= filters.until
    if filters.min_importance > 0:
        found &= records.importance[places] >= filters.min_importance
    if filters.names:
        found &= np.isin(records.names[places], named(records, {name.casefold() for name in filters.names}))
    if filters.tags:
        asked = {tag.casefold() for tag in filters.tags}
        tagged = [place for place, tags in records.tags.items() if not asked.isdisjoint(map(str.casefold, tags))]
        found &= np.isin(places, tagged)
    return found


def named(records: RecordColumns, folded: Collection[str]) -> list[int]:
    """The indexes of these names, whatever their case."""
    return [at for at, name in enumerate(records.name_list) if name is not None and name.casefold() in folded]
