"""One attempt to pack a context: what was taken. Pure."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from kalito_mcp.contexts import render
from kalito_mcp.contexts.history import TakenPassages
from kalito_mcp.contexts.parts import ContextParts
from kalito_mcp.domain.given import MOST_LEFT_OUT, LeftOut, PartName, Why, left_out
from kalito_mcp.domain.kinds import Kind
from kalito_mcp.domain.known import KnownRecord

_RECENT_SHARE: Final = 1 / 6
_SMALL_SHARE: Final = 0.5
_SMALL: Final = 450
"""Tokens of the protected newest messages together: up to this many, they may have half of the context."""
_LEAST_OF_ONE: Final = 40
_LATEST: Final = 0.25
_LATEST_BESIDE_HITS: Final = 0.1
_ASKED_BESIDE_HITS: Final = 0.5


@dataclass(slots=True)
class Packing:
    """One attempt: the pieces taken, by their place in the parts, and the tokens left. Of the turns of the matches and
    of the latest conversations, those that were taken, and the lines of their passages."""

    left: int
    recent: dict[int, render.Piece] = field(default_factory=dict[int, render.Piece])
    known: dict[int, render.Piece] = field(default_factory=dict[int, render.Piece])
    digest: dict[int, render.Piece] = field(default_factory=dict[int, render.Piece])
    pins: dict[int, render.Piece] = field(default_factory=dict[int, render.Piece])
    summaries: dict[int, render.Piece] = field(default_factory=dict[int, render.Piece])
    matching: TakenPassages = TakenPassages()
    latest: TakenPassages = TakenPassages()
    shown_first: frozenset[str] = frozenset()
    """The ids of parts other than matches that were taken before them."""

    def known_of(self, known: Sequence[KnownRecord]) -> list[KnownRecord]:
        """The known facts that were taken, in their order."""
        return [known[place] for place in sorted(self.known)]

    def digest_of(self, digest: Sequence[KnownRecord]) -> list[KnownRecord]:
        """The same of the digest."""
        return [digest[place] for place in sorted(self.digest)]

    def take(self, part: dict[int, render.Piece], place: int, piece: render.Piece, cost: int) -> bool:
        """Take the piece if its cost is left. Return whether it was taken."""
        if cost > self.left:
            return False
        part[place] = piece
        self.left -= cost
        return True

    def drop_said(self, digest: Sequence[KnownRecord]) -> None:
        """Leave out of the digest what the ends of conversations say in the same words, unless it is open there."""
        said = [turn.text for turn in self.latest.turns]
        for place in list(self.digest):
            one = digest[place]
            if one.kind is not Kind.OPEN and any(" ".join(one.text.split()) in text for text in said):
                del self.digest[place]


def taken_ids(parts: ContextParts, packing: Packing) -> dict[PartName, list[str]]:
    """The ids of what was taken, by part."""
    latest, matching = packing.latest.turns, packing.matching.turns
    return {
        PartName.KNOWN: [one.record_id for one in packing.known_of(parts.known)],
        PartName.LAST_TIME: [
            *(one.record_id for one in packing.digest_of(parts.digest)),
            *(turn.said.record_id for turn in latest),
        ],
        PartName.FOUND: [turn.said.record_id for turn in matching],
        PartName.RECENT: [parts.recent[place].record_id for place in sorted(packing.recent, reverse=True)],
        PartName.PINS: [parts.pins[place].id for place in sorted(packing.pins)],
        PartName.SUMMARIES: [parts.summaries[place].id for place in sorted(packing.summaries)],
    }


def unfitting(parts: ContextParts, packing: Packing, taken: Collection[str]) -> list[LeftOut]:
    """What did not fit of each part, best first; `taken` are the ids of all that did."""
    ends = [one.record_id for end in parts.latest for one in end]
    out = {
        PartName.KNOWN: [one.record_id for one in parts.known],
        PartName.LAST_TIME: [*(one.record_id for one in parts.digest), *ends],
        PartName.FOUND: [one.record_id for one in parts.hits],
        PartName.PINS: [one.id for one in parts.pins],
        PartName.SUMMARIES: [one.id for one in reversed(parts.summaries)],
    }
    found = [
        one
        for part, ids in out.items()
        for one in left_out(part, Why.DID_NOT_FIT, (record_id for record_id in ids if record_id not in taken))
    ]
    unsummarised = islice(_unsummarised(parts, packing), MOST_LEFT_OUT)
    earlier = [record_id for record_id in unsummarised if record_id not in taken]
    return [*found, *left_out(PartName.RECENT, Why.DID_NOT_FIT, earlier, count=earlier_messages(parts, packing))]


def _unsummarised(parts: ContextParts, packing: Packing) -> Iterator[str]:
    """The messages before the newest that are in no summary either, newest first, as far as they were read."""
    if packing.recent:
        shown = [parts.summaries[place] for place in packing.summaries]
        for one in reversed(parts.recent[: min(packing.recent)]):
            if not shown or not any(summary.start_seq <= one.seq <= summary.end_seq for summary in shown):
                yield one.record_id


def earlier_messages(parts: ContextParts, packing: Packing) -> int:
    """How many messages of the session are neither shown nor in a summary that is."""
    if not packing.recent:
        return 0
    first = parts.recent[min(packing.recent)].seq
    shown = (parts.summaries[place] for place in packing.summaries)
    summarised = sum(max(0, min(one.end_seq, first - 1) - one.start_seq + 1) for one in shown)
    return first - 1 - summarised


def ordered_lines(part: dict[int, render.Piece]) -> list[str]:
    """The lines of a part, in its order."""
    return [part[place].label + part[place].text for place in sorted(part)]


def share_of_latest(parts: ContextParts) -> float:
    """The share of the budget that the latest conversations may get: all of it if nothing else is asked."""
    if parts.is_about_latest:
        return _ASKED_BESIDE_HITS if parts.hits else 1.0
    return _LATEST_BESIDE_HITS if parts.hits else _LATEST


def room_beside_hits(needed: int, count: int, allowance: int) -> int:
    """The tokens reserved for the newest messages if there are matches. The protected ones are `count`, and need this
    many to stand whole: small ones get these, up to half of the allowance. Otherwise it is a sixth, or in a small
    context some words of each. What a larger share costs in evidence: `python -m bench.evidence`."""
    share = max(int(allowance * _RECENT_SHARE), min(needed, _LEAST_OF_ONE * count))
    small = min(needed, int(allowance * _SMALL_SHARE)) if needed <= _SMALL else 0
    return min(max(share, small), allowance)
