"""Chooses which parts of a session fit into a context's token budget. Pure.

The order of choice, each part while it fits: the frame; the newest `min_recent` messages; in a conversation that has
just begun, what the latest ones left open and how they ended; what matches the query, by the sentence (see `steps`);
what is known beyond the session; pins, most important first; summaries, newest first; further recent messages, newest
first and without gaps, up to `recent_messages`, and then until the budget is full. If a match is near, the
latest conversations come only before the last.

The newest messages always stay. They are shortened in the middle if they are too long, or if they would leave the pins
less than a fifth of the budget. If there are matches, a share is reserved for them (`room_beside_hits`), a fifth for
pins, a tenth for summaries, and a share for `sure_known`; matches get the rest first. Known facts that others shared
have a share, too, and never more. The final text is counted whole, so the budget includes its frame and headings.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Final

from kalito_mcp.contexts import render
from kalito_mcp.contexts.history import History, Shown, TakenPassages
from kalito_mcp.contexts.packing import (
    Packing,
    earlier_messages,
    ordered_lines,
    room_beside_hits,
    share_of_latest,
    taken_ids,
    unfitting,
)
from kalito_mcp.contexts.parts import ContextParts, ContextPolicy
from kalito_mcp.contexts.steps import NEWEST, Ends, Steps
from kalito_mcp.domain.context import MOST_TOKENS, MemoryContext
from kalito_mcp.domain.given import PartContent, PartName, Why, parts_of
from kalito_mcp.domain.known import KnownRecord
from kalito_mcp.domain.records import ConversationSummary, MessageWithImportance
from kalito_mcp.domain.search import NEAR_FROM
from kalito_mcp.domain.zone import UTC_ZONE, Zone
from kalito_mcp.errors import BudgetTooSmall
from kalito_mcp.ports.tokens import TokenCounter
from kalito_mcp.safety.escaping import as_data, json_text

_PINS_SHARE: Final = 0.2
_SUMMARIES_SHARE_BESIDE_HITS: Final = 0.1
_OWN_BESIDE_SHARED: Final = 0.5
"""The most that is reserved for the person's own known facts, if matches are what others shared."""
_DIGEST_SHARE: Final = 0.4
"""Of the room of the latest conversations, for what they left open, if the query asks for their ends."""

_MAX_CHARS_PER_TOKEN: Final = 16
"""More than any useful text has. It bounds the search for the length of a shortened message."""
_LEAST_WITH_LAST_LINE: Final = 200
"""From this many tokens of remembered text, a context ends with a line about what was left out."""
_MAX_CACHED_LABELS: Final = 4096


class Packer:
    """Packs contexts under one token counter and one policy, with the days of one time zone."""

    def __init__(self, counter: TokenCounter, policy: ContextPolicy, zone: Zone = UTC_ZONE) -> None:
        self._counter = counter
        self._policy = policy
        self._zone = zone
        # A label is in every context of its session, and costs as much to count as a short message.
        self._label_tokens = lru_cache(maxsize=_MAX_CACHED_LABELS)(counter.count)
        self._newline = counter.count("\n")
        self._headings = {heading: counter.count(heading) + self._newline for heading in render.HEADINGS.values()}

    def pack(self, parts: ContextParts, *, max_tokens: int, fence: str, as_json: bool = False) -> MemoryContext:
        """Return the context, at most `max_tokens` tokens by this packer's counter: as text, or as JSON.

        Raises:
            BudgetTooSmall: the frame and the stub of the newest message do not fit; the message says the minimum.
        """
        most_left_out = {
            "known": len(parts.known),
            "shared": len(parts.known) + parts.more_shared,
            "relevant_messages": len(parts.hits),
            "semantic_pins": len(parts.pins),
            "summaries": len(parts.summaries),
            "recent_messages": parts.recent[-1].seq if parts.recent else 0,
        }
        frame = (render.opening(fence), render.closing(fence))
        allowance = max_tokens - self._counter.count("\n".join(frame))
        last = render.left_out_line(most_left_out) if allowance >= _LEAST_WITH_LAST_LINE else ""
        for_last = self._counter.count(last) + self._newline if last else 0
        allowance -= for_last
        is_recounted = False
        while True:
            packing = self._try_pack(parts, allowance)
            if packing is not None:
                context = self._render(parts, packing, frame, max_tokens, as_json=as_json, has_last_line=for_last > 0)
                if context.total_tokens <= max_tokens:
                    return context
                # The counts of the lines do not add up to the count of the whole: reduce the allowance in proportion.
                if is_recounted:
                    allowance = min(allowance - 1, allowance * max_tokens // context.total_tokens)
            elif for_last:
                allowance, for_last = allowance + for_last, 0
                continue
            elif is_recounted:
                raise BudgetTooSmall(max_tokens, max_tokens - allowance + self._smallest_body(parts))
            # Stored counts may come from a counter that was set earlier: count again with this one.
            parts, is_recounted = self._recount(parts), True

    def _history(self, steps: Shown, session_id: str | None) -> History:
        return History(steps, session_id, self._zone, lambda line: self._counter.count(line) + self._newline)

    def _recount(self, parts: ContextParts) -> ContextParts:
        """Return the parts with this counter's counts."""
        return replace(
            parts,
            recent=[replace(one, tokens=self._count(one.text)) for one in parts.recent],
            known=[replace(one, tokens=self._count(one.text)) for one in parts.known],
            digest=[replace(one, tokens=self._count(one.text)) for one in parts.digest],
            pins=[replace(one, tokens=self._count(one.content)) for one in parts.pins],
            summaries=[replace(one, tokens=self._count(one.summary)) for one in parts.summaries],
        )

    def _count(self, text: str) -> int:
        return self._counter.count(as_data(text))

    def _render(
        self,
        parts: ContextParts,
        packing: Packing,
        frame: tuple[str, str],
        max_tokens: int,
        *,
        as_json: bool,
        has_last_line: bool,
    ) -> MemoryContext:
        """Return the context of the pieces taken, counted whole."""
        hits, ranks = packing.matching.hits, {one.record_id: rank for rank, one in enumerate(parts.hits)}
        ids = taken_ids(parts, packing)
        shown = packing.shown_first.union(ids[PartName.FOUND], ids[PartName.LAST_TIME])
        out = [one.space is None for place, one in enumerate(parts.known) if place not in packing.known]
        left_out = {
            "known": sum(out),
            "shared": len(out) - sum(out) + parts.more_shared,
            "recent_messages": earlier_messages(parts, packing),
            "semantic_pins": len(parts.pins) - len(packing.pins),
            "summaries": len(parts.summaries) - len(packing.summaries),
            "relevant_messages": len(ranks.keys() - shown),
            "untrusted": sum(one.count for one in parts.missing if one.why is Why.READS_LIKE_AN_INSTRUCTION),
        }
        known, digest = packing.known_of(parts.known), packing.digest_of(parts.digest)
        lines = {
            PartName.KNOWN: render.known_lines(known, self._zone),
            PartName.LAST_TIME: [*render.known_lines(digest, self._zone), *packing.latest.lines],
            PartName.FOUND: packing.matching.lines,
            PartName.RECENT: ordered_lines(packing.recent),
            PartName.PINS: ordered_lines(packing.pins),
            PartName.SUMMARIES: ordered_lines(packing.summaries),
        }
        text = render.assemble(frame, lines, last=render.left_out_line(left_out) if has_last_line else "")
        context = MemoryContext(
            session_id=parts.session_id,
            recent_messages=tuple(_as_shown(parts.recent[place], one) for place, one in sorted(packing.recent.items())),
            semantic_pins=tuple(parts.pins[place] for place in sorted(packing.pins)),
            summaries=tuple(parts.summaries[place] for place in sorted(packing.summaries)),
            relevant_messages=tuple(sorted(hits, key=lambda hit: ranks[hit.record_id])),
            latest_messages=tuple(sorted(packing.latest.hits, key=lambda hit: (-hit.score, hit.seq or 0))),
            total_tokens=max_tokens,
            max_tokens=max_tokens,
            text=text,
            left_out={part: count for part, count in left_out.items() if count},
            note=parts.note,
            known=(*known, *digest),
            missing=(*unfitting(parts, packing, frozenset().union(*ids.values())), *parts.missing),
        )
        tokens = self._counter.count(json_text(context.to_dict()) if as_json else text)
        contents = {part: PartContent(ids[part], lines[part]) for part in PartName}
        return replace(context, total_tokens=tokens, made_of=parts_of(tokens, contents))

    def _try_pack(self, parts: ContextParts, allowance: int) -> Packing | None:
        packing = Packing(left=allowance)
        has_hits = bool(parts.hits)
        pins = self._needed(
            render.PINS_HEADING,
            (render.pin_piece(one, self._zone) for one in parts.pins),
            most=int(allowance * _PINS_SHARE),
        )
        (own, sure, shared), share = parts.places_of_known(), self._policy.known_share
        for_shared = self._known_tokens(parts, shared, int(allowance * share))
        kept, share = (own, _OWN_BESIDE_SHARED) if parts.has_shared_hits else (sure, share)
        known = for_shared + self._known_tokens(parts, kept, int(allowance * share))
        room = self._recent_room(parts.recent, allowance) if has_hits else allowance
        if not self._take_protected(packing, parts.recent, room=room, reserved=known + pins):
            return None
        if has_hits:
            self._take_recent(packing, parts.recent, room - allowance + packing.left)
        is_near = any(one.score >= NEAR_FROM for one in parts.hits)
        if not is_near:
            self._take_latest(packing, parts, min(packing.left - known - pins, int(allowance * share_of_latest(parts))))
        if has_hits:
            summaries = self._summary_tokens(parts.summaries, int(allowance * _SUMMARIES_SHARE_BESIDE_HITS))
            room = packing.left - known - pins - summaries
            shown = packing.shown_first = frozenset(parts.recent[place].record_id for place in packing.recent).union(
                turn.said.record_id for turn in packing.latest.turns
            )
            steps = Steps(
                [one for one in parts.hits if one.record_id not in shown],
                [one for one in parts.around if one.record_id not in shown],
                parts.query,
                newest=0.0 if parts.has_begun else NEWEST,
            )
            packing.matching = self._take_passages(packing, render.HISTORY_HEADING, steps, parts.session_id, room)
        for places in (sure, [place for place in own if place not in sure], shared):
            room = packing.left - pins - for_shared if places is not shared else min(for_shared, packing.left - pins)
            self._take_known(packing, packing.known, render.KNOWN_HEADING, parts.known, places, room)
        pin_pieces = ((place, render.pin_piece(pin, self._zone)) for place, pin in enumerate(parts.pins))
        self._take_each(packing, packing.pins, render.PINS_HEADING, pin_pieces)
        newest_first = reversed([*enumerate(parts.summaries)])
        summary_pieces = ((place, render.summary_piece(one, self._zone)) for place, one in newest_first)
        self._take_each(packing, packing.summaries, render.SUMMARIES_HEADING, summary_pieces)
        self._take_recent(packing, parts.recent, packing.left)
        if is_near:
            self._take_latest(packing, parts, packing.left)
        self._take_recent(packing, parts.recent, packing.left, most=len(parts.recent))
        return packing

    def _recent_room(self, recent: Sequence[MessageWithImportance], allowance: int) -> int:
        """Return the tokens reserved for the newest messages if there are matches."""
        newest = [self._cost(render.message_piece(one, self._zone)) for one in recent[-self._policy.min_recent :]]
        return room_beside_hits(self._headings[render.RECENT_HEADING] + sum(newest), len(newest), allowance)

    def _take_recent(
        self, packing: Packing, recent: Sequence[MessageWithImportance], room: int, *, most: int | None = None
    ) -> None:
        """Take further messages that fit into the room, newest first, at most `recent_messages` in all; and of those
        that were shortened as much as fits."""
        shown = {turn.said.record_id for turn in packing.matching.turns}
        most = self._policy.recent_messages if most is None else most
        for place in reversed(range(max(0, len(recent) - most), len(recent))):
            piece = render.message_piece(recent[place], self._zone)
            held = packing.recent.get(place)
            before = self._cost(held) if held is not None else 0
            if held is not None and len(held.text) < len(piece.text) and self._cost(piece) > room + before:
                piece = self._shorten(piece, room + before)
            cost = self._cost(piece) - before
            # A gap in the conversation would mislead, so stop at the first that does not fit.
            if cost > room:
                break
            if recent[place].record_id not in shown and cost > 0:
                packing.recent[place] = piece
                packing.left -= cost
                room -= cost

    def _take_latest(self, packing: Packing, parts: ContextParts, room: int) -> None:
        """Take open items and ends of the latest conversations that fit into the room and are not shown as a match."""
        left = packing.left
        for_digest = int(room * _DIGEST_SHARE) if parts.is_about_latest else room
        places = range(len(parts.digest))
        self._take_known(packing, packing.digest, render.LATEST_HEADING, parts.digest, places, for_digest)
        room -= left - packing.left
        shown = {turn.said.record_id for turn in packing.matching.turns}
        ends = [[one for one in end if one.record_id not in shown] for end in parts.latest]
        steps = Ends([end for end in ends if end], parts.query)
        heading = "" if packing.digest else render.LATEST_HEADING
        packing.latest = self._take_passages(packing, heading, steps, parts.session_id, room)
        packing.drop_said(parts.digest)

    def _take_known(
        self,
        packing: Packing,
        part: dict[int, render.Piece],
        heading: str,
        known: Sequence[KnownRecord],
        places: Iterable[int],
        room: int,
    ) -> None:
        """Take every one that fits into the room, with its heading and the line of its day."""
        days = {render.known_place(known[place], self._zone) for place in part}
        for place in places:
            piece, day = render.known_piece(known[place]), render.known_place(known[place], self._zone)
            cost = self._cost(piece) + (0 if part else self._headings[heading])
            cost += 0 if day in days else self._label_tokens(day) + self._newline
            if cost <= room and packing.take(part, place, piece, cost):
                room -= cost
                days.add(day)

    def _take_passages(
        self, packing: Packing, heading: str, steps: Shown, session_id: str | None, room: int
    ) -> TakenPassages:
        """Take of the steps what fits into the room, with the heading if there is one."""
        for_heading = self._headings[heading] if heading else 0
        found = self._history(steps, session_id).fitting(room - for_heading)
        if found.turns:
            packing.left -= for_heading + found.cost
        return found

    def _take_each(
        self,
        packing: Packing,
        part: dict[int, render.Piece],
        heading: str,
        pieces: Iterable[tuple[int, render.Piece]],
        *,
        reserved: int = 0,
    ) -> None:
        """Take every piece that fits without touching the `reserved` tokens; the first also pays for the heading."""
        for place, piece in pieces:
            cost = self._cost(piece) + (0 if part else self._headings[heading])
            if cost <= packing.left - reserved:
                packing.take(part, place, piece, cost)

    def _needed(self, heading: str, pieces: Iterable[render.Piece], *, most: int) -> int:
        """Return the tokens that these need, at most this many. Three long messages must not push out an allergy."""
        needed = sum(map(self._cost, pieces))
        return min(most, self._headings[heading] + needed) if needed else 0

    def _known_tokens(self, parts: ContextParts, places: Iterable[int], share: int) -> int:
        """Return the tokens that these need, at most their share. In a small context the first may take twice that."""
        known = [parts.known[place] for place in places]
        days = list(dict.fromkeys(render.known_place(one, self._zone) for one in known))
        pieces = [render.known_piece(one) for one in known]
        of_days = [render.Piece(day, "", 0) for day in days]
        first = self._needed(render.KNOWN_HEADING, [*of_days[:1], *pieces[:1]], most=MOST_TOKENS)
        most = first if share < first <= 2 * share else share
        return self._needed(render.KNOWN_HEADING, [*of_days, *pieces], most=most)

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
        self, packing: Packing, recent: Sequence[MessageWithImportance], *, room: int, reserved: int
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
