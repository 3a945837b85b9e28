"""What the wordings of a query find together. Pure.

Each wording is searched by itself. A record's score is the mean over all of them, 0 where it was not found.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from kalito_mcp.domain.search import Hit, SearchPage
from kalito_mcp.retrieval.question import Question


def merged(pages: Sequence[SearchPage], *, offset: int, k: int, fingerprint: str) -> SearchPage:
    """The page from `offset` of what the first pages of all wordings found, the query's first.

    Equal scores: newest first. A record that one wording found as the same as another is one hit with it.
    """
    found: dict[str, Hit] = {}
    shown_as: dict[str, str] = {}
    scores: defaultdict[str, float] = defaultdict(float)
    for page in pages:
        of_page: dict[str, float] = {}
        for hit in page.hits:
            ids = (hit.record_id, *hit.same)
            shown = next((shown_as[one] for one in ids if one in shown_as), hit.record_id)
            shown_as |= dict.fromkeys(ids, shown)
            found.setdefault(shown, hit)
            of_page.setdefault(shown, hit.score / len(pages))
        for shown, share in of_page.items():
            scores[shown] += share
    ranked = sorted(found.values(), key=lambda hit: (-scores[hit.record_id], -hit.key))
    hits = tuple(
        replace(hit, score=round(scores[hit.record_id], 4), answer=None if _is_in(found, hit) else hit.answer)
        for hit in ranked[offset : offset + k]
    )
    more = f"{offset + k}-{fingerprint}" if len(ranked) > offset + k else None
    return SearchPage(hits, more, next((one.note for one in pages if one.hits), pages[0].note))


def within(asked: Question, other: Question) -> Question:
    """The other wording, which finds only what the syntax of the query admits: its own has no meaning."""
    return replace(other, query=replace(asked.query, words=other.query.words), asks_where_left_off=False)


def _is_in(found: dict[str, Hit], hit: Hit) -> bool:
    return hit.answer is not None and hit.answer.record_id in found
