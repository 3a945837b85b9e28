"""How well each record matches the words of a question: BM25F over a turn, the turns around it and its session. Pure.

The fields of BM25F are the turn itself, the turns at one and two places, and the rest of the session: a term counts in
each of them, with the weight of the field, and then once for all of them. So an answer is found by the words of its
question. Every record of every term is looked at, in a few passes of numpy a term, whatever their age and number.

Source: Robertson, Zaragoza, Taylor, CIKM 2004 (Simple BM25 extension to multiple weighted fields). The weights of the
fields are our own.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kalito_mcp.ports.search import TermIndex
from kalito_mcp.retrieval.question import Question
from kalito_mcp.text.analysis import MANY, SEVERAL

_AROUND: Final = (np.float32(0.5), np.float32(0.25))
"""The weight of the turns at one and at two places, in both directions."""

_OF_SESSION: Final = np.float32(0.1)
_SATURATION: Final = np.float32(1.2)
_LENGTH: Final = np.float32(0.5)
"""How much a text counts less that is longer than others."""

_TIMES: Final = {SEVERAL: np.float32(2.4), MANY: np.float32(3)}
"""The assumed count of a term that a text contains at least this often."""

_Places = NDArray[np.int32]
_NO_PLACES: Final[_Places] = np.empty(0, np.int32)


class Bm25F:
    """The shares of a question's words that each record of an agent has.

    A share is the weighted mean over the wordings of the question, each the weight of its terms that a record has of
    the weight of all its terms. It is 1 where each term is said about once, and may be more. It is 0 for records out of
    scope, and none of them counts.
    """

    def __init__(
        self, index: TermIndex, in_scope: NDArray[np.bool_], question: Question, weights: Sequence[float]
    ) -> None:
        """`weights` has one weight per wording; their sum is 1."""
        records = index.records
        self._index = index
        self._records = records
        self._in_scope = in_scope
        count = int(np.count_nonzero(in_scope))
        mean = max(1.0, float(records.word_counts[in_scope].mean())) if count else 1.0
        self._lengths = 1 - _LENGTH + _LENGTH / np.float32(mean) * records.word_counts.astype(np.float32)
        self._found: dict[str, _Places] = self._with_forms({term: question.forms[term] for term in question.terms})
        idf = {term: math.log1p((count - len(at) + 0.5) / (len(at) + 0.5)) for term, at in self._found.items()}
        self.weights: Final = _weights(question, idf, weights)
        """The share that each term adds to a record that has it once."""
        self._shares = np.zeros(records.count, np.float32)
        self._of_session = np.zeros(len(records.session_numbers) + 1, np.float32)
        """The shares of terms said anywhere in each session; the last entry is for records without a session."""
        frequencies = np.zeros(records.count, np.float32)
        counting = {term: weight for term, weight in self.weights.items() if weight and len(self._found[term])}
        forms = {term: question.forms[term] for term in counting}
        often = {mean: self._with_forms(forms, times=times) for times, mean in _TIMES.items()}
        for term, weight in counting.items():
            means = [(mean, found[term]) for mean, found in often.items()]
            self._add(self._found[term], means, weight * question.credit_of(term), frequencies)

    def has(self, term: str, places: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of the records contain the term themselves."""
        found = self._found.get(term, _NO_PLACES)
        at = np.searchsorted(found, places)
        is_in = at < len(found)
        is_in[is_in] = found[at[is_in]] == places[is_in]
        return is_in

    @property
    def places(self) -> NDArray[np.int64]:
        """The places of the records that have a word of the question themselves, ascending."""
        has_any = np.zeros(self._records.count, np.bool_)
        for places in self._found.values():
            has_any[places] = True
        return np.flatnonzero(has_any)

    def shares(self, places: NDArray[np.int64]) -> NDArray[np.float32]:
        """The shares of the records at these places."""
        found: NDArray[np.float32] = self._shares[places] + self._of_session[self._records.sessions[places]]
        return found

    def _with_forms(self, forms: Mapping[str, Sequence[str]], *, times: int = 1) -> dict[str, _Places]:
        """For each term, the places in scope of the records that contain any of its forms this often."""
        places = self._index.places(frozenset().union(*forms.values()), times=times)
        return {term: self._with_any([places[form] for form in of_term]) for term, of_term in forms.items()}

    def _with_any(self, of_forms: Sequence[_Places]) -> _Places:
        found = [places for places in of_forms if len(places)]
        if not found:
            return _NO_PLACES
        places = found[0] if len(found) == 1 else np.unique(np.concatenate(found))
        return places[self._in_scope[places]]

    def _add(
        self,
        found: _Places,
        means: Sequence[tuple[np.float32, _Places]],
        weight: float,
        frequencies: NDArray[np.float32],
    ) -> None:
        """Add what a term is worth to each record. `means` are its counts in those that have it more often, the
        greatest last. `frequencies` has a place for each record, all 0, and is so again afterwards."""
        often = np.ones(len(found), np.float32)
        for mean, places in means:
            often[np.searchsorted(found, places)] = mean
        own = often / self._lengths[found]
        frequencies[found] += own
        touched = [found]
        for links in (self._records.previous_turns, self._records.next_turns):
            places, said = found, own
            for field in _AROUND:
                following = links[places]
                is_turn = (following >= 0) & (following < len(links))
                places, said = following[is_turn], said[is_turn]
                frequencies[places] += field * said  # a turn follows one turn only, so no place is there twice
                touched.append(places)
        at = np.concatenate(touched)
        sessions = self._records.sessions
        is_said = np.float32(weight * _saturated(_OF_SESSION))
        has_session = sessions[at] >= 0
        said = np.float32(weight) * _saturated(frequencies[at] + np.where(has_session, _OF_SESSION, np.float32(0)))
        # A place may be there more than once: then the same value is stored again.
        self._shares[at] = self._shares[at] + said - np.where(has_session, is_said, 0)
        frequencies[at] = 0
        of_session = sessions[found]
        of_session = of_session[of_session >= 0]
        self._of_session[of_session] = self._of_session[of_session] + is_said


def _saturated(frequency: Any) -> Any:
    """The weight of a term by its count in all fields together: 1 if once, at most 2.2."""
    return (_SATURATION + np.float32(1)) * frequency / (frequency + _SATURATION)


def _weights(question: Question, idf: Mapping[str, float], weights: Sequence[float]) -> dict[str, float]:
    """The weight of each term. One that no record has counts in the sum: a hit on one word of five gets a fifth."""
    found = dict.fromkeys(question.terms, 0.0)
    asking = [(terms, weight) for terms, weight in zip(question.wordings, weights, strict=True) if terms]
    whole = sum(weight for _, weight in asking) or 1.0
    for terms, weight in asking:
        mass = sum(idf[term] for term in terms) or 1.0
        for term in terms:
            found[term] += weight / whole * idf[term] / mass
    return found
