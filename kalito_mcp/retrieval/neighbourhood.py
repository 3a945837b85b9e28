"""First-stage features: what the index and the positions of records say before any text is read. Pure.

The index says which terms each record contains, and a stub says where the record stands. So the terms of its
neighbours are known without reading them. A turn gets a share of the terms of the turns around it and of its session.
Each term counts once. The longer the turn, the smaller the share, because a long text speaks for itself.
Sources: shares and length were fitted on LoCoMo and BEAM together (`python -m bench.recall`). Indexing the neighbours'
texts with each turn instead loses 15 points of recall on BEAM.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Final

from kalito_mcp.domain.search import CandidateStub
from kalito_mcp.retrieval.features import damping
from kalito_mcp.retrieval.term_masks import TermMasks, bits

_OFFSETS: Final = (-2, -1, 1, 2, 3)
_SHARES: Final = (0.4, 0.5, 0.3, 0.2, 0.1)
REACH: Final = max(map(abs, _OFFSETS))
"""How many turns before and after a message are its neighbours."""

# How much the similarity of a neighbour counts, by distance. Fitted on LoCoMo and BEAM, as the shares are.
_SIMILARITY_SHARES: Final = ((-1, 1.0), (1, 1.0), (-2, 0.6), (2, 0.6), (-3, 0.3), (3, 0.3))
_SESSION_SHARE: Final = 0.15
_HALVING_WORDS: Final = 60.0
"""Words of a text at which its neighbours count half."""

_WORDS_PER_TOKEN: Final = 0.75
_BEST_OF_SESSION: Final = 3


class Neighbourhood:
    """The first-stage features of a batch of candidate stubs."""

    def __init__(self, term_masks: TermMasks, term_count: int, stubs: Iterable[CandidateStub]) -> None:
        self._term_masks = term_masks
        self._terms: Final = (1 << term_count) - 1
        self._mass = sum(term_masks.weights[:term_count]) or 1.0
        self.stubs: Final = list(stubs)
        mask_of = term_masks.masks.get
        self._masks = {stub.key: mask_of(stub.key, 0) & self._terms for stub in self.stubs}
        self._turns: defaultdict[int | None, dict[int, int]] = defaultdict(dict)
        """The terms of each turn, by session and seq."""
        self._sessions: defaultdict[int | None, int] = defaultdict(int)
        for key, session, seq, *_ in self.stubs:
            mask = self._masks[key]
            self._sessions[session] |= mask
            if seq is not None:
                self._turns[session][seq] = mask
        # Records without a session share nothing.
        self._sessions[None] = 0
        self._known: dict[tuple[int, ...], float] = {}
        self._shared: Final = {stub.key: self._share(stub) for stub in self.stubs}
        self._best = self._best_of_sessions()

    def contains_any(self, stub: CandidateStub) -> bool:
        """Whether the record itself contains a term or a hyponym of the query."""
        return stub.key in self._term_masks.masks

    def lexical(self, stub: CandidateStub) -> float:
        """The lexical feature of the text if it contains each of its terms once."""
        return self._term_masks.weight(self._masks[stub.key]) / self._mass / (1 + damping(_length(stub)))

    def hyponym(self, stub: CandidateStub) -> float:
        """The hyponym feature of the text if it contains each of its hyponyms once."""
        found = self._term_masks.masks.get(stub.key, 0) & ~self._terms
        return self._term_masks.weight(found) / self._mass / (1 + damping(_length(stub))) if found else 0.0

    def session(self, stub: CandidateStub) -> float:
        """The mean `neighbours` feature of the best records of its session."""
        return 0.0 if stub.session_key is None else self._best[stub.session_key]

    def is_alone(self, stub: CandidateStub) -> bool:
        """Whether no other record of its session contains a term of the query."""
        return not any(
            self._masks[other.key]
            for other in self.stubs
            if other.session_key == stub.session_key and other.key != stub.key
        )

    def neighbour_terms(self, stub: CandidateStub) -> int:
        """The terms of the turns around it, as a bitmask."""
        found = 0
        for mask in self._neighbour_masks(stub):
            found |= mask
        return found

    def neighbour_semantic(self, stub: CandidateStub, similarities: Mapping[int, float]) -> float:
        """The greatest similarity of a turn around it, weighted by distance; never below 0."""
        if stub.seq is None:
            return 0.0
        turns = ((self._keys.get((stub.session_key, stub.seq + at), 0), share) for at, share in _SIMILARITY_SHARES)
        return max([0.0, *(share * similarities[key] for key, share in turns if key in similarities)])

    def neighbours(self, stub: CandidateStub, length: float | None = None) -> float:
        """The terms of the text and its neighbours, damped by the length of the text in words.

        Without `length`, it is estimated from the stub's tokens.
        """
        return self._shared[stub.key] / (1 + (_length(stub) if length is None else length) / _HALVING_WORDS)

    @cached_property
    def _keys(self) -> Mapping[tuple[int | None, int], int]:
        return {(stub.session_key, stub.seq): stub.key for stub in self.stubs if stub.seq is not None}

    def _neighbour_masks(self, stub: CandidateStub) -> Sequence[int]:
        """One mask for each offset; empty for a record that is no turn."""
        seq = stub.seq
        if seq is None:
            return ()
        turn = self._turns[stub.session_key].get
        return [turn(seq + offset, 0) for offset in _OFFSETS]

    def _share(self, stub: CandidateStub) -> float:
        own, session = self._masks[stub.key], self._sessions[stub.session_key]
        # There are hundreds of turns, but few combinations of a few terms.
        signature = (own, session, *self._neighbour_masks(stub))
        shared = self._known.get(signature)
        if shared is None:
            shared = self._known[signature] = self._sum(*signature)
        return shared

    def _sum(self, own: int, session: int, *around: int) -> float:
        weights = self._term_masks.weights
        elsewhere = session & ~own
        total = self._term_masks.weight(own) + _SESSION_SHARE * self._term_masks.weight(elsewhere)
        near = [(share, mask) for share, mask in zip(_SHARES, around, strict=False) if mask & elsewhere]
        for bit in bits(elsewhere) if near else ():
            share = sum([share for share, mask in near if mask >> bit & 1])
            total += weights[bit] * min(share, 1 - _SESSION_SHARE)
        return total / self._mass

    def _best_of_sessions(self) -> dict[int, float]:
        by_session: defaultdict[int, list[float]] = defaultdict(list)
        for stub in self.stubs:
            if stub.session_key is not None:
                by_session[stub.session_key].append(self.neighbours(stub))
        return {
            session: sum(sorted(found, reverse=True)[:_BEST_OF_SESSION]) / _BEST_OF_SESSION
            for session, found in by_session.items()
        }


def _length(stub: CandidateStub) -> float:
    """Its estimated number of words."""
    return stub.tokens * _WORDS_PER_TOKEN
