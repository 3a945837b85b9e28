"""The turns just before and after hits, as a search shows them. Reads only."""

from dataclasses import replace
from functools import partial

from kalito_mcp.domain.records import RecordType
from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.search import Candidate, Hit, SearchFilters, TurnBeside
from kalito_mcp.ports.store import ReadView
from kalito_mcp.retrieval.collector import TURN_CHARS
from kalito_mcp.retrieval.question import Question
from kalito_mcp.safety.trust import is_withheld
from kalito_mcp.text.sentences import cut


async def with_turns(
    view: ReadView, scope: Scope, page: list[Hit], filters: SearchFilters, question: Question
) -> list[Hit]:
    """The hits with the turns just before and after them, as far as the filters and the query admit them."""
    if not any(one.seq is not None for one in page):
        return page
    from kalito_mcp.retrieval.turns_around import turns_around  # noqa: PLC0415 - numpy comes with it

    of_hits = [one.record_id for one in page if one.seq is not None]
    beside = replace(filters, types=frozenset({RecordType.MESSAGE}), roles=frozenset(), names=frozenset())
    reach = partial(turns_around, message_ids=of_hits, filters=beside, with_centres=True)
    found = await view.search.in_index(scope, reach) or ()
    damaged = await view.records.damaged(scope, [one.record_id for one in found])
    turns = {
        (one.session_id, one.seq): one
        for one in found
        if one.record_id not in damaged
        and not is_withheld(one.origin, one.text)
        and not question.query.is_excluded(one.text)
    }
    shown: set[str] = set()

    def around(hit: Hit) -> tuple[TurnBeside, ...]:
        shown.add(hit.record_id)
        if hit.seq is None:
            return ()
        beside = [turns.get((hit.session_id, hit.seq + step)) for step in (-1, 1)]
        new = [one for one in beside if one is not None and one.record_id not in shown]
        shown.update(one.record_id for one in new)
        return tuple(map(_turn, new))

    return [replace(one, turns=around(one)) for one in page]


def _turn(said: Candidate) -> TurnBeside:
    return TurnBeside(said.record_id, said.role, said.name, cut(" ".join(said.text.split()), TURN_CHARS))
