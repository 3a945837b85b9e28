"""Selects the records that a search may show: those of its scope that the caller does not see already and that its
filters admit. Pure.

Messages of its own conversation that an assistant still sees, above all its newest prompt, are more similar to a
question than anything else, and of no use to it. They are left out here, for searches, contexts and prompts alike.
"""

from collections.abc import Collection, Sequence
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from kalito_mcp.domain.records import Origin, RecordType, Role
from kalito_mcp.domain.search import SearchFilters, SeenPart
from kalito_mcp.ports.search import RecordColumns

_TYPES: Final = tuple(RecordType)
_ROLES: Final = tuple(Role)
_ORIGINS: Final = tuple(Origin)
_SAID: Final = [_TYPES.index(one) for one in (RecordType.MESSAGE, RecordType.PIN, RecordType.SUMMARY)]
"""Types of records that repeat a conversation. Records stored on purpose are found even in it: a task, or a pin that
the assistant made."""
_PIN: Final = _TYPES.index(RecordType.PIN)
SHOWN: Final = SearchFilters()
"""Admits whatever is not forgotten or internal."""


class ScopedRecords(Protocol):
    """The part of a `SearchIndex` that defines the scope."""

    @property
    def records(self) -> RecordColumns: ...
    @property
    def session_key(self) -> int | None: ...
    @property
    def project_keys(self) -> Sequence[int] | None: ...


def in_scope(index: ScopedRecords, filters: SearchFilters) -> NDArray[np.bool_]:
    """For each record, whether the search may use it at all, if only as a neighbour of a hit."""
    records = index.records
    found = records.is_shown
    if not filters.include_internal:
        is_asked_thought = records.types == _TYPES.index(RecordType.THOUGHT) if filters.types else False
        found = found & (~records.is_internal | is_asked_thought)
    if index.project_keys is not None:
        is_ours = records.projects < 0
        for key in index.project_keys:
            is_ours = is_ours | (records.projects == key)
        found = found & is_ours
    for part in filters.seen:
        found = found & ~_is_seen(records, part)
    if index.session_key is None:
        return found
    # A session without a record has no number.
    number = records.session_numbers.get(index.session_key, records.count)
    of_session: NDArray[np.bool_] = found & (records.sessions == number)
    return of_session


def _is_seen(records: RecordColumns, part: SeenPart) -> NDArray[np.bool_]:
    number = records.session_numbers.get(part.session_key, records.count)
    is_own_pin = (records.types == _PIN) & (records.origins == _ORIGINS.index(Origin.ASSISTANT))
    found: NDArray[np.bool_] = np.isin(records.types, _SAID) & ~is_own_pin
    found &= (records.sessions == number) & (records.keys > part.after_key)
    return found


def unseen(records: RecordColumns, keys: Sequence[int], filters: SearchFilters) -> Sequence[int]:
    """The keys whose records the caller does not see already. Unknown keys are left out if anything is seen."""
    if not filters.seen or not keys:
        return keys
    is_seen = np.logical_or.reduce([_is_seen(records, part) for part in filters.seen])
    found: list[int] = np.intersect1d(records.keys[~is_seen], keys).tolist()
    return found


def is_admitted(records: RecordColumns, places: NDArray[np.int64], filters: SearchFilters) -> NDArray[np.bool_]:
    """For each of these places of the scope, whether its record may be a hit."""
    found = np.ones(len(places), bool)
    if filters.types:
        found &= np.isin(records.types[places], [_TYPES.index(one) for one in filters.types])
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
        tagged = [place for place, tags in records.tags.items() if not filters.tags.isdisjoint(tags)]
        found &= np.isin(places, tagged)
    return found


def named(records: RecordColumns, folded: Collection[str]) -> list[int]:
    """The indexes of these names, whatever their case."""
    return [at for at, name in enumerate(records.name_list) if name is not None and name.casefold() in folded]
