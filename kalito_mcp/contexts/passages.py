"""Groups search hits and the messages around them into passages. Pure.

A turn is a hit or a message around one. A passage is a run of turns of one session without a gap, so adjacent hits, and
hits that share a turn, are in one passage.

A context shows the first steps of a list. A step is what is shown together: a hit with the turn before it and what
follows from it, or one more turn around a hit shown before. What an assistant said never stands without the user's
answer to it: a proposal that was overruled reads like a decision.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from kalito_mcp.domain.records import Role
from kalito_mcp.domain.search import Candidate, Hit
from kalito_mcp.text.analysis import indexed_words, query_terms, stem, terms

HIT_CHARS: Final = (400, 1_200, 4_000)
"""Of a hit. A longer one is condensed. The least, and more if there is room for all of them."""

AROUND_CHARS: Final = (240, 600, 2_000)
"""The same of a message around a hit."""

BEFORE: Final = 2
AFTER: Final = 5
"""How many messages before and after a hit may be shown around it."""

ANSWERED_WITHIN: Final = 4
"""How many messages after one of the assistant's the user's answer to it is at most."""

_HITS_FIRST: Final = 8
"""How many further hits come before one more turn around a better one."""

_LAST: Final = 2
"""Turns at the end of a conversation."""

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
    stands around; 0 is the best. Unless it `is_whole`, the text is condensed."""

    said: Hit | Candidate
    text: str
    rank: int
    is_whole: bool = True

    @property
    def is_hit(self) -> bool:
        """Whether the search found this turn itself."""
        return isinstance(self.said, Hit)


class _Conversation:
    """Hits and the messages around them, by their places in their sessions."""

    def __init__(self, hits: Sequence[Hit], around: Sequence[Candidate]) -> None:
        self._said: dict[tuple[str | None, int], Hit | Candidate] = {}
        said: list[Hit | Candidate] = [*around, *hits]
        self._said.update(((one.session_id, one.seq), one) for one in said if one.seq is not None)

    def belonging(self, hit: Hit) -> list[Hit | Candidate]:
        """The hit with the user's answer to it, if the assistant said it."""
        return [hit, *self._with_answer(hit, [])]

    def beyond(self, hit: Hit, further: int) -> list[Hit | Candidate]:
        """The turns so far before and after a hit, with their answers."""
        before = self._said_at(hit, -further) if further <= BEFORE else []
        after = self._said_at(hit, further) if further <= AFTER else []
        return [*before, *self._with_answer(hit, after)]

    def _with_answer(self, hit: Hit, after: list[Hit | Candidate]) -> list[Hit | Candidate]:
        last = after[-1] if after else hit
        return [*after, *(self._to_answer(last) if last.role is Role.ASSISTANT else [])]

    def _to_answer(self, said: Hit | Candidate) -> list[Hit | Candidate]:
        """What follows up to the user's answer; nothing if the user did not answer soon."""
        following: list[Hit | Candidate] = []
        for place in range(1, ANSWERED_WITHIN + 1):
            following += self._said_at(said, place)
            if following and following[-1].role is Role.USER:
                return following
        return []

    def _said_at(self, said: Hit | Candidate, distance: int) -> list[Hit | Candidate]:
        """The turn at this distance, if it is known."""
        if said.seq is None:
            return []
        found = self._said.get((said.session_id, said.seq + distance))
        return [] if found is None else [found]


class _Match(NamedTuple):
    """A stretch of a text that contains query terms."""

    start: int
    end: int
    terms: frozenset[str]


def steps(hits: Sequence[Hit], around: Sequence[Candidate], query: str, *, level: int = 0) -> list[list[Turn]]:
    """Return the steps of the hits, which are best first, through the messages around them, in no order.

    `passages` accepts the turns of any first steps. The next step of a hit comes after the first steps of the four hits
    that follow it. Texts are condensed around the query's terms, as `HIT_CHARS` and `AROUND_CHARS` say for the level.
    """
    asked = frozenset(query_terms(query))
    found: list[tuple[int, list[Turn]]] = []
    conversation = _Conversation(hits, around)
    taken: set[int] = set()

    def step(rank: int, place: int, members: Sequence[Hit | Candidate]) -> None:
        new = [one for one in members if one.key not in taken]
        if new:
            taken.update(one.key for one in new)
            found.append((place, [_turn(one, rank, asked, level) for one in new]))

    for rank, hit in enumerate(hits):
        step(rank, rank, conversation.belonging(hit))
    for further in range(1, max(BEFORE, AFTER) + 1):
        for rank, hit in enumerate(hits):
            step(rank, rank + _HITS_FIRST * further, conversation.beyond(hit, further))
    return [turns for _, turns in sorted(found, key=lambda one: one[0])]


def ends(conversations: Sequence[Sequence[Hit]], query: str) -> list[list[Turn]]:
    """Return the steps of the ends of conversations, the latest conversation first: the last turns of each, then those
    before them."""
    asked = frozenset(query_terms(query))
    last = [[_turn(one, rank, asked, 0) for one in said] for rank, said in enumerate(conversations)]
    return [said[-_LAST:] for said in last] + [said[:-_LAST] for said in last if said[:-_LAST]]


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


def _turn(said: Hit | Candidate, rank: int, asked: Collection[str], level: int) -> Turn:
    chars = (HIT_CHARS if isinstance(said, Hit) else AROUND_CHARS)[level]
    return Turn(said, excerpt(said.text, asked, chars), rank, is_whole=len(said.text) <= chars)


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
