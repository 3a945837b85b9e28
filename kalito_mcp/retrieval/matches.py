"""Which records contain the terms of a question, and how well each matches by its own words. Pure.

Every record of every term is looked at, in a few passes of numpy a term, whatever their age and number.
"""

import math
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kalito_mcp.ports.search import TermIndex
from kalito_mcp.retrieval.concepts import COMMONEST
from kalito_mcp.retrieval.features import damping
from kalito_mcp.retrieval.question import Question
from kalito_mcp.text.analysis import MANY, SEVERAL, stem

TERM_BITS: Final = 62
"""Of a mask. The heaviest terms have one each. All lighter ones share one, and count only in the text itself."""

_LIGHTER: Final = np.uint64(1 << TERM_BITS)
_HYPONYM: Final = np.uint64(1 << TERM_BITS + 1)
ONLY_TERMS: Final = _LIGHTER - np.uint64(1)
_TIMES: Final = {1: 1.0, SEVERAL: 2.4, MANY: 5.0}
"""How often a text contains a term on average that it contains at least so often. Means of LoCoMo and BEAM."""

_COMMON_SHARE: Final = 0.6
_COMMON: Final = frozenset(
    map(
        stem,
        """able ask back bad become begin believe best better big bit bring call care case change come couple day end
        even feel few find first front give go good great guess guy hand happen hard head hear help hour keep kind last
        late later leave left let life line little long look lose lot love make man many matter mean minute moment month
        move much name need new nice night number old one open own part people person pick place plan play point put
        question read right run same say see seem set show side small start stay still stop take talk tell thing think
        time today tonight try turn two use usual wait walk want way week whole woman wonder word work world year
        young""".split(),
    )
)
"""English words that are so frequent that one says little of what a text is about."""

_LOOSE: Final = 0.65
"""How much a word counts that is said of what is asked for, but is no instance of it."""

_Places = NDArray[np.int32]


class Matches:
    """What each record of an agent contains of a question: arrays by place, 0 for records out of scope.

    `masks` has a bit for each of `terms`, and one place more than there are records, for no record.
    """

    def __init__(self, index: TermIndex, in_scope: NDArray[np.bool_], question: Question) -> None:
        records = index.records
        self._index = index
        self._word_counts = records.word_counts
        self._in_languages: dict[str, NDArray[np.bool_]] = {}
        self._of_masks: dict[int, Sequence[str]] = {}
        self._in_scope = None if in_scope.all() else in_scope
        self.masks: Final = np.zeros(records.count + 1, np.uint64)
        self.lexical: Final = np.zeros(records.count, np.float32)
        """The lexical feature: the damped share of the terms' weights that the text contains."""
        self.own: Final = np.zeros(records.count, np.float32)
        """The share of the terms' weights that the text contains, each term once."""
        self.hyponym: Final = np.zeros(records.count, np.float32)
        """The same as `lexical` for the kinds whose hyponyms the text contains."""
        found = {term: self._with_any(question.forms[term]) for term in question.terms}
        count = records.count if self._in_scope is None else int(np.count_nonzero(in_scope))
        weights = {term: _weight(term, len(places), count) for term, places in found.items()}
        # Terms without a record count in the sum of weights: a hit on one word of five gets a fifth.
        mass = sum(weights.values()) or 1.0
        heaviest = set(sorted(question.terms, key=lambda term: -weights[term])[:TERM_BITS])
        self.terms: Final = tuple(term for term in question.terms if term in heaviest)
        self.shares: Final = np.array([weights[term] / mass for term in self.terms])
        """The share of each of `terms` in the weight of all terms of the question: ln(1 + n / df) of each."""
        bits = {term: np.uint64(1 << bit) for bit, term in enumerate(self.terms)}
        for term, places in found.items():
            share = weights[term] / mass
            self._add_term(question.forms[term], places, share, question.credit_of(term))
            self.own[places] += np.float32(share)
            self.masks[places] |= bits.get(term, _LIGHTER)
        for kind, members in question.hyponyms.items():
            mentioning, counts = self._tally(members, question.loose.get(kind, frozenset()), question.foreign, count)
            damped = damping(self._word_counts[mentioning])
            self.hyponym[mentioning] += np.float32(weights[kind] / mass) * counts / (counts + damped)
            self.masks[mentioning] |= _HYPONYM

    @property
    def places(self) -> NDArray[np.int64]:
        """The places of the records that contain something of the question, ascending."""
        return np.flatnonzero(self.masks[:-1] != 0)

    def terms_in(self, mask: int) -> Sequence[str]:
        """The terms whose bits are set, in order."""
        found = self._of_masks.get(mask)
        if found is None:  # few records differ in it
            contained = [term for bit, term in enumerate(self.terms) if mask >> bit & 1]
            found = self._of_masks[mask] = contained
        return found

    def has_hyponym(self, mask: int) -> bool:
        """Whether the record of this mask contains a hyponym."""
        return bool(mask & int(_HYPONYM))

    def _add_term(self, forms: Sequence[str], places: _Places, share: float, credit: float) -> None:
        """Add a term to the lexical feature: for all records, then what those gain that contain it more often."""
        before = 0.0
        for times, mean in _TIMES.items():
            of_times = places if times == 1 else self._with_any(forms, times=times)
            damped, now = damping(self._word_counts[of_times]), mean * credit
            gained = np.float32(now) / (damped + np.float32(now)) - np.float32(before) / (damped + np.float32(before))
            self.lexical[of_times] += np.float32(share) * gained
            before = now

    def _with_any(self, forms: Sequence[str], *, times: int = 1) -> _Places:
        """The places in scope of the records that contain any of the forms so often."""
        found = [places for form in forms if len(places := self._index.places(form, times=times))]
        if not found:
            return _NO_PLACES
        places = found[0] if len(found) == 1 else np.unique(np.concatenate(found))
        return places if self._in_scope is None else places[self._in_scope[places]]

    def _tally(
        self, terms: Iterable[str], loose: Set[str], foreign: Mapping[str, str], count: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """The places in scope of the records that contain any of the terms, and how many terms each contains.

        A term that many of the `count` records contain says less: it counts as much as its weight is of the greatest.
        A foreign one counts in texts of its language only.
        """
        tally = np.zeros(len(self.lexical), np.float32)
        for term in terms:
            places = self._index.places(term)
            if len(places) and term in foreign:
                places = places[self._is_in_language(foreign[term])[places]]
            if len(places):
                rarity = math.log1p(count / len(places)) / math.log1p(max(1, count))
                tally[places] += rarity * (_LOOSE if term in loose else 1.0)
        if self._in_scope is not None:
            tally *= self._in_scope
        found = np.flatnonzero(tally != 0)
        return found, tally[found]

    def _is_in_language(self, code: str) -> NDArray[np.bool_]:
        """Which records have one of the commonest words of the language."""
        if code not in self._in_languages:
            found = np.zeros(len(self.lexical), np.bool_)
            for word in COMMONEST[code]:
                found[self._index.places(word)] = True
            self._in_languages[code] = found
        return self._in_languages[code]


def _weight(term: str, containing: int, count: int) -> float:
    """ln(1 + n / df); less for a word that is common everywhere, because few records do not show that."""
    return math.log1p(count / max(1, containing)) * (_COMMON_SHARE if term in _COMMON else 1.0)


_NO_PLACES: Final = np.empty(0, np.int32)
