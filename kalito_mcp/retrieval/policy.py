"""Bounds on the work of one search."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SearchPolicy:
    """What one search may cost, whatever is asked.

    At most `postings` entries of the index are looked at, rare terms being complete and common ones cut to their newest
    records. `candidates` records are weighed by their places at a time, with the turns around the first `surrounded`;
    `filtered_candidates` are the most for one page, because a filter may admit few. `nearest` more come from an index
    of vectors. Their texts are compared by promise: first those that promise at least `worth_reading` of what the tenth
    does (`worth_reading_by_meaning` where vectors are asked too), and at least `read`; the others where more hits are
    wanted. Where not even the best hit reaches `min_score` by what is about the subject (`retrieval.noise`), nothing is
    told: it would be noise. Where vectors are asked too, it is enough that one of the first hits has
    `min_score_by_meaning` of its score for its likeness. An embedder that does not answer within `embedding_timeout_s`
    is not waited for.
    """

    max_k: int = 100
    max_query_chars: int = 100_000
    max_terms: int = 32
    postings: int = 4_000
    candidates: int = 120
    surrounded: int = 24
    nearest: int = 64
    read: int = 16
    worth_reading: float = 0.7
    worth_reading_by_meaning: float = 0.6
    filtered_candidates: int = 4_000
    chunk: int = 400
    min_score: float = 0.145
    min_score_by_meaning: float = 0.05
    embedding_timeout_s: float = 2.0
