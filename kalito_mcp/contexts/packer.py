"""What of a session goes into a context of so many tokens. Pure.

In this order, each while it fits: the frame; the newest `min_recent` messages, which always stay, and are shortened
in the middle where they are too long or would leave the pins less than a fifth; pins, most important first; summaries,
newest first; further recent messages, newest first and without gaps; older messages that match the query, best first,
then the turns beside them (see `passages`).
The result is rendered and counted whole, so that the budget holds for the text as it is given out, its frame and
headings included.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from typing import Final

from kalito_mcp.contexts import render
from kalito_mcp.contexts.passages import Turn, passages, turns
from kalito_mcp.domain.context import MOST_TOKENS, MemoryContext
from kalito_mcp.domain.records import ConversationSummary, MessageWithImportance, SemanticPin
from kalito_mcp.domain.search import Candidate, Hit
from kalito_mcp.domain.validation import Policy, bounded
from kalito_mcp.errors import BudgetTooSmall
from kalito_mcp.ports.tokens import TokenCounter
from kalito_mcp.safety.escaping import as_data

_PINS_SHARE: Final = 0.2
_CHARS_PER_TOKEN_AT_MOST: Final = 16
"""No text that is worth keeping has longer tokens: where the search for a shortened message begins."""

_LABELS_KEPT: Final = 4096


@dataclass(frozen=True, slots=True)
class ContextPolicy(Policy):
    """How much of what goes into a context. The specification's numbers."""

    recent_messages: int = bounded(8, least=1)
    pins: int = 5
    summaries: int = bounded(3, least=1)
    """Summaries of one level. A fourth folds the four into one of the next level."""
    min_recent: int = bounded(3, least=1)
    token_limit: int = bounded(3000, least=1, most=MOST_TOKENS)
    fallback_messages: int = bounded(10, least=1)
    relevant_messages: int = 5


@dataclass(frozen=True, slots=True)
class ContextParts:
    """All that could go in. `recent` and `summaries` oldest first, `pins` and `hits` best first. `neighbours` are the
    messages around the hits, and `query` is what these were found by."""

    session_id: str
    recent: Sequence[MessageWithImportance]
    pins: Sequence[SemanticPin] = ()
    summaries: Sequence[ConversationSummary] = ()
    hits: Sequence[Hit] = ()
    neighbours: Sequence[Candidate] = ()
    query: str = ""


@dataclass(slots=True)
class _Packing:
    """One attempt: what was taken, by its place in the parts, and the tokens left. Of the hits the first `hits` were,
    and `history` are their passages' lines."""

    left: int
    recent: dict[int, render.Piece] = field(default_factory=dict[int, render.Piece])
    pins: dict[int, render.Piece] = field(default_factory=dict[int, render.Piece])
    summaries: dict[int, render.Piece] = field(default_factory=dict[int, render.Piece])
    hits: int = 0
    history: list[str] = field(default_factory=list[str])

    def take(self, part: dict[int, render.Piece], place: int, piece: render.Piece, cost: int) -> bool:
        """Take the piece when its cost is left."""
        if cost > self.left:
            return False
        part[place] = piece
        self.left -= cost
        return True


class Packer:
    """Packs contexts under one token counter and one policy."""

    def __init__(self, counter: TokenCounter, policy: ContextPolicy) -> None:
        self._counter = counter
        self._policy = policy
        # A label comes back in every context of its session, and is as dear to count as a short message.
        self._label_tokens = lru_cache(maxsize=_LABELS_KEPT)(counter.count)
        self._newline = counter.count("\n")
        self._headings = {
            heading: counter.count(heading) + self._newline
            for heading in (
                render.SUMMARIES_HEADING,
                render.PINS_HEADING,
                render.HISTORY_HEADING,
                render.RECENT_HEADING,
            )
        }

    def pack(self, parts: ContextParts, *, max_tokens: int, fence: str) -> MemoryContext:
        """The context, never more than `max_tokens` tokens as counted.

        Raises:
            BudgetTooSmall: the frame and the stub of the newest message do not fit; says the minimum.
        """
        frame = (render.opening(parts.session_id, fence), render.closing(fence))
        frame_tokens = self._counter.count("\n".join(frame))
        allowance = max_tokens - frame_tokens
        older = turns(parts.hits, parts.neighbours, parts.query)
        is_recounted = False
        while True:
            packing = self._packed(parts, older, allowance)
            if packing is not None:
                context = self._rendered(parts, packing, frame, max_tokens)
                if context.total_tokens <= max_tokens:
                    return context
                # Counts that do not add up: give way by what was over.
                allowance -= context.total_tokens - max_tokens if is_recounted else 0
            elif is_recounted:
                raise BudgetTooSmall(max_tokens, max_tokens - allowance + self._smallest(parts))
            # Stored counts are another counter's where that setting changed: once more, by this one.
            parts, is_recounted = self._recounted(parts), True

    def _recounted(self, parts: ContextParts) -> ContextParts:
        """The parts as this counter counts them."""
        return replace(
            parts,
            recent=[replace(one, tokens=self._shown(one.text)) for one in parts.recent],
            pins=[replace(one, tokens=self._shown(one.content)) for one in parts.pins],
            summaries=[replace(one, tokens=self._shown(one.summary)) for one in parts.summaries],
        )

    def _shown(self, text: str) -> int:
        return self._counter.count(as_data(text))

    def _rendered(
        self, parts: ContextParts, packing: _Packing, frame: tuple[str, str], max_tokens: int
    ) -> MemoryContext:
        """The context of what was taken, its text counted whole."""
        text = render.assembled(
            frame,
            summaries=_in_order(packing.summaries),
            pins=_in_order(packing.pins),
            hits=packing.history,
            recent=_in_order(packing.recent),
        )
        left_out = {
            "recent_messages": len(parts.recent) - len(packing.recent),
            "semantic_pins": len(parts.pins) - len(packing.pins),
            "summaries": len(parts.summaries) - len(packing.summaries),
            "relevant_messages": len(parts.hits) - packing.hits,
        }
        return MemoryContext(
            session_id=parts.session_id,
            recent_messages=tuple(parts.recent[place] for place in sorted(packing.recent)),
            semantic_pins=tuple(parts.pins[place] for place in sorted(packing.pins)),
            summaries=tuple(parts.summaries[place] for place in sorted(packing.summaries)),
            relevant_messages=tuple(parts.hits[: packing.hits]),
            total_tokens=self._counter.count(text),
            max_tokens=max_tokens,
            text=text,
            left_out={part: count for part, count in left_out.items() if count},
        )

    def _packed(self, parts: ContextParts, older: Sequence[Turn], allowance: int) -> _Packing | None:
        packing = _Packing(left=allowance)
        if not self._take_protected(packing, parts.recent, reserved=self._reserve(parts.pins, allowance)):
            return None
        self._take_each(
            packing,
            packing.pins,
            render.PINS_HEADING,
            ((place, render.pin_piece(pin)) for place, pin in enumerate(parts.pins)),
        )
        self._take_each(
            packing,
            packing.summaries,
            render.SUMMARIES_HEADING,
            ((place, render.summary_piece(parts.summaries[place])) for place in reversed(range(len(parts.summaries)))),
        )
        for place in reversed(range(len(parts.recent) - len(packing.recent))):
            piece = render.message_piece(parts.recent[place])
            # A gap in the conversation would mislead: what does not fit ends it.
            if not packing.take(packing.recent, place, piece, self._cost(piece)):
                break
        self._take_passages(packing, older, parts.session_id)
        return packing

    def _take_passages(self, packing: _Packing, older: Sequence[Turn], session_id: str) -> None:
        """Take the passages of the most turns that fit, from the first: what does not fit ends it."""
        tokens = cache(self._counter.count)
        for kept in range(len(older), 0, -1):
            lines = [line for one in passages(older[:kept]) for line in render.passage_lines(one, session_id)]
            cost = self._headings[render.HISTORY_HEADING] + sum(tokens(line) + self._newline for line in lines)
            if cost <= packing.left:
                packing.hits = sum(turn.is_hit for turn in older[:kept])
                packing.history = lines
                packing.left -= cost
                return

    def _take_each(
        self,
        packing: _Packing,
        part: dict[int, render.Piece],
        heading: str,
        pieces: Iterable[tuple[int, render.Piece]],
    ) -> None:
        """Take every piece that fits; the first also pays for the heading."""
        for place, piece in pieces:
            packing.take(part, place, piece, self._cost(piece) + (0 if part else self._headings[heading]))

    def _reserve(self, pins: Sequence[SemanticPin], allowance: int) -> int:
        """What the pins need, at most `_PINS_SHARE` of the allowance: three long messages must not push out an
        allergy."""
        if not pins:
            return 0
        needed = self._headings[render.PINS_HEADING] + sum(self._cost(render.pin_piece(pin)) for pin in pins)
        return min(needed, int(allowance * _PINS_SHARE))

    def _take_protected(self, packing: _Packing, recent: Sequence[MessageWithImportance], *, reserved: int) -> bool:
        """Take the newest `min_recent` messages, shortened where they are too long together for what is left beside
        `reserved`; fewer, at least one, where not even their stubs fit. False when that one does not."""
        if not recent:
            return packing.left >= 0
        room = packing.left - self._headings[render.RECENT_HEADING]
        # The newest message comes before any pin: what its stub needs is not reserved.
        room = max(room - reserved, min(room, self._smallest_message(recent[-1])))
        places = range(len(recent) - 1, max(-1, len(recent) - 1 - self._policy.min_recent), -1)
        pieces = {place: render.message_piece(recent[place]) for place in places}
        while pieces:
            fitted = self._fitted(pieces, room)
            if fitted is not None:
                packing.left -= self._headings[render.RECENT_HEADING]
                for place, piece in fitted.items():
                    packing.take(packing.recent, place, piece, self._cost(piece))
                return True
            del pieces[min(pieces)]
        return False

    def _fitted(self, pieces: dict[int, render.Piece], room: int) -> dict[int, render.Piece] | None:
        """The pieces within `room` tokens: the short ones whole, the long ones cut to equal shares of the rest."""
        fitted: dict[int, render.Piece] = {}
        costs = {place: self._cost(piece) for place, piece in pieces.items()}
        for place in sorted(costs, key=lambda place: (costs[place], -place)):
            share = room // (len(pieces) - len(fitted))
            piece = pieces[place]
            if costs[place] > share:
                piece = self._shortened(piece, share)
                if self._cost(piece) > share:
                    return None
            fitted[place] = piece
            room -= self._cost(piece)
        return fitted

    def _shortened(self, piece: render.Piece, share: int) -> render.Piece:
        return render.shortened(
            piece,
            at_most=_CHARS_PER_TOKEN_AT_MOST * max(0, share),
            fits=lambda shorter: self._cost(shorter) <= share,
        )

    def _smallest(self, parts: ContextParts) -> int:
        """Tokens beyond the frame that the smallest context takes."""
        if not parts.recent:
            return 0
        return self._headings[render.RECENT_HEADING] + self._smallest_message(parts.recent[-1])

    def _smallest_message(self, message: MessageWithImportance) -> int:
        piece = render.message_piece(message)
        return min(self._cost(piece), self._cost(self._shortened(piece, share=0)))

    def _cost(self, piece: render.Piece) -> int:
        if piece.tokens is None:
            return self._counter.count(piece.label + piece.text) + self._newline
        return self._label_tokens(piece.label) + piece.tokens + self._newline


def _in_order(part: dict[int, render.Piece]) -> list[str]:
    return [part[place].label + part[place].text for place in sorted(part)]
