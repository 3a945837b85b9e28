"""How the latest conversations ended, as hits. Reads only."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Final

from kalito_mcp.domain.records import RecordType, Role
from kalito_mcp.domain.scope import PERSONAL, Scope
from kalito_mcp.domain.search import Candidate, Hit, SearchFilters
from kalito_mcp.ports.store import ReadView
from kalito_mcp.retrieval.hits import hit_of, with_superseded
from kalito_mcp.retrieval.scored_candidate import DECIMALS
from kalito_mcp.safety.trust import is_name_withheld, is_withheld
from kalito_mcp.text.times.expressions import Span

_MESSAGES: Final = frozenset({RecordType.MESSAGE})
_SPOKEN: Final = frozenset({Role.USER, Role.ASSISTANT})
_NEXT: Final = 0.8
"""The score of a conversation's end, as a share of the next later one's score."""


async def latest_ends(
    view: ReadView,
    scope: Scope,
    *,
    most: int,
    filters: SearchFilters,
    spans: Sequence[Span] = (),
    without: str | None = None,
) -> list[list[Hit]]:
    """The last messages of the latest conversations of the scope, at most this many, the latest first; of a project
    only its own. With `spans`, what was said then. It leaves out the session `without`. Empty if
    the filters admit no messages.
    """
    if filters.types and RecordType.MESSAGE not in filters.types:
        return []
    from kalito_mcp.retrieval.session_ends import session_ends  # noqa: PLC0415 - numpy loads when first needed

    filters = replace(filters, types=_MESSAGES, roles=filters.roles or _SPOKEN)
    of_project = scope.project not in (None, PERSONAL)
    read = partial(session_ends, most=most, filters=filters, of_project=of_project, spans=spans, without=without)
    found = await view.search.in_index(scope, read) or []
    said = [one for end in found for one in end]
    damaged = await view.records.damaged(scope, [one.record_id for one in said])
    ends = [
        [
            _hit(one, round(_NEXT**place, DECIMALS), scope)
            for one in end
            if one.record_id not in damaged and not is_withheld(one.origin, one.text)
        ]
        for place, end in enumerate(found)
    ]
    labelled = iter(await with_superseded(view, scope, [hit for end in ends for hit in end]))
    return [list(islice(labelled, len(end))) for end in ends]


def _hit(said: Candidate, score: float, scope: Scope) -> Hit:
    hit = hit_of(said, score, scope.project)
    return replace(hit, name=None) if is_name_withheld(hit.origin, hit.name) else hit
