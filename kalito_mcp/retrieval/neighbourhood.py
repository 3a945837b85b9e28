"""What records promise before their texts are read: from the index, their places and their lengths alone. Pure.

The index says which terms each record holds; a place says where it stands. So the evidence of its surroundings is
known without reading them: a turn has a share of the terms of the turns around it and of its session, each term
counting once, and the less the longer it is itself, for a long text speaks for itself. Sources: shares and length
were fitted on LoCoMo and BEAM together (own measurements); pasting the neighbours' texts into the index instead loses
15 points on BEAM.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final

from kalito_mcp.domain.search import Place, Posting
from kalito_mcp.retrieval.features import damping

_OFFSETS: Final = (-2, -1, 1, 2, 3)
_SHARES: Final = (0.4, 0.5, 0.3, 0.2, 0.1)
REACH: Final = max(map(abs, _OFFSETS))
"""How many turns before and after a message are its surroundings."""

# By how much the likeness of a turn beside counts, by its distance; fitted on LoCoMo and BEAM as the shares are.
_NEAR: Final = ((-1, 1.0), (1, 1.0), (-2, 0.6), (2, 0.6), (-3, 0.3), (3, 0.3))
_SESSION_SHARE: Final = 0.15
_SPEAKS_FOR_ITSELF: Final = 60.0
"""Words at which the surroundings count half."""

_WORDS_PER_TOKEN: Final = 0.75
_BEST_OF_SESSION: Final = 3


class Holdings:
    """Which of what is asked for each record holds, as bits: the place of a posting is its bit, and has its weight."""

    def __init__(self, postings: Sequence[Posting], weights: Sequence[float]) -> None:
        self.weights: Final = weights
        self.masks: Final[dict[int, int]] = {}
        self._total: Final[dict[int, float]] = {}
        masks = self.masks
        held = masks.get
        for bit, posting in enumerate(postings):
            flag = 1 << bit
            for key in posting.keys:
                masks[key] = held(key, 0) | flag

    def weight(self, mask: int) -> float:
        """The sum of the weights of its terms."""
        known = self._total.get(mask)
        if known is None:
            known = sum(self.weights[bit] for bit in _bits(mask))
            self._total[mask] = known
        return known

    def by_weight(self) -> Iterator[int]:
        """The records with the most weight of distinct terms first; equal ones newest first."""
        by_mask: defaultdict[int, list[int]] = defaultdict(list)
        for key, mask in self.masks.items():
            by_mask[mask].append(key)
        groups: defaultdict[float, list[int]] = defaultdict(list)
        for mask, keys in by_mask.items():
            groups[self.weight(mask)] += keys
        for total in sorted(groups, reverse=True):
            yield from sorted(groups[total], reverse=True)


class Surroundings:
    """The evidence of places among each other."""

    def __init__(self, holdings: Holdings, term_count: int, places: Iterable[Place]) -> None:
        self._holdings = holdings
        self._terms: Final = (1 << term_count) - 1
        self._mass = sum(holdings.weights[:term_count]) or 1.0
        self.places: Final = list(places)
        held = holdings.masks.get
        self._masks = {place.key: held(place.key, 0) & self._terms for place in self.places}
        self._turns: defaultdict[int | None, dict[int, int]] = defaultdict(dict)
        """The terms that each turn holds, by its session and its place there."""
        self._sessions: defaultdict[int | None, int] = defaultdict(int)
        for key, session, seq, *_ in self.places:
            mask = self._masks[key]
            self._sessions[session] |= mask
            if seq is not None:
                self._turns[session][seq] = mask
        # Nothing is said in none.
        self._sessions[None] = 0
        self._known: dict[tuple[int, ...], float] = {}
        self._shared: Final = {place.key: self._share(place) for place in self.places}
        self._best = self._best_of_sessions()

    def holds(self, place: Place) -> bool:
        """Whether the record itself has any of what is asked for."""
        return place.key in self._holdings.masks

    def own(self, place: Place) -> float:
        """What the text will be worth where it holds each term once."""
        return self._holdings.weight(self._masks[place.key]) / self._mass / (1 + damping(_length(place)))

    def kind(self, place: Place) -> float:
        """The same of instances of kinds."""
        held = self._holdings.masks.get(place.key, 0) & ~self._terms
        return self._holdings.weight(held) / self._mass / (1 + damping(_length(place))) if held else 0.0

    def session(self, place: Place) -> float:
        """The mean context of the best records of its session."""
        return 0.0 if place.session_key is None else self._best[place.session_key]

    def is_alone(self, place: Place) -> bool:
        """Whether no other record of its session has any of what is asked for."""
        return not any(
            self._masks[other.key]
            for other in self.places
            if other.session_key == place.session_key and other.key != place.key
        )

    def around(self, place: Place) -> int:
        """The terms of the turns around it, as bits."""
        found = 0
        for mask in self._masks_around(place):
            found |= mask
        return found

    def most_around(self, place: Place, values: Mapping[int, float]) -> float:
        """The greatest of the values of the turns around it, the nearer the more; not below 0."""
        if place.seq is None:
            return 0.0
        turns = ((self._keys.get((place.session_key, place.seq + offset), 0), near) for offset, near in _NEAR)
        return max([0.0, *(near * values[key] for key, near in turns if key in values)])

    def context(self, place: Place, length: float | None = None) -> float:
        """The evidence of the text and its surroundings, for a text of so many words; of about as many as it has tokens
        for, unless given."""
        return self._shared[place.key] / (1 + (_length(place) if length is None else length) / _SPEAKS_FOR_ITSELF)

    @cached_property
    def _keys(self) -> Mapping[tuple[int | None, int], int]:
        return {(place.session_key, place.seq): place.key for place in self.places if place.seq is not None}

    def _masks_around(self, place: Place) -> Sequence[int]:
        """One for each offset; nothing is around what is no turn."""
        seq = place.seq
        if seq is None:
            return ()
        turn = self._turns[place.session_key].get
        return [turn(seq + offset, 0) for offset in _OFFSETS]

    def _share(self, place: Place) -> float:
        own, session = self._masks[place.key], self._sessions[place.session_key]
        # Hundreds of turns, and few ways to hold some of a few terms.
        signature = (own, session, *self._masks_around(place))
        shared = self._known.get(signature)
        if shared is None:
            shared = self._known[signature] = self._sum(*signature)
        return shared

    def _sum(self, own: int, session: int, *around: int) -> float:
        weights = self._holdings.weights
        elsewhere = session & ~own
        total = self._holdings.weight(own) + _SESSION_SHARE * self._holdings.weight(elsewhere)
        beside = [(share, mask) for share, mask in zip(_SHARES, around, strict=False) if mask & elsewhere]
        for bit in _bits(elsewhere) if beside else ():
            share = sum([share for share, mask in beside if mask >> bit & 1])
            total += weights[bit] * min(share, 1 - _SESSION_SHARE)
        return total / self._mass

    def _best_of_sessions(self) -> dict[int, float]:
        by_session: defaultdict[int, list[float]] = defaultdict(list)
        for place in self.places:
            if place.session_key is not None:
                by_session[place.session_key].append(self.context(place))
        return {
            session: sum(sorted(found, reverse=True)[:_BEST_OF_SESSION]) / _BEST_OF_SESSION
            for session, found in by_session.items()
        }


def _length(place: Place) -> float:
    """About how many words it has."""
    return place.tokens * _WORDS_PER_TOKEN


def _bits(mask: int) -> Iterator[int]:
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest
