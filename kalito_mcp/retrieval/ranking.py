"""The scores of the candidates of a search. Pure."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kalito_mcp.domain.records import Role
from kalito_mcp.ports.embedder import Unrelated
from kalito_mcp.ports.search import RecordColumns
from kalito_mcp.retrieval.bm25f import Bm25F
from kalito_mcp.retrieval.filtering import named
from kalito_mcp.retrieval.formula import BY_WORDS, WITH_VECTORS, WITHOUT_ITS_VECTOR
from kalito_mcp.retrieval.local_days import local_days
from kalito_mcp.retrieval.question import Question
from kalito_mcp.text.analysis import words
from kalito_mcp.text.times.expressions import date_match

_ASSISTANT: Final = tuple(Role).index(Role.ASSISTANT)
_UNNAMED: Final = 0
_WORD: Final = re.compile(r"\w+(?:['’]s)?")


class Similarities(NamedTuple):
    """Similarities of texts to a question: the cosines of the records at `places` (n,), and of unrelated texts."""

    places: NDArray[np.int64]
    cosines: NDArray[np.float32]
    unrelated: Unrelated


class Scores:
    """The scores of the records at `places`, and the parts they are made of."""

    def __init__(
        self,
        records: RecordColumns,
        question: Question,
        bm25f: Bm25F,
        places: NDArray[np.int64],
        similarities: Similarities | None,
    ) -> None:
        self.places: Final = places
        weights = BY_WORDS if similarities is None else WITH_VECTORS
        shares = bm25f.shares(places)
        parts: dict[str, NDArray[np.float32]] = {"words": weights.words * shares}
        if similarities is not None:
            own, nearby = _cosines(records, places, similarities)
            parts["meaning"], parts["nearby"] = weights.meaning * own, weights.nearby * nearby
            has_vector = np.isin(places, similarities.places)
            parts["words"] = np.where(has_vector, weights.words, np.float32(WITHOUT_ITS_VECTOR)) * shares
        if question.dates:
            days, of_day = np.unique(local_days(question.zone, records.created_at[places]), return_inverse=True)
            matches = np.array([date_match(question.dates, int(day)) for day in days], np.float32)
            parts["time"] = (weights.full if question.asks_time_alone else weights.time) * matches[of_day]
        self.speaker: Final = named_speaker(records, question)
        """The one speaker whom the question names; None if it names none or several."""
        is_assistant = (records.roles[places] == _ASSISTANT) & (records.names[places] == _UNNAMED)
        if question.intent.assistant:
            parts["speaker"] = weights.speaker * is_assistant.astype(np.float32)
        else:
            parts["assistant"] = weights.assistant * is_assistant.astype(np.float32)
        if self.speaker is not None:
            is_theirs = np.isin(records.names[places], named(records, {self.speaker.casefold()}))
            parts["speaker"] = weights.speaker * is_theirs.astype(np.float32)
        self._parts = {name: part / np.float32(weights.full) for name, part in parts.items()}
        self.values: Final = np.sum(list(self._parts.values()), axis=0)

    def order(self) -> NDArray[np.int64]:
        """The candidates, best first; ties newest first."""
        found: NDArray[np.int64] = np.lexsort((-self.places, -self.values))
        return found

    def parts(self, at: int) -> Mapping[str, float]:
        """What each term adds to the score of a candidate, without terms that add nothing."""
        return {name: float(part[at]) for name, part in self._parts.items() if part[at]}


def _cosines(
    records: RecordColumns, places: NDArray[np.int64], found: Similarities
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """For each record, its similarity, and the greater one of the turns before and after it, in standard deviations
    above unrelated texts. 0 for a record without a vector."""
    known = np.zeros(records.count + 1, np.float32)  # the last place stands for a missing record
    known[found.places] = (found.cosines - np.float32(found.unrelated.mean)) / np.float32(found.unrelated.spread)
    around = [
        np.where((links[places] >= 0) & (links[places] < records.count), links[places], records.count)
        for links in (records.previous_turns, records.next_turns)
    ]
    return known[places], np.maximum(known[around[0]], known[around[1]])


def named_speaker(records: RecordColumns, question: Question) -> str | None:
    """The one speaker whom the question names; None if it names none or several."""
    wanted = question.words | question.credit.keys()
    named_ones = (name for name in records.name_list if name is not None and not wanted.isdisjoint(_words(name)))
    found = {name.casefold(): name for name in named_ones}
    return next(iter(found.values())) if len(found) == 1 else None


def without_names(text: str, records: RecordColumns) -> str:
    """The text without the names of this memory's speakers. A vector would show who speaks rather than what about."""
    known = frozenset().union(*(_words(name) for name in records.name_list if name is not None))
    kept = " ".join(_WORD.sub(lambda found: "" if known.intersection(_words(found[0])) else found[0], text).split())
    return kept if _WORD.search(kept) else text


@lru_cache(maxsize=16_384)
def _words(name: str) -> frozenset[str]:
    return frozenset(word.partition("'")[0] for word in words(name))
