"""What stands around the candidates: the terms of the turns before and after each, and of its session. Pure.

The index says which terms each record contains, and the columns say where it stands. So the terms of its neighbours are
known without reading a text. A turn gets a share of the terms of the turns around it and of its session. Each term
counts once. The longer the turn, the smaller the share, because a long text speaks for itself.
Sources: shares and length were fitted on the sets that `weights` names. Indexing the neighbours'
texts with each turn instead loses 15 points of recall on BEAM.
"""

from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kalito_mcp.ports.search import RecordColumns
from kalito_mcp.retrieval.matches import ONLY_TERMS, Matches

_SHARES: Final = {-2: 0.25, -1: 0.3, 1: 0.3, 2: 0.2, 3: 0.1}
"""How much a term of a neighbour counts, by distance."""

# How much the similarity of a neighbour counts, by distance. Fitted on LoCoMo and BEAM, as the shares are.
_SIMILARITY_SHARES: Final = {-1: 1.0, 1: 1.0, -2: 0.6, 2: 0.6, -3: 0.3, 3: 0.3}
_NEXT_TO_SHARE: Final = 0.5
"""How much the similarity of the turn before, and of the one after, counts in the mean with a short text's own."""

_SAME_TALK_MS: Final = 12 * 3_600_000
"""Turns that are further apart say nothing about each other's meaning, though their session is one: it may be a diary,
or a list of memories."""

_SESSION_SHARE: Final = 0.15
HALVING_WORDS: Final = 75.0
"""Words of a text at which its neighbours count half."""

_BEST_OF_SESSION: Final = 3
_REACH: Final = 3


class Neighbourhood:
    """The surroundings of the records at `places`, as arrays in their order."""

    def __init__(self, records: RecordColumns, matches: Matches, places: NDArray[np.int64]) -> None:
        self._records = records
        self._matches = matches
        self._places = places
        self._own = matches.masks[places] & ONLY_TERMS
        self._turns_around = self._turns()
        self._around = {offset: matches.masks[self._turns_around[offset]] & ONLY_TERMS for offset in _SHARES}
        count = len(records.session_numbers)
        # A record without a session has the number -1, so it gets the last place of each array, where nothing counts.
        self._session_of = records.sessions[places]
        of_session = np.zeros(count + 1, np.uint64)
        np.bitwise_or.at(of_session, self._session_of, np.bitwise_or.reduce([self._own, *self._around.values()]))
        of_session[-1] = 0
        shares = matches.own[places] + self._shared(of_session[self._session_of] & ~self._own)
        self.neighbours: Final = shares / (1 + records.word_counts[places] / HALVING_WORDS)
        """The terms of each text and its neighbours, damped by its length."""
        self.session: Final = self._best_of_sessions(count + 1)
        """The mean `neighbours` feature of the best candidates of its session."""

    def is_alone(self, candidate: int) -> bool:
        """Whether no other candidate of its session contains a term of the query."""
        session = self._session_of[candidate]
        others = (self._session_of == session) & (session >= 0) & (self._own != 0)
        others[candidate] = False
        return not others.any()

    def neighbour_terms(self, candidate: int) -> int:
        """The terms of the turns around it, as a bitmask."""
        found = 0
        for around in self._around.values():
            found |= int(around[candidate])
        return found

    def semantic(self, similarities: Mapping[int, float]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The similarity of each candidate in its place, and the greatest of a turn around it, weighted by distance.

        The first is the mean with the turns next to it, which count less the longer the text is; the text's own, if it
        contains nothing of the question. Never below 0. `similarities` are by place. Turns without one, or of another
        time, do not count.
        """
        of_places = np.full(self._records.count + 1, np.nan)
        of_places[list(similarities)] = list(similarities.values())
        around = {offset: of_places[self._in_same_talk(offset)] for offset in _SIMILARITY_SHARES}
        best = np.zeros(len(self._places))
        for offset, share in _SIMILARITY_SHARES.items():
            np.maximum(best, share * np.nan_to_num(around[offset]), out=best)
        own = np.nan_to_num(of_places[self._places])
        damped = _NEXT_TO_SHARE / (1 + self._records.word_counts[self._places] / HALVING_WORDS)
        weight = np.where(self._matches.masks[self._places] != 0, damped, 0.0)
        beside = np.stack([around[-1], around[1]])
        mean = (own + weight * np.nansum(beside, axis=0)) / (1 + weight * np.sum(~np.isnan(beside), axis=0))
        return np.maximum(0.0, mean), best

    def _in_same_talk(self, offset: int) -> NDArray[np.int64]:
        """The places of the turns at this distance; the place after the last where there is none near in time."""
        turns, count, created_at = self._turns_around[offset], self._records.count, self._records.created_at
        apart = np.abs(created_at[np.minimum(turns, count - 1)] - created_at[self._places])
        return np.where(apart <= _SAME_TALK_MS, turns, count)

    def _turns(self) -> dict[int, NDArray[np.int64]]:
        """The places of the turns around each candidate by distance; the place after the last where there is none."""
        count, found = self._records.count, {}
        for direction, links in ((-1, self._records.previous_turns), (1, self._records.next_turns)):
            turn = self._places
            for distance in range(1, _REACH + 1):
                linked = links[np.minimum(turn, count - 1)]
                turn = np.where((turn < count) & (linked >= 0) & (linked < count), linked, count)
                found[direction * distance] = turn
        return found

    def _shared(self, elsewhere: NDArray[np.uint64]) -> NDArray[np.float64]:
        """The shares of those terms of each session that the text has not itself."""
        total = np.zeros(len(elsewhere))
        around = [(share, self._around[offset]) for offset, share in _SHARES.items()]
        for bit, weight in enumerate(self._matches.shares):
            contained = _contains(elsewhere, bit)
            if contained.any():
                near = sum(share * _contains(masks, bit) for share, masks in around)
                total += weight * contained * (_SESSION_SHARE + np.minimum(near, 1 - _SESSION_SHARE))
        return total

    def _best_of_sessions(self, count: int) -> NDArray[np.float64]:
        """For each candidate, the mean of the best three of its session; 0 without a session."""
        order = np.argsort(-self.neighbours)
        order = order[np.argsort(self._session_of[order], kind="stable")]
        session = self._session_of[order]
        starts = np.flatnonzero(np.diff(session, prepend=session[:1] - 1))
        place = np.arange(len(order)) - np.repeat(starts, np.diff(starts, append=len(order)))
        is_best = (place < _BEST_OF_SESSION) & (session >= 0)
        best = np.bincount(session[is_best], weights=self.neighbours[order][is_best], minlength=count)
        return best[self._session_of] / _BEST_OF_SESSION


def _contains(masks: NDArray[np.uint64], bit: int) -> NDArray[np.float64]:
    """1 for each mask in which the bit is set, else 0."""
    return ((masks >> np.uint64(bit)) & np.uint64(1)).astype(float)
