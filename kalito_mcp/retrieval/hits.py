"""Makes hits of candidates, labels those that another record names as superseded, and merges lists. Reads only."""

from collections.abc import Sequence
from dataclasses import replace

from kalito_mcp.domain.records import RecordType
from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.search import Candidate, Hit
from kalito_mcp.ports.store import ReadView


def hit_of(candidate: Candidate, score: float, project: str | None) -> Hit:
    """The hit of a record, with this score. `project` is the search's project."""
    # The key of a pin may be an internal one.
    is_message = candidate.type is RecordType.MESSAGE
    return Hit(
        record_id=candidate.record_id,
        type=candidate.type,
        session_id=candidate.session_id,
        role=candidate.role,
        name=candidate.name,
        text=candidate.text,
        created_at=candidate.created_at,
        score=score,
        client_key=candidate.client_key if is_message else None,
        seq=candidate.seq if is_message else None,
        origin=candidate.origin,
        revision=candidate.revision,
        status=candidate.status,
        due_date=candidate.due_date,
        project=None if candidate.project == project else candidate.project,
    )


async def with_superseded(view: ReadView, scope: Scope, hits: Sequence[Hit]) -> list[Hit]:
    """The hits, in their order; each that another record names as superseded is labelled with that one and its
    moment."""
    named = await view.records.superseded(scope, [hit.record_id for hit in hits])
    ends = [named.get(hit.record_id) for hit in hits]
    return [
        replace(hit, superseded_by=end[0], valid_until=end[1]) if end else hit
        for hit, end in zip(hits, ends, strict=True)
    ]


async def of_space(view: ReadView, space: str, hits: Sequence[Hit]) -> list[Hit]:
    """The hits, labelled with the space that they are from and who shared each."""
    copies = await view.spaces.shared(space, [hit.record_id for hit in hits]) if hits else {}
    sharers = {record_id: copy.user for record_id, copy in copies.items()}
    return [replace(hit, space=space, shared_by=sharers.get(hit.record_id)) for hit in hits]


def merged_hits(places: Sequence[Sequence[Hit]]) -> list[Hit]:
    """The hits of several places, best first. A hit with the words of one of an earlier place is named there as the
    same."""
    merged: list[Hit] = []
    at: dict[str, int] = {}
    for hits in places:
        before = len(merged)
        for hit in hits:
            words = " ".join(hit.text.casefold().split())
            first = at.setdefault(words, len(merged))
            if first < before:
                one = merged[first]
                merged[first] = replace(
                    one, same=(*one.same, hit.record_id, *hit.same), score=max(one.score, hit.score)
                )
            else:
                merged.append(hit)
    return sorted(merged, key=lambda one: -one.score)


def with_room_for_own(hits: Sequence[Hit], wanted: int) -> list[Hit]:
    """The first hits, `wanted` of them; of spaces no more than half, unless there are too few others."""
    own = sum(hit.space is None for hit in hits)
    room = max(wanted // 2, wanted - own)
    kept: list[Hit] = []
    for hit in hits:
        room -= hit.space is not None
        if hit.space is None or room >= 0:
            kept.append(hit)
    return kept[:wanted]
