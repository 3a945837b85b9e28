"""Which sentences a summary keeps, and how they are set on its lines. Pure.

Greedy: the most points per character first, less what the kept ones already say. Source: maximal marginal relevance
(Carbonell and Goldstein, SIGIR 1998), under a budget as in Lin and Bilmes, NAACL 2010. Whole numbers throughout, so
that the choice is the same on every platform; ties go to the earlier sentence.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from kalito_mcp.summaries.salience import Reading, marks, read
from kalito_mcp.text.lazy_pattern import lazy
from kalito_mcp.text.sentences import ELLIPSIS, clauses, cut

_MAX_POOL: Final = 240
_MIN_POINTS: Final = 14
# Points are per character, but a sentence has a price of its own: without it, splinters would win.
_SENTENCE_PRICE: Final = 70
_NEAR_IDENTICAL: Final = 75
_MIN_COMPARED: Final = 3
_REDUNDANCY_WEIGHT: Final = 90
# What each further sentence of one message (or part) is worth of its points, in percent.
_GROUP_DISCOUNT: Final = 82

_CLOSED: Final = lazy(r"[.!?…。！？｡؟।॥။][\"'”’»)\]」』）】》]*$")
_ENDS_IN_KANJI: Final = lazy(r"[\u3040-\u30ff\u3400-\u9fff]$")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A sentence that may be kept. `group` is its message or part; `answer_group` the one that answers a question."""

    order: int
    group: int
    speaker: str
    reading: Reading
    points: int
    answer_group: int | None = None


def trimmed(text: str, max_chars: int, worth: Callable[[Reading], int]) -> str:
    """The run of clauses that is worth most within `max_chars`, with an ellipsis where something is missing."""
    parts = clauses(text)
    values = [max(worth(read(part)), 0) for part in parts]
    room = max_chars - 2 * len(ELLIPSIS)
    best, best_value = (0, 0), 0
    start = value = length = 0
    for end, part in enumerate(parts):
        value += values[end]
        length += len(part)
        while length > room and start <= end:
            value -= values[start]
            length -= len(parts[start])
            start += 1
        if value > best_value:
            best, best_value = (start, end + 1), value
    if best_value == 0 or max(values) > best_value:
        # The best clause alone is too long: its beginning says more than any other run.
        best = (values.index(max(values)), len(parts))
    kept = "".join(parts[best[0] : best[1]]).strip(" ,;—–")
    if best[0] > 0:
        kept = ELLIPSIS + kept
    if best[1] < len(parts) and len(kept) + len(ELLIPSIS) <= max_chars:
        kept += ELLIPSIS
    return cut(kept, max_chars)


def choose(candidates: Sequence[Candidate], room: int, *, share: int | None = None) -> list[Candidate]:
    """The candidates to keep, in order, so that their lines and line feeds fit into `room` characters.

    With a `share`, every group first gets up to that many characters. A question that is answered in the range is
    looked at last, and kept only where nothing of its answer is.
    """
    open_ones = [candidate for candidate in candidates if candidate.answer_group is None]
    answered = [candidate for candidate in candidates if candidate.answer_group is not None]
    chosen = _Choice(room)
    if share is not None:
        by_group: dict[int, list[Candidate]] = {}
        for candidate in open_ones:
            by_group.setdefault(candidate.group, []).append(candidate)
        # The group with the best sentence first: where the room is too small for all, the best come in.
        for pool in sorted(by_group.values(), key=lambda pool: -max(candidate.points for candidate in pool)):
            chosen.fill(pool, limit=share)
    chosen.fill(open_ones)
    kept_groups = {candidate.group for candidate in chosen.kept}
    chosen.fill([candidate for candidate in answered if candidate.answer_group not in kept_groups])
    return chosen.kept


def lines(kept: Sequence[Candidate]) -> list[str]:
    """One line for each turn of a speaker: `Ann: I live in Oslo. I moved there in 2019.`"""
    turns: list[str] = []
    previous: str | None = None
    for candidate in kept:
        text = _closed(candidate.reading.text)
        if candidate.speaker and candidate.speaker == previous:
            turns[-1] += f" {text}"
        else:
            turns.append(f"{candidate.speaker}: {text}" if candidate.speaker else text)
        previous = candidate.speaker
    return turns


class _Choice:
    """What is kept so far; always in order, always within the room."""

    def __init__(self, room: int) -> None:
        self.kept: list[Candidate] = []
        self._room = room
        self._length = 0
        self._group_sizes: dict[int, int] = {}

    def fill(self, pool: Sequence[Candidate], limit: int | None = None) -> None:
        """Keep the best of the pool, one after the other, until nothing more fits.

        With a limit, until the next best one does not fit into that many more characters: what is small enough to
        fill the rest of a share is seldom the best use of that room.
        """
        ceiling = self._room if limit is None else min(self._room, self._length + limit)
        taken = {candidate.order for candidate in self.kept}
        waiting = [c for c in pool if c.points >= _MIN_POINTS and c.order not in taken]
        if len(waiting) > _MAX_POOL:
            waiting = sorted(sorted(waiting, key=_own_value, reverse=True)[:_MAX_POOL], key=_order)
        offers = [_Offer(candidate, self._group_sizes.get(candidate.group, 0)) for candidate in waiting]
        for kept in self.kept:
            _discount(offers, kept)
        while offers:
            # Of equal ones the first, and offers are in order: the earlier sentence.
            best = max(offers, key=_offered)
            offers.remove(best)
            if best.overlap >= _NEAR_IDENTICAL:
                continue
            if not self._keep(best.candidate, ceiling):
                if limit is not None and len(self.kept) > len(taken):
                    break
                continue
            _discount(offers, best.candidate)
            for offer in offers:
                if offer.candidate.group == best.candidate.group:
                    offer.group_size += 1
                    offer.value = offer.worth()

    def _keep(self, candidate: Candidate, ceiling: int) -> bool:
        # Cheap test first: alone it is longer than what is left.
        if self._length + len(candidate.reading.text) > ceiling:
            return False
        tried = sorted([*self.kept, candidate], key=_order)
        length = sum(len(line) + 1 for line in lines(tried)) - 1
        if length > ceiling:
            return False
        self.kept, self._length = tried, length
        self._group_sizes[candidate.group] = self._group_sizes.get(candidate.group, 0) + 1
        return True


class _Offer:
    """A candidate, and what it is worth beside what is kept."""

    __slots__ = ("candidate", "group_size", "marks", "overlap", "value")

    def __init__(self, candidate: Candidate, group_size: int) -> None:
        self.candidate = candidate
        self.group_size = group_size
        self.overlap = 0
        self.marks: frozenset[str] | None = None
        self.value = self.worth()

    def worth(self) -> int:
        """Points per thousand characters, less what is said already and what its group has."""
        candidate = self.candidate
        worth = candidate.points * (10_000 - self.overlap * _REDUNDANCY_WEIGHT)
        for _ in range(self.group_size):
            worth = worth * _GROUP_DISCOUNT // 100
        return worth // (_SENTENCE_PRICE + len(candidate.reading.text) + len(candidate.speaker))


def _discount(offers: Sequence[_Offer], kept: Candidate) -> None:
    """Lower the offers by what the kept sentence already says of them."""
    terms = kept.reading.terms
    kept_marks = marks(kept.reading)
    for offer in offers:
        reading = offer.candidate.reading
        if terms.isdisjoint(reading.terms):
            continue
        # Very short sentences share their one word by chance.
        smaller = max(min(len(reading.terms), len(terms)), _MIN_COMPARED)
        overlap = 100 * len(reading.terms & terms) // smaller
        if overlap >= _NEAR_IDENTICAL:
            if offer.marks is None:
                offer.marks = marks(reading)
            # Another number, or a "not": a correction, not a repetition.
            if not offer.marks <= kept_marks:
                continue
        if overlap > offer.overlap:
            offer.overlap = min(overlap, 100)
            offer.value = offer.worth()


def _own_value(candidate: Candidate) -> int:
    return _Offer(candidate, 0).value


def _offered(offer: _Offer) -> int:
    return offer.value


def _order(candidate: Candidate) -> int:
    return candidate.order


def _closed(text: str) -> str:
    """The sentence with an end, so that the next one on its line can be told apart again."""
    if _CLOSED().search(text[-4:]):
        return text
    return f"{text}{'。' if _ENDS_IN_KANJI().search(text) else '.'}"
