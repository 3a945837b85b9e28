"""Known facts of the person and of the project, for every context. Reads only."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from kalito_mcp.contexts.cache import CachePolicy, Moment, RevisionCache
from kalito_mcp.domain.context import Include
from kalito_mcp.domain.kinds import Kind
from kalito_mcp.domain.known import KnownRecord
from kalito_mcp.domain.records import PIN_IMPORTANCE, Reach, SemanticPin
from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.search import Hit
from kalito_mcp.kinds.cues import begins_as_a_rule
from kalito_mcp.kinds.shared_words import is_withheld
from kalito_mcp.pins.disagreements import denied_words, names_in
from kalito_mcp.pins.known import in_turn, known_records
from kalito_mcp.pins.repeats import are_alike, says_more, without_repeats
from kalito_mcp.ports.store import ReadView
from kalito_mcp.text.times.annotation import is_over

_MOST_READ: Final = 200
"""The most important ones. Others are found by a search, like any record."""


_SURE: Final = 0.745
"""The importance of an automatic pin that is worth 0.76: a note-keeper keeps 17 of 20 such sentences of a
conversation."""


class Known(NamedTuple):
    """Facts that a context may show, one's own first, each most important first; and the ids of facts `withheld`
    because of their origin."""

    records: Sequence[KnownRecord] = ()
    withheld: frozenset[str] = frozenset()


class Chosen(NamedTuple):
    """The facts that a context shows, the remaining hits, and the ids of hits that say the same as others.
    `more_shared` counts facts of spaces that were not chosen."""

    records: Sequence[KnownRecord]
    hits: Sequence[Hit]
    repeated: Sequence[str] = ()
    more_shared: int = 0


class KnownReader:
    """Reads known facts, and caches them until a process changes the memory."""

    def __init__(self, cache: CachePolicy) -> None:
        self._cache: RevisionCache[tuple[Scope, frozenset[Include]], Known] = RevisionCache(cache)

    def cached(self, scope: Scope, include: frozenset[Include], moment: Moment) -> Known | None:
        """The cached facts of the scope, if they are still current."""
        return self._cache.get((scope, include), revision=moment.revision, now_s=moment.steady_s)

    def keep(self, scope: Scope, include: frozenset[Include], known: Known, moment: Moment) -> None:
        """Keep what was read."""
        self._cache.put((scope, include), known, revision=moment.revision, now_s=moment.steady_s)

    async def read(self, view: ReadView, scope: Scope, include: frozenset[Include]) -> Known:
        """The facts known to the agent, in the project of the scope."""
        records = await known_records(view, scope, limit=_MOST_READ, include_internal=Include.INTERNAL in include)
        withheld = frozenset(
            one.record_id
            for one in records
            if Include.UNTRUSTED not in include and is_withheld(one.origin, one.text, one.space)
        )
        return Known([one for one in records if one.record_id not in withheld], withheld)


def choose(
    known: Known, hits: Sequence[Hit], pins: Sequence[SemanticPin], *, most: int, is_start: bool, now_ms: int
) -> Chosen:
    """Choose what to show: at most `most` that match the query, best first, then as many others: what was pinned on
    request, most important first, what is surely worth it, and the rest, newest first. At the start of a conversation,
    without a query, only facts that are surely worth it, and newer ones about the same. Then, chosen in the same way,
    facts of spaces, in turn of those who shared them: they take no place of the person's own.

    Leaves out facts that the session's pins already show, and repetitions, also among the hits, and facts all of whose
    words are in a newer one. Of facts that do not match, it leaves out those for a time that is over.
    """
    by_id = {one.record_id: one for one in known.records}
    matching = [by_id[hit.record_id] for hit in hits if hit.record_id in by_id]
    shown = [pin.content for pin in pins]
    own = [one for one in matching if one.space is None]
    best = without_repeats(own, shown, most=most)
    first = {one.record_id for one in own[:most]}
    current = [one for one in known.records if not is_over(one.text, one.created_at, now_ms)]
    others = sorted((one for one in current if one.space is None and one.record_id not in first), key=_order)
    if is_start:
        sure = [one for one in others if _is_sure(one)]
        by_name = _by_own_name(sure)
        others = [one for one in others if _is_sure(one) or _may_end_one_of(sure, by_name, one)]
    more = without_repeats(others, [*shown, *(one.text for one in best)], most=most)
    said = [*best, *more]
    of_spaces = {one.record_id: one for one in (*matching, *current) if one.space is not None}
    shared = without_repeats(in_turn(of_spaces.values()), [*shown, *(one.text for one in said)], most=len(of_spaces))
    said += shared[:most]
    records = [one for one in said if not any(_may_hide(other, one) and says_more(other, one) for other in said)]
    unshown = without_repeats(matching, [*shown, *(one.text for one in said)], most=len(matching))
    repeated = {one.record_id for one in matching} - {one.record_id for one in unshown}
    kept = [hit for hit in hits if hit.record_id not in repeated]
    same = sorted(repeated) + [one for hit in kept for one in hit.same]
    chosen = {one.record_id for one in records}
    return Chosen(records, kept, [one for one in same if one not in chosen], len(shared[most:]))


def _may_hide(other: KnownRecord, one: KnownRecord) -> bool:
    """Whether a fact may stand for another: one's own may, and otherwise only one of the same person in the space."""
    return other.space is None or (other.space, other.shared_by) == (one.space, one.shared_by)


def _order(one: KnownRecord) -> tuple[float, bool, int]:
    return -one.importance if one.importance >= PIN_IMPORTANCE else 0.0, not _is_sure(one), -one.created_at


def _is_sure(one: KnownRecord) -> bool:
    """A fact without a judgement, such as a note, was stored on request. A change may end what else is known, and a
    rule is about every conversation: of a project, one that says so itself."""
    is_rule = one.kind is Kind.RULE and (one.reach is Reach.PERSON or begins_as_a_rule(one.text))
    return one.kind in (None, Kind.CHANGE) or is_rule or one.importance >= _SURE


def _by_own_name(sure: Sequence[KnownRecord]) -> Mapping[tuple[str | None, str], KnownRecord]:
    """By project and name, those of which no other has that name."""
    named: dict[tuple[str | None, str], KnownRecord | None] = {}
    for one in sure:
        for name in names_in(one.text):
            place = one.project, name
            named[place] = None if place in named else one
    return {place: one for place, one in named.items() if one is not None}


def _may_end_one_of(
    sure: Sequence[KnownRecord], by_name: Mapping[tuple[str | None, str], KnownRecord], one: KnownRecord
) -> bool:
    """Whether it is newer than one of these and speaks of the same, or denies something of what only that one names: it
    may no longer hold. "No Redis" has one word of what it ends."""
    if any(old.created_at < one.created_at and are_alike(old.text, one.text) for old in sure):
        return True
    denied = (by_name.get((one.project, word)) for word in denied_words(one.text))
    return any(old is not None and old.created_at < one.created_at for old in denied)
