"""Groups search hits and the messages around them into passages. Pure.

A turn is a hit or a neighbour. A neighbour is the message directly before or after a hit. A passage is a run of turns
of one session without a gap, so adjacent hits, and hits that share a neighbour, are in one passage.
A context drops turns from the end of one list, in which all hits come before all neighbours. So it never drops a
turn for one that ranks lower, nor a hit for a neighbour.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from kalito_mcp.domain.search import Candidate, Hit
from kalito_mcp.text.analysis import indexed_words, query_terms, stem, terms

HIT_CHARS: Final = 400
"""Of a hit. A longer one is condensed."""

_NEIGHBOUR_CHARS: Final = 160
_ELLIPSIS: Final = "…"
# Scripts without spaces and addresses are compared in overlapping slices: every term is whole in one of them.
_SLICE: Final = 96
_STEP: Final = 48
_RUN: Final = re.compile(r"\S+")
_FEW: Final = 16
"""Characters of a text for one place in it."""
_NOT_ASCII: Final = re.compile(r"[^\x00-\x7f]+")
_BORDER: Final = re.compile(r"[.!?…][\"'”’»)\]]?\s|[。！？]|\n")


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn. `text` is the one line shown of it. `rank` is the rank of the hit itself, or of the hit that it
    neighbours; 0 is the best."""

    said: Hit | Candidate
    text: str
    rank: int

    @property
    def is_hit(self) -> bool:
        """Whether the search found this turn itself."""
        return isinstance(self.said, Hit)


class _Match(NamedTuple):
    """A stretch of a text that contains query terms."""

    start: int
    end: int
    terms: frozenset[str]


def turns(hits: Sequence[Hit], messages: Sequence[Candidate], query: str) -> list[Turn]:
    """Return the hits, best first, then their neighbours among the messages, those of the best hit first.

    Hits are condensed to 400 characters around the query's terms, neighbours to 160. Messages that are hits, or are
    next to no hit, are left out. `passages` accepts any beginning of the list.
    """
    if not hits:
        return []
    asked = frozenset(query_terms(query))
    found = [Turn(hit, excerpt(hit.text, asked, HIT_CHARS), rank) for rank, hit in enumerate(hits)]
    ranks: dict[tuple[str | None, int], int] = {}
    for rank, hit in enumerate(hits):
        if hit.seq is not None:
            for adjacent in (hit.seq - 1, hit.seq + 1):
                ranks.setdefault((hit.session_id, adjacent), rank)
    taken = {hit.key for hit in hits}
    neighbours = [
        Turn(message, excerpt(message.text, asked, _NEIGHBOUR_CHARS), ranks[message.session_id, message.seq])
        for message in messages
        if message.seq is not None and message.key not in taken and (message.session_id, message.seq) in ranks
    ]
    return found + sorted(neighbours, key=lambda turn: (turn.rank, turn.said.seq or 0))


def passages(kept: Sequence[Turn]) -> list[list[Turn]]:
    """Group the turns into passages, ranked by their best hit; the turns of a passage are in order of seq.

    A turn without a seq is a passage of its own.
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
    """Return the part of the text with the most query terms, on one line, in at most `at_most` characters (>= 100).

    It begins with a sentence if possible, and an ellipsis marks each cut. Ties: the first part. No terms: the
    beginning of the text.
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
    """Yield the words, or slices of long ones, that contain any of the terms, in order."""
    # One pass over the whole text finds the few words to look for; most texts have none.
    written = [word for word in frozenset(indexed_words(text)) if stem(word) in asked]
    if not written:
        return
    known: dict[str, frozenset[str]] = {}
    for start, end in _runs(text, written):
        for at in range(start, max(end - _STEP, start + 1), _STEP):
            part = text[at : min(at + _SLICE, end)]
            if part not in known:
                known[part] = frozenset(terms(part)).intersection(asked)
            if known[part]:
                yield _Match(at, at + len(part), known[part])


def _runs(text: str, written: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield start and end of each run without white space that may contain one of the words, in order: those with its
    letters, and those that are not ASCII, whose words are folded."""
    lowered = text.lower()
    places = [found.start() for found in _NOT_ASCII.finditer(text)]
    places += [place for word in written for place in _places_of(word, lowered)]
    # A letter that became two shifts the places; and where there are many, each run has one.
    if len(lowered) != len(text) or len(places) > len(text) // _FEW:
        yield from (run.span() for run in _RUN.finditer(text))
        return
    end = 0
    for place in sorted(places):
        if place >= end and (run := _RUN.match(text, _beginning_of_run(text, end, place))) is not None:
            start, end = run.span()
            yield start, end


def _places_of(word: str, text: str) -> Iterator[int]:
    place = text.find(word)
    while place >= 0:
        yield place
        place = text.find(word, place + len(word))


def _beginning_of_run(text: str, earliest: int, place: int) -> int:
    return max(text.rfind(" ", earliest, place), text.rfind("\n", earliest, place), earliest - 1) + 1


def _densest(matches: Sequence[_Match], room: int) -> tuple[int, int]:
    """Return start and end of the matches with the most distinct terms within `room` characters. Ties: the first.
    No matches: (0, 0)."""
    best, most = (0, 0), 0
    first = count = 0
    held: Counter[str] = Counter()
    for match in matches:
        for term in match.terms:
            count += not held[term]
            held[term] += 1
        while match.end - matches[first].start > room:
            for term in matches[first].terms:
                held[term] -= 1
                count -= not held[term]
            first += 1
        if count > most:
            best, most = (matches[first].start, match.end), count
    return best


def _cut_out(text: str, start: int, end: int, at_most: int) -> str:
    """Cut out the stretch from `start` to `end`, with as much text around it as there is room for."""
    room = at_most - 2 * len(_ELLIPSIS)
    begin = _beginning(text, start, max(0, end - room), room)
    lead = _ELLIPSIS if begin else ""
    if len(text) - begin <= at_most - len(lead):
        return lead + text[begin:]
    stop = begin + at_most - len(lead) - len(_ELLIPSIS)
    space = max(text.rfind(mark, max(end, begin + room // 2), stop + 1) for mark in " \n")
    return lead + text[begin : space if space >= 0 else stop].rstrip(" \n,;:-–—(") + _ELLIPSIS


def _beginning(text: str, start: int, earliest: int, room: int) -> int:
    """Return where an excerpt that must show `start` begins: at its sentence, or at an earlier one if all that
    follows fits; else at a word, a third of the room earlier."""
    borders = [border.end() for border in _BORDER.finditer(text, earliest, start)]
    if earliest == 0:
        borders.insert(0, 0)
    if borders:
        return next((border for border in borders if border >= len(text) - room), borders[-1])
    begin = max(earliest, start - room // 3)
    space = text.find(" ", begin, start)
    return space + 1 if space >= 0 else start
