"""What was found, among the turns it was said in. Pure.

A turn is a hit, or a neighbour: the message right before or after one. A passage is a run of turns of one session
without a gap, so hits that are neighbours, or share one, become one passage. What does not fit into a context is
dropped from the end of one list, in which every neighbour comes after every hit: so what is left out never ranks above
what is in, and no hit gives way to a neighbour.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from kalito_mcp.domain.search import Candidate, Hit
from kalito_mcp.text.analysis import indexed_words, query_terms, stem, terms

_HIT_CHARS: Final = 400
_NEIGHBOUR_CHARS: Final = 160
_ELLIPSIS: Final = "…"
# Of a script without spaces, or an address, overlapping slices are compared: any term lies whole in one of them.
_SLICE: Final = 96
_STEP: Final = 48
_RUN: Final = re.compile(r"\S+")
_BORDER: Final = re.compile(r"[.!?…][\"'”’»)\]]?\s|[。！？]|\n")


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn, and what is shown of its text: one line. `rank` is the place of the hit that it is, or stands beside,
    0 for the best."""

    said: Hit | Candidate
    text: str
    rank: int

    @property
    def is_hit(self) -> bool:
        """Whether it was found itself."""
        return isinstance(self.said, Hit)


@dataclass(frozen=True, slots=True)
class _Match:
    """Where a text has some of the words that are asked for."""

    start: int
    end: int
    terms: frozenset[str]


def turns(hits: Sequence[Hit], messages: Sequence[Candidate], query: str) -> list[Turn]:
    """The hits, which come best first, then those of the messages that are their neighbours, of the best hit first.

    Hits are condensed to 400 characters around what is asked for, neighbours to 160. A message that is a hit, or no
    hit's neighbour, is left out. Any beginning of the list makes passages.
    """
    if not hits:
        return []
    asked = frozenset(query_terms(query))
    found = [Turn(hit, excerpt(hit.text, asked, _HIT_CHARS), rank) for rank, hit in enumerate(hits)]
    ranks: dict[tuple[str | None, int], int] = {}
    for rank, hit in enumerate(hits):
        if hit.seq is not None:
            for beside in (hit.seq - 1, hit.seq + 1):
                ranks.setdefault((hit.session_id, beside), rank)
    taken = {hit.key for hit in hits}
    neighbours = [
        Turn(message, excerpt(message.text, asked, _NEIGHBOUR_CHARS), ranks[message.session_id, message.seq])
        for message in messages
        if message.seq is not None and message.key not in taken and (message.session_id, message.seq) in ranks
    ]
    return found + sorted(neighbours, key=lambda turn: (turn.rank, turn.said.seq or 0))


def passages(kept: Sequence[Turn]) -> list[list[Turn]]:
    """The turns as passages, best first by their best hit, each in the order in which it was said.

    What has no seq stands alone.
    """
    found: list[list[Turn]] = []
    last: Turn | None = None
    for turn in sorted(kept, key=lambda turn: (turn.said.session_id or "", turn.said.seq or 0)):
        if last is not None and _follows(turn, last):
            found[-1].append(turn)
        else:
            found.append([turn])
        last = turn
    return sorted(found, key=lambda passage: min(turn.rank for turn in passage))


def excerpt(text: str, asked: Collection[str], at_most: int) -> str:
    """The part of the text with the most of the terms that are asked for, on one line, in at most `at_most` characters.

    It begins with a sentence where it can, and has an ellipsis where something is missing. Equally good parts: the
    first. A text with none of the terms: its beginning. `at_most` is at least 100.
    """
    lines = (" ".join(line.split()) for line in text.splitlines())
    whole = "\n".join(line for line in lines if line)
    if len(whole) > at_most:
        start, end = _densest(list(_matches(whole, asked)), at_most - 2 * len(_ELLIPSIS))
        whole = _cut_out(whole, start, end, at_most)
    return whole.replace("\n", " ")


def _follows(turn: Turn, last: Turn) -> bool:
    seq, before = turn.said.seq, last.said.seq
    return seq is not None and before is not None and seq == before + 1 and turn.said.session_id == last.said.session_id


def _matches(text: str, asked: Collection[str]) -> Iterator[_Match]:
    """The runs between spaces, or their slices, that hold any of the terms, in order."""
    # What the whole text has of them is found at once: of most texts nothing, else a few words to look for.
    written = [word for word in frozenset(indexed_words(text)) if stem(word) in asked]
    if not written:
        return
    known: dict[str, frozenset[str]] = {}
    for run in _RUN.finditer(text):
        start, end = run.span()
        for at in range(start, max(end - _STEP, start + 1), _STEP):
            part = text[at : min(at + _SLICE, end)]
            if part not in known:
                lowered = part.lower()
                may_hold = not part.isascii() or any(word in lowered for word in written)
                known[part] = frozenset(terms(part)).intersection(asked) if may_hold else frozenset()
            if known[part]:
                yield _Match(at, at + len(part), known[part])


def _densest(matches: Sequence[_Match], room: int) -> tuple[int, int]:
    """From where to where the matches stand that have the most different terms within `room` characters, the first
    such ones; (0, 0) without any."""
    best, most = (0, 0), 0
    first = 0
    held: Counter[str] = Counter()
    for match in matches:
        held.update(match.terms)
        while match.end - matches[first].start > room:
            held.subtract(matches[first].terms)
            first += 1
        count = sum(1 for times in held.values() if times)
        if count > most:
            best, most = (matches[first].start, match.end), count
    return best


def _cut_out(text: str, start: int, end: int, at_most: int) -> str:
    """The stretch from `start` to `end` with what stands around it, as much as there is room for."""
    room = at_most - 2 * len(_ELLIPSIS)
    begin = _beginning(text, start, max(0, end - room), room)
    lead = _ELLIPSIS if begin else ""
    if len(text) - begin <= at_most - len(lead):
        return lead + text[begin:]
    stop = begin + at_most - len(lead) - len(_ELLIPSIS)
    space = max(text.rfind(mark, max(end, begin + room // 2), stop + 1) for mark in " \n")
    return lead + text[begin : space if space >= 0 else stop].rstrip(" \n,;:-–—(") + _ELLIPSIS


def _beginning(text: str, start: int, earliest: int, room: int) -> int:
    """Where an excerpt begins that has to show `start`: with its sentence, or an earlier one where there is room for
    all that follows; else with a word, a third of the room before."""
    borders = [border.end() for border in _BORDER.finditer(text, earliest, start)]
    if earliest == 0:
        borders.insert(0, 0)
    if borders:
        return next((border for border in borders if border >= len(text) - room), borders[-1])
    begin = max(earliest, start - room // 3)
    space = text.find(" ", begin, start)
    return space + 1 if space >= 0 else start
