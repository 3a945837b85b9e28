"""Bounds on the work of one search."""

from dataclasses import dataclass

from kalito_mcp.domain.validation import Policy, bounded


@dataclass(frozen=True, slots=True)
class SearchPolicy(Policy):
    """What one search may cost, whatever is asked.

    First stage: at most `postings` entries of the index are read. Rare terms are complete, common ones are cut to their
    newest records. `candidates` records at a time get a first-stage score, with the neighbours of the first
    `surrounded`. A filter may admit few, so up to `filtered_candidates` are tried for one page, `chunk` at a time.
    `nearest` more come from the vectors.

    Second stage: the texts are read whose first-stage score is at least `worth_reading` of the tenth best
    (`worth_reading_by_meaning` with vectors): at least `read` of them, and at first at most `most_read`. The others are
    read when a page needs more.

    A page is empty if its best hit does not reach `min_score` as an answer (`retrieval.answerability`). With vectors it
    is enough that one of the first hits gets `min_score_by_meaning` of its score from its similarity. An embedder has
    `embedding_timeout_s` to answer; after that the search uses words only.
    """

    max_k: int = bounded(100, least=1)
    max_query_chars: int = 100_000
    max_terms: int = bounded(64, least=1)
    postings: int = bounded(100_000, least=1)
    candidates: int = bounded(1_000, least=1)
    surrounded: int = 200
    nearest: int = 64
    read: int = 16
    most_read: int = 100
    worth_reading: float = 0.7
    worth_reading_by_meaning: float = 0.6
    filtered_candidates: int = 4_000
    chunk: int = 400
    min_score: float = 0.15
    min_score_by_meaning: float = 0.05
    embedding_timeout_s: float = 2.0
