"""Bounds on the work of one search."""

from dataclasses import dataclass

from kalito_mcp.domain.search import MOST_HITS
from kalito_mcp.domain.validation import Policy, bounded


@dataclass(frozen=True, slots=True)
class SearchPolicy(Policy):
    """Limits on the cost of one search.

    Every record of every term is looked at. The `candidates` that match best by words get a score, and `nearest` more
    that have the most similar vectors. The texts of the best `read` are read, and when a page needs more, of the next
    `read`. A quoted phrase is looked for in the best `phrase_texts`. An embedder has `embedding_timeout_s` to answer;
    after that the search uses words only.
    """

    max_k: int = bounded(MOST_HITS, least=1)
    max_query_chars: int = 100_000
    max_terms: int = bounded(400, least=1)
    candidates: int = bounded(400, least=1)
    nearest: int = 200
    read: int = bounded(40, least=1)
    phrase_texts: int = bounded(1_000, least=1)
    embedding_timeout_s: float = 2.0
