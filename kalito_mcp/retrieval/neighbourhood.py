"""First-stage features: what the index and the positions of records say before any text is read. Pure.

The index says which terms each record contains, and a stub says where the record stands. So the terms of its
neighbours are known without reading them. A turn gets a share of the terms of the turns around it and of its session.
Each term counts once. The longer the turn, the smaller the share, because a long text speaks for itself.
All stubs of a batch are scored in one pass of numpy.
Sources: shares and length were fitted on LoCoMo and BEAM together (`python -m bench.recall`). Indexing the neighbours'
texts with each turn instead loses 15 points of recall on BEAM.
"""

from collections.abc import Mapping, Sequence
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from kalito_mcp.domain.search import CandidateStub
from kalito_mcp.retrieval.features import damping
from kalito_mcp.retrieval.term_masks import MOST_TERMS, TermMasks, contains

_OFFSETS: Final = (-2, -1, 1, 2, 3)
_SHARES: Final = (0.4, 0.5, 0.3, 0.2, 0.1)
REACH: Final = max(map(abs, _OFFSETS))
"""How many turns before and after a message are its neighbours."""

# How much the similarity of a neighbour counts, by distance. Fitted on LoCoMo and BEAM, as the shares are.
_SIMILARITY_SHARES: Final = {-1: 1.0, 1: 1.0, -2: 0.6, 2: 0.6, -3: 0.3, 3: 0.3}
_SESSION_SHARE: Final = 0.15
_HALVING_WORDS: Final = 60.0
"""Words of a text at which its neighbours count half."""

_WORDS_PER_TOKEN: Final = 0.75
_BEST_OF_SESSION: Final = 3
_NO_TURN: Final = -10
"""The seq of a record that is no turn: further from any turn than REACH."""

_Value = TypeVar("_Value", np.uint64, np.float64)

_TURNS: Final = 1 << 32
"""More than any session has."""


class Neighbourhood:
    """The first-stage features of a batch of candidate stubs, as arrays in the order of `stubs`."""

    def __init__(self, term_masks: TermMasks, term_count: int, stubs: Sequence[CandidateStub]) -> None:
        self.stubs: Final = list(stubs)
        self._at: Final = {stub.key: place for place, stub in enumerate(self.stubs)}
        keys, sessions, turns, tokens = _columns(self.stubs)
        masks = term_masks.of(keys)
        term_count = min(term_count, MOST_TERMS)
        terms = np.uint64((1 << term_count) - 1)
        own = masks & terms
        mass = float(term_masks.weights[:term_count].sum()) or 1.0
        lengths = tokens * _WORDS_PER_TOKEN
        damped = 1 + damping(lengths)
        self.contains_any: Final = masks != 0
        """Whether the record itself contains a term or a hyponym of the query."""
        self.lexical: Final = term_masks.weight(own) / mass / damped
        """The lexical feature of each text if it contains each of its terms once."""
        self.hyponym: Final = term_masks.weight(masks & ~terms) / mass / damped
        """The hyponym feature, if it contains each of its hyponyms once."""
        self._own = own
        self._places = _Places(sessions, turns)
        self._around = {offset: self._places.at(offset, own) for offset in _OFFSETS}
        distinct, self._session_of = np.unique(sessions, return_inverse=True)
        of_session = np.zeros(len(distinct), np.uint64)
        np.bitwise_or.at(of_session, self._session_of, own)
        self._shared = self._share(term_masks, term_count, of_session[self._session_of] & ~own) / mass
        self.neighbours: Final = self._shared / (1 + lengths / _HALVING_WORDS)
        """The terms of each text and its neighbours, damped by its length."""
        self.session: Final = np.where(sessions < 0, 0.0, self._best_of_sessions(len(distinct)))
        """The mean `neighbours` feature of the best records of its session."""

    def place(self, stub: CandidateStub) -> int:
        """Where the stub is in the arrays."""
        return self._at[stub.key]

    def is_alone(self, stub: CandidateStub) -> bool:
        """Whether no other record of its session contains a term of the query."""
        place = self.place(stub)
        others = (self._session_of == self._session_of[place]) & (self._own != 0)
        others[place] = False
        return not others.any()

    def neighbour_terms(self, stub: CandidateStub) -> int:
        """The terms of the turns around it, as a bitmask."""
        place, found = self.place(stub), 0
        for around in self._around.values():
            found |= int(around[place])
        return found

    def neighbours_at_length(self, stub: CandidateStub, length: float) -> float:
        """The `neighbours` feature of a text with so many words."""
        return float(self._shared[self.place(stub)] / (1 + length / _HALVING_WORDS))

    def neighbour_semantic(self, similarities: Mapping[int, float]) -> NDArray[np.float64]:
        """For each stub, the greatest similarity of a turn around it, weighted by distance; never below 0."""
        own = np.array([max(0.0, similarities.get(stub.key, 0.0)) for stub in self.stubs])
        best = np.zeros(len(own))
        for offset, share in _SIMILARITY_SHARES.items():
            np.maximum(best, share * self._places.at(offset, own), out=best)
        return best

    def _share(self, term_masks: TermMasks, term_count: int, elsewhere: NDArray[np.uint64]) -> NDArray[np.float64]:
        """The weights of each text's own terms, and the shares of those that its session has elsewhere."""
        total = term_masks.weight(self._own) + _SESSION_SHARE * term_masks.weight(elsewhere)
        around = list(self._around.values())
        for bit, weight in enumerate(term_masks.weights[:term_count]):
            total += weight * contains(elsewhere, bit) * _near(around, bit)
        return total

    def _best_of_sessions(self, count: int) -> NDArray[np.float64]:
        """For each stub, the mean of the best three of its session."""
        order = np.lexsort((-self.neighbours, self._session_of))
        session = self._session_of[order]
        starts = np.searchsorted(session, np.arange(count))
        is_best = np.arange(len(order)) - starts[session] < _BEST_OF_SESSION
        best = np.bincount(session[is_best], weights=self.neighbours[order][is_best], minlength=count)
        return best[self._session_of] / _BEST_OF_SESSION


class _Places:
    """Finds for each stub the one that stands some turns before or after it."""

    def __init__(self, sessions: NDArray[np.int64], turns: NDArray[np.int64]) -> None:
        self._codes = sessions * _TURNS + turns
        self._order = np.argsort(self._codes)
        self._sorted = self._codes[self._order]

    def at(self, offset: int, values: NDArray[_Value]) -> NDArray[_Value]:
        """The values of the stubs so many turns on; 0 where there is none."""
        wanted = self._codes + offset
        found = np.minimum(np.searchsorted(self._sorted, wanted), max(0, len(wanted) - 1))
        return np.where(self._sorted[found] == wanted, values[self._order[found]], values.dtype.type(0))


def _near(around: Sequence[NDArray[np.uint64]], bit: int) -> NDArray[np.float64]:
    """How much a term counts that only the turns around contain; `around` has their masks by offset."""
    shares = sum(share * contains(masks, bit) for share, masks in zip(_SHARES, around, strict=True))
    return np.minimum(shares, 1 - _SESSION_SHARE)


def _columns(
    stubs: Sequence[CandidateStub],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Keys, sessions, turns and tokens. A record without a session has one of its own, below 0."""
    keys, sessions, turns, tokens, *_ = zip(*stubs, strict=True) if stubs else ((), (), (), ())
    return (
        np.array(keys, np.int64),
        np.array([-1 - place if one is None else one for place, one in enumerate(sessions)], np.int64),
        np.array([_NO_TURN if one is None else one for one in turns], np.int64),
        np.array(tokens, float),
    )
