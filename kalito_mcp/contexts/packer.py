"""Chooses which parts of a session fit into a context's token budget. Pure.

The order of choice, each part while it fits: the frame; the newest `min_recent` messages; what matches the query, best
first; what is known beyond the session; pins, most important first; summaries, newest first; further recent messages,
newest first and without gaps; then the turns next to the matches (see `passages`). Beside matches, what is known comes
last, except what matches too and what does most harm when it is forgotten.
The newest messages always stay. They are shortened in the middle if they are too long, or if they would leave the pins
less than a fifth of the budget. Where the query finds something, they, the pins and the summaries are sure of a small
share each, and the matches get the rest first. The final text is counted whole, so the budget includes its frame and
headings.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final

from kalito_mcp.contexts import render
from kalito_mcp.contexts.history import History
from kalito_mcp.contexts.passages import HIT_CHARS, Turn, turns
from kalito_mcp.domain.context import MOST_TOKENS, MemoryContext
from kalito_mcp.domain.known import KnownRecord
from kalito_mcp.domain.records import ConversationSummary, MessageWithImportance, SemanticPin
from kalito_mcp.domain.search import Candidate, Hit
from kalito_mcp.domain.validation import Policy, bounded
from kalito_mcp.domain.zone import UTC_ZONE, Zone
from kalito_mcp.errors import BudgetTooSmall
from kalito_mcp.ports.tokens import TokenCounter
from kalito_mcp.safety.escaping import as_data, json_text

_PINS_SHARE: Final = 0.2
# Where the query finds something. The hits get the rest first, and what is left after them goes to all. Chosen so that
# most of LoCoMo's questions have their evidence in the context of a long session (`python -m bench.evidence`).
_RECENT_SHARE_BESIDE_HITS: Final = 0.06
_PINS_SHARE_BESIDE_HITS: Final = 0.05
_SUMMARIES_SHARE_BESIDE_HITS: Final = 0.1

_MAX_CHARS_PER_TOKEN: Final = 16
"""More than any useful text has. It bounds the search for the length of a shortened message."""

_LEAST_WITH_LAST_LINE: Final = 200
"""Tokens for what is remembered, from which on a context ends with what was left out."""

_MAX_CACHED_LABELS: Final = 4096


@dataclass(frozen=True, slots=True)
class ContextPolicy(Policy):
    """The most of each part that goes into a context. Defaults are the specification's."""

    recent_messages: int = bounded(8, least=1)
    pins: int = 5
    summaries: int = bounded(3, least=1)
    """Summaries of one level. One more, and all of them are folded into one summary of the next level."""
    min_recent: int = bounded(3, least=1)
    token_limit: int = bounded(3000, least=1, most=MOST_TOKENS)
    fallback_messages: int = bounded(10, least=1)
    relevant_messages: int = 40
    """Of those, the ones that fit and are not far below the best."""
    known: int = 8
    """Of what is known beyond the session: the most important, and as many again that match the query."""
    known_share: float = bounded(0.05, most=1)
    """Of the budget, kept for them; beside matches for those that match too or do most harm when forgotten."""


@dataclass(frozen=True, slots=True)
class ContextParts:
    """Everything that could go in. `recent` and `summaries` are oldest first, `known`, `pins` and `hits` best first.
    `neighbours` are the messages around the hits, and `query` is what found the hits. `withheld` counts the untrusted
    records that are not among them; `note` is that of the search. The first `sure_known` are sure of their share of the
    budget beside hits, the others take what is left."""

    session_id: str | None
    recent: Sequence[MessageWithImportance]
    pins: Sequence[SemanticPin] = ()
    summaries: Sequence[ConversationSummary] = ()
    hits: Sequence[Hit] = ()
    neighbours: Sequence[Candidate] = ()
    query: str = ""
    withheld: int = 0
    note: str | None = None
    known: Sequence[KnownRecord] = ()
    sure_known: int = 0


@dataclass(slots=True)
class _Packing:
    """One attempt: the pieces taken, by their place in the parts, and the tokens left. The first `hits` hits were
    taken, and `history` has the lines of their passages."""

    left: int
    recent: dict[int, render.Piece] = field(default_factory=dict[int, render.Piece])
    known: dict[int, render.Piece] = field(default_factory=dict[int, render.Piece])
    pins: dict[int, render.Piece] = field(default_factory=dict[int, render.Piece])
    summaries: dict[int, render.Piece] = field(default_factory=dict[int, render.Piece])
    hits: int = 0
    history: list[str] = field(default_factory=list[str])
    history_tokens: int = 0

    def take(self, part: dict[int, render.Piece], place: int, piece: render.Piece, cost: int) -> bool:
        """Take the piece if its cost is left. Return whether it was taken."""
        if cost > self.left:
            return False
        part[place] = piece
        self.left -= cost
        return True


class Packer:
    """Packs contexts under one token counter and one policy, with the days of one time zone."""

    def __init__(self, counter: TokenCounter, policy: ContextPolicy, zone: Zone = UTC_ZONE) -> None:
        self._counter = counter
        self._policy = policy
        self._zone = zone
        # A label is in every context of its session, and costs as much to count as a short message.
        self._label_tokens = lru_cache(maxsize=_MAX_CACHED_LABELS)(counter.count)
        self._newline = counter.count("\n")
        self._headings = {heading: counter.count(heading) + self._newline for heading in render.HEADINGS}

    def pack(self, parts: ContextParts, *, max_tokens: int, fence: str, as_json: bool = False) -> MemoryContext:
        """Return the context, at most `max_tokens` tokens by this packer's counter: as text, or as JSON.

        Raises:
            BudgetTooSmall: the frame and the stub of the newest message do not fit; the message says the minimum.
        """
        most_left_out = {
            "known": len(parts.known),
            "relevant_messages": len(parts.hits),
            "semantic_pins": len(parts.pins),
            "summaries": len(parts.summaries),
        }
        frame = (render.opening(parts.session_id, fence), render.closing(fence))
        allowance = max_tokens - self._counter.count("\n".join(frame))
        last = render.left_out_line(most_left_out) if allowance >= _LEAST_WITH_LAST_LINE else ""
        for_last = self._counter.count(last) + self._newline if last else 0
        allowance -= for_last
        older = turns(parts.hits, parts.neighbours, parts.query)
        history = History(older, parts.session_id, self._zone, lambda line: self._counter.count(line) + self._newline)
        is_recounted = False
        while True:
            packing = self._try_pack(parts, history, allowance)
            if packing is not None:
                context = self._render(
                    parts, packing, older, frame, max_tokens, as_json=as_json, has_last_line=for_last > 0
                )
                if context.total_tokens <= max_tokens:
                    return context
                # The counts of the lines do not add up to that of the whole: reduce the allowance in proportion.
                if is_recounted:
                    allowance = min(allowance - 1, allowance * max_tokens // context.total_tokens)
            elif for_last:
                allowance, for_last = allowance + for_last, 0
                continue
            elif is_recounted:
                raise BudgetTooSmall(max_tokens, max_tokens - allowance + self._smallest_body(parts))
            # Stored counts may come from a counter that was set earlier: count again with this one.
            parts, is_recounted = self._recount(parts), True

    def _recount(self, parts: ContextParts) -> ContextParts:
        """Return the parts with this counter's counts."""
        return replace(
            parts,
            recent=[replace(one, tokens=self._count(one.text)) for one in parts.recent],
            known=[replace(one, tokens=self._count(one.text)) for one in parts.known],
            pins=[replace(one, tokens=self._count(one.content)) for one in parts.pins],
            summaries=[replace(one, tokens=self._count(one.summary)) for one in parts.summaries],
        )

    def _count(self, text: str) -> int:
        return self._counter.count(as_data(text))

    def _render(
        self,
        parts: ContextParts,
        packing: _Packing,
        older: Sequence[Turn],
        frame: tuple[str, str],
        max_tokens: int,
        *,
        as_json: bool,
        has_last_line: bool,
    ) -> MemoryContext:
        """Return the context of the pieces taken, counted whole."""
        left_out = {
            "known": len(parts.known) - len(packing.known),
            "recent_messages": len(parts.recent) - len(packing.recent),
            "semantic_pins": len(parts.pins) - len(packing.pins),
            "summaries": len(parts.summaries) - len(packing.summaries),
            "relevant_messages": len(parts.hits) - packing.hits,
            "untrusted": parts.withheld,
        }
        text = render.assemble(
            frame,
            known=_ordered_lines(packing.known),
            summaries=_ordered_lines(packing.summaries),
            pins=_ordered_lines(packing.pins),
            hits=packing.history,
            recent=_ordered_lines(packing.recent),
            last=render.left_out_line(left_out) if has_last_line else "",
        )
        context = MemoryContext(
            session_id=parts.session_id,
            recent_messages=tuple(
                _as_shown(parts.recent[place], packing.recent[place]) for place in sorted(packing.recent)
            ),
            semantic_pins=tuple(parts.pins[place] for place in sorted(packing.pins)),
            summaries=tuple(parts.summaries[place] for place in sorted(packing.summaries)),
            relevant_messages=tuple(_hits_as_shown(older[: packing.hits])),
            total_tokens=max_tokens,
            max_tokens=max_tokens,
            text=text,
            left_out={part: count for part, count in left_out.items() if count},
            note=parts.note,
            known=tuple(parts.known[place] for place in sorted(packing.known)),
        )
        return replace(context, total_tokens=self._counter.count(json_text(context.to_dict()) if as_json else text))

    def _try_pack(self, parts: ContextParts, history: History, allowance: int) -> _Packing | None:
        packing, older = _Packing(left=allowance), history.turns
        pins = self._needed(
            render.PINS_HEADING,
            (render.pin_piece(one, self._zone) for one in parts.pins),
            most=int(allowance * (_PINS_SHARE_BESIDE_HITS if older else _PINS_SHARE)),
        )
        sure = parts.known[: parts.sure_known] if older else parts.known
        known = self._known_tokens(sure, int(allowance * self._policy.known_share))
        room = int(allowance * _RECENT_SHARE_BESIDE_HITS) if older else allowance
        if not self._take_protected(packing, parts.recent, room=room, reserved=known + pins):
            return None
        if older:
            summaries = self._summary_tokens(parts.summaries, int(allowance * _SUMMARIES_SHARE_BESIDE_HITS))
            hits = sum(turn.is_hit for turn in older)
            self._take_passages(packing, history, hits, reserved=known + pins + summaries)
        self._take_known(packing, sure, reserved=pins)
        self._take_each(
            packing,
            packing.pins,
            render.PINS_HEADING,
            ((place, render.pin_piece(pin, self._zone)) for place, pin in enumerate(parts.pins)),
        )
        self._take_each(
            packing,
            packing.summaries,
            render.SUMMARIES_HEADING,
            (
                (place, render.summary_piece(parts.summaries[place], self._zone))
                for place in reversed(range(len(parts.summaries)))
            ),
        )
        for place in reversed(range(len(parts.recent) - len(packing.recent))):
            piece = render.message_piece(parts.recent[place], self._zone)
            # A gap in the conversation would mislead, so stop at the first that does not fit.
            if not packing.take(packing.recent, place, piece, self._cost(piece)):
                break
        self._take_passages(packing, history, len(older))
        self._take_known(packing, parts.known)
        return packing

    def _take_known(self, packing: _Packing, known: Sequence[KnownRecord], *, reserved: int = 0) -> None:
        """Take what of these is not taken yet."""
        pieces = (
            (place, render.known_piece(one, self._zone))
            for place, one in enumerate(known)
            if place not in packing.known
        )
        self._take_each(packing, packing.known, render.KNOWN_HEADING, pieces, reserved=reserved)

    def _take_passages(self, packing: _Packing, history: History, most: int, *, reserved: int = 0) -> None:
        """Take the passages of the first turns, instead of those taken before: as many of these turns as fit."""
        heading = self._headings[render.HISTORY_HEADING]
        room = packing.left + packing.history_tokens - reserved
        kept = bisect_right(range(1, most + 1), room - heading, key=history.cost)
        if kept:
            packing.hits = sum(turn.is_hit for turn in history.turns[:kept])
            packing.history = history.lines(kept)
            packing.left += packing.history_tokens
            packing.history_tokens = heading + history.cost(kept)
            packing.left -= packing.history_tokens

    def _take_each(
        self,
        packing: _Packing,
        part: dict[int, render.Piece],
        heading: str,
        pieces: Iterable[tuple[int, render.Piece]],
        *,
        reserved: int = 0,
    ) -> None:
        """Take every piece that fits beside what is `reserved`; the first also pays for the heading."""
        for place, piece in pieces:
            cost = self._cost(piece) + (0 if part else self._headings[heading])
            if cost <= packing.left - reserved:
                packing.take(part, place, piece, cost)

    def _needed(self, heading: str, pieces: Iterable[render.Piece], *, most: int) -> int:
        """Return the tokens that these need, at most this many. Three long messages must not push out an allergy."""
        needed = sum(map(self._cost, pieces))
        return min(most, self._headings[heading] + needed) if needed else 0

    def _known_tokens(self, known: Sequence[KnownRecord], share: int) -> int:
        """Return the tokens that these need, at most their share. In a small context the first may take twice that."""
        pieces = [render.known_piece(one, self._zone) for one in known]
        first = self._needed(render.KNOWN_HEADING, pieces[:1], most=MOST_TOKENS)
        return self._needed(render.KNOWN_HEADING, pieces, most=first if share < first <= 2 * share else share)

    def _summary_tokens(self, summaries: Sequence[ConversationSummary], most: int) -> int:
        """Return the tokens that the newest summaries need that fit into this many."""
        needed = 0
        for summary in reversed(summaries):
            cost = self._cost(render.summary_piece(summary, self._zone)) + (
                0 if needed else self._headings[render.SUMMARIES_HEADING]
            )
            needed += cost if needed + cost <= most else 0
        return needed

    def _take_protected(
        self, packing: _Packing, recent: Sequence[MessageWithImportance], *, room: int, reserved: int
    ) -> bool:
        """Take the newest `min_recent` messages, shortened if they do not fit into the room or into what `reserved`
        leaves. Take fewer if their stubs do not fit. Return False if not even one fits."""
        if not recent:
            return packing.left >= 0
        heading = self._headings[render.RECENT_HEADING]
        room, left = room - heading, packing.left - heading
        # The newest message comes before anything else: its stub may use the reserved tokens.
        room = max(min(room, left - reserved), min(left, self._smallest_message(recent[-1])))
        places = range(len(recent) - 1, max(-1, len(recent) - 1 - self._policy.min_recent), -1)
        pieces = {place: render.message_piece(recent[place], self._zone) for place in places}
        while pieces:
            fitted = self._fit(pieces, room)
            if fitted is not None:
                packing.left -= self._headings[render.RECENT_HEADING]
                for place, piece in fitted.items():
                    packing.take(packing.recent, place, piece, self._cost(piece))
                return True
            del pieces[min(pieces)]
        return False

    def _fit(self, pieces: dict[int, render.Piece], room: int) -> dict[int, render.Piece] | None:
        """Keep short pieces whole and cut long ones to equal shares of the `room` left. None if they do not fit."""
        fitted: dict[int, render.Piece] = {}
        costs = {place: self._cost(piece) for place, piece in pieces.items()}
        for place in sorted(costs, key=lambda place: (costs[place], -place)):
            share = room // (len(pieces) - len(fitted))
            piece = pieces[place]
            if costs[place] > share:
                piece = self._shorten(piece, share)
                if self._cost(piece) > share:
                    return None
            fitted[place] = piece
            room -= self._cost(piece)
        return fitted

    def _shorten(self, piece: render.Piece, share: int) -> render.Piece:
        return render.shorten(
            piece,
            at_most=_MAX_CHARS_PER_TOKEN * max(0, share),
            fits=lambda shorter: self._cost(shorter) <= share,
        )

    def _smallest_body(self, parts: ContextParts) -> int:
        """Return the tokens that the smallest context needs beyond its frame."""
        if not parts.recent:
            return 0
        return self._headings[render.RECENT_HEADING] + self._smallest_message(parts.recent[-1])

    def _smallest_message(self, message: MessageWithImportance) -> int:
        piece = render.message_piece(message, self._zone)
        return min(self._cost(piece), self._cost(self._shorten(piece, share=0)))

    def _cost(self, piece: render.Piece) -> int:
        if piece.tokens is None:
            return self._counter.count(piece.label + piece.text) + self._newline
        return self._label_tokens(piece.label) + piece.tokens + self._newline


def _as_shown(message: MessageWithImportance, piece: render.Piece) -> MessageWithImportance:
    """The message with its text as the context has it: whole, or shortened."""
    return message if piece.tokens is not None else replace(message, text=piece.text)


def _hits_as_shown(kept: Sequence[Turn]) -> Iterator[Hit]:
    for one in kept:
        if isinstance(one.said, Hit):
            yield one.said if len(one.said.text) <= HIT_CHARS else replace(one.said, text=one.text)


def _ordered_lines(part: dict[int, render.Piece]) -> list[str]:
    return [part[place].label + part[place].text for place in sorted(part)]
