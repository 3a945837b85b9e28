"""What records promise before their texts are read: from the index, their places and their lengths alone. Pure.

The index says which terms each record holds; a place says where it stands. So the evidence of its surroundings is
known without reading them: a turn has a share of the terms of the turns around it and of its session, each term
counting once, and the less the longer it is itself, for a long text speaks for itself. Sources: shares and length
were fitted on LoCoMo and BEAM together (own measurements); pasting the neighbours' texts into the index instead loses
15 points on BEAM.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from kalito_mcp.domain.search import Place, Posting

_SHARES: Final = ((-2, 0.4), (-1, 0.5), (1, 0.3), (2, 0.2), (3, 0.1))
REACH: Final = max(abs(offset) for offset, _ in _SHARES)
"""How many turns before and after a message are its surroundings."""

_SESSION_SHARE: Final = 0.15
_SPEAKS_FOR_ITSELF: Final = 60.0
"""Words at which the surroundings count half."""

WORDS_PER_TOKEN: Final = 0.75
_SATURATION: Final = 0.3
_LENGTH_WEIGHT: Final = 0.04
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
        self.places: Final = list(places)
        self._turns = {
            (place.session_key, place.seq): self.mask(place) for place in self.places if place.seq is not None
        }
        self._keys = {(place.session_key, place.seq): place.key for place in self.places if place.seq is not None}
        sessions: defaultdict[int, int] = defaultdict(int)
        for place in self.places:
            if place.session_key is not None:
                sessions[place.session_key] |= self.mask(place)
        self._sessions = sessions
        self._mass = sum(holdings.weights[:term_count]) or 1.0
        self._known: dict[tuple[int, ...], float] = {}
        self._shared: Final = {place.key: self._share(place) for place in self.places}
        self._best = self._best_of_sessions()

    def mask(self, place: Place) -> int:
        """The terms that the record holds; kinds are not among them."""
        return self._holdings.masks.get(place.key, 0) & self._terms

    def holds(self, place: Place) -> bool:
        """Whether the record itself has any of what is asked for."""
        return place.key in self._holdings.masks

    def own(self, place: Place) -> float:
        """What the text will be worth where it holds each term once."""
        damping = _SATURATION + _LENGTH_WEIGHT * place.tokens * WORDS_PER_TOKEN
        return self._holdings.weight(self.mask(place)) / self._mass / (1 + damping)

    def kind(self, place: Place) -> float:
        """The same of instances of kinds."""
        damping = _SATURATION + _LENGTH_WEIGHT * place.tokens * WORDS_PER_TOKEN
        return self._holdings.weight(self._holdings.masks.get(place.key, 0) & ~self._terms) / self._mass / (1 + damping)

    def session(self, place: Place) -> float:
        """The mean context of the best records of its session."""
        return 0.0 if place.session_key is None else self._best[place.session_key]

    def around(self, place: Place) -> int:
        """The terms of the turns around it, as bits."""
        found = 0
        for offset, _ in _SHARES if place.seq is not None else ():
            found |= self._turns.get((place.session_key, (place.seq or 0) + offset), 0)
        return found

    def mean_around(self, place: Place, values: Mapping[int, float]) -> float:
        """The mean of the values of a record and of the turns around it, by their shares; not below 0."""
        total, shares = values.get(place.key, 0.0), 1.0
        for offset, share in _SHARES if place.seq is not None else ():
            value = values.get(self._keys.get((place.session_key, (place.seq or 0) + offset), 0))
            if value is not None:
                total, shares = total + share * value, shares + share
        return max(0.0, total / shares)

    def context(self, place: Place, length: float) -> float:
        """The evidence of the text and its surroundings, for a text of so many words."""
        return self._shared[place.key] / (1 + length / _SPEAKS_FOR_ITSELF)

    def _share(self, place: Place) -> float:
        masks = [self.mask(place)]
        session = 0
        if place.session_key is not None:
            session = self._sessions[place.session_key]
        if place.seq is not None:
            masks += [self._turns.get((place.session_key, place.seq + offset), 0) for offset, _ in _SHARES]
        signature = (*masks, session)
        shared = self._known.get(signature)
        if shared is None:
            shared = self._known[signature] = self._sum(masks, session)
        return shared

    def _sum(self, masks: Sequence[int], session: int) -> float:
        own = masks[0]
        total = self._holdings.weight(own)
        for bit in _bits(session & ~own):
            flag = 1 << bit
            share = _SESSION_SHARE + sum(
                share for (_, share), mask in zip(_SHARES, masks[1:], strict=False) if mask & flag
            )
            total += self._holdings.weights[bit] * min(share, 1.0)
        return total / self._mass

    def _best_of_sessions(self) -> dict[int, float]:
        by_session: defaultdict[int, list[float]] = defaultdict(list)
        for place in self.places:
            if place.session_key is not None:
                by_session[place.session_key].append(self.context(place, place.tokens * WORDS_PER_TOKEN))
        return {
            session: sum(sorted(found, reverse=True)[:_BEST_OF_SESSION]) / _BEST_OF_SESSION
            for session, found in by_session.items()
        }


def _bits(mask: int) -> Iterator[int]:
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest
