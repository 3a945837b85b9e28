"""Reads what became of the hits' statements, and orders a page of hits by it. Reads only."""

from collections.abc import Sequence
from typing import Final

from kalito_mcp.domain.facts import Polarity, StatedFact
from kalito_mcp.domain.records import RecordType
from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.search import Candidate, Hit, SearchFilters, SearchRequest
from kalito_mcp.facts.questions import asked_fact
from kalito_mcp.ports.search import SearchIndex
from kalito_mcp.ports.store import ReadView
from kalito_mcp.retrieval.currency import Currency, hit_of, labelled, newest_alike, ordered
from kalito_mcp.retrieval.question import Question
from kalito_mcp.retrieval.scored_candidate import ScoredCandidate

_LINE: Final = 20
"""Statements of a line that are read for a question."""

_ANSWERING: Final = 2
"""Records that are brought in because they state what is asked."""

_ANSWER_SCORE: Final = 0.5
"""Of a record that states what is asked, where a search by words finds nothing."""


async def newest_first(
    view: ReadView,
    scope: Scope,
    question: Question,
    page: Sequence[Hit],
    before: Sequence[ScoredCandidate],
    request: SearchRequest,
) -> tuple[list[Hit], int]:
    """The page with what is true now before what it superseded, each hit labelled; at most k hits. And how many of the
    page's own hits are shown: the next page begins after them.

    `before` are the hits of the pages before. What these brought in is left out here.
    """
    earlier = [one.candidate.key for one in before]
    answers = await answering(view, scope, question, page, request)
    facts = await view.facts.of_records(scope, [hit.key for hit in (*answers, *page)] + earlier)
    currency = Currency(facts, question)
    is_first = bool(page) and not before and not answers and currency.asks_present
    if not facts:
        return newest_alike(page) if is_first else list(page), len(page)
    brought_before: set[int | None] = set()
    if before:
        brought_before = {fact.current_key for key in earlier for fact in facts.get(key, ())}
        brought_before = (brought_before | {hit.key for hit in answers}) - set(earlier)
        answers = []
    own = [*answers, *(hit for hit in page if hit.key not in brought_before)]
    current = await _current(
        view, scope, own, currency, request, known={*earlier, *brought_before, *(hit.key for hit in (*answers, *page))}
    )
    placed = ordered(own, current, currency)[: request.k]
    unshown = {hit.key for hit in own} - {hit.key for hit in placed}
    taken = next((n for n, hit in enumerate(page) if hit.key in unshown), len(page))
    missing = [hit.key for hit in placed if hit.key not in facts]
    states = {**facts, **(await view.facts.of_records(scope, missing) if missing else {})}
    shown = [labelled(hit, states.get(hit.key, ())) for hit in placed]
    return newest_alike(shown) if is_first else shown, taken


async def answering(
    view: ReadView, scope: Scope, question: Question, page: Sequence[Hit], request: SearchRequest
) -> list[Hit]:
    """The records that state what the question asks for, as hits, without those on the page: what stands, or what stood
    before if it asks for the past."""
    asked = asked_fact(question.query.words)
    if asked is None:
        return []
    past = Currency({}, question).asks_past
    for attribute in asked.attributes:
        line = await view.facts.line(scope, asked.subject, attribute, limit=_LINE)
        stating = [one for one in line if (one.superseded_by is not None) is past and one.polarity is Polarity.IS]
        stating = stating or [one for one in line if one.superseded_by is None]
        if stating:
            return await _as_hits(view, scope, stating[:_ANSWERING], page, request)
    return []


async def _as_hits(
    view: ReadView, scope: Scope, stating: Sequence[StatedFact], page: Sequence[Hit], request: SearchRequest
) -> list[Hit]:
    shown = {hit.key for hit in page}
    keys = [key for one in stating if (key := one.record_key) not in shown]
    found = await _unseen(view, scope, keys, request.filters)
    score = page[0].score if page else _ANSWER_SCORE
    return [hit_of(one, score, scope.project) for one in found if _admits(request.filters, one, scope)]


async def _current(
    view: ReadView,
    scope: Scope,
    hits: Sequence[Hit],
    currency: Currency,
    request: SearchRequest,
    *,
    known: set[int | None],
) -> dict[int, Hit]:
    """The records that superseded the hits and stand themselves, as hits, if the filters admit them."""
    wanted = {key: hit for hit in hits for key in currency.superseding(hit) if key not in known}
    if not wanted:
        return {}
    found = await _unseen(view, scope, list(wanted), request.filters)
    return {
        one.key: hit_of(one, wanted[one.key].score, scope.project)
        for one in found
        if _admits(request.filters, one, scope)
    }


async def _unseen(view: ReadView, scope: Scope, keys: Sequence[int], filters: SearchFilters) -> Sequence[Candidate]:
    """The records with these keys that the caller does not see anyway."""
    if not keys:
        return ()
    from kalito_mcp.retrieval.filtering import unseen  # noqa: PLC0415 - numpy comes with it

    def read(index: SearchIndex) -> Sequence[Candidate]:
        return index.candidates(unseen(index.records, keys, filters))

    return await view.search.in_index(scope, read) or ()


def _admits(filters: SearchFilters, one: Candidate, scope: Scope) -> bool:
    """Whether a record may be a hit. One whose tags would have to be known may not."""
    names = {name.casefold() for name in filters.names}
    return (
        (not filters.types or one.type in filters.types)
        and (not filters.roles or one.role in filters.roles)
        and (filters.since is None or one.created_at >= filters.since)
        and (filters.until is None or one.created_at <= filters.until)
        and (not names or (one.name or "").casefold() in names)
        and not filters.tags
        and (not filters.origins or one.origin in filters.origins)
        and one.importance >= filters.min_importance
        and (scope.session is None or one.session_id == scope.session)
        and one.type is not RecordType.THOUGHT
    )
