"""Chooses the sentences of a summary and arranges them in lines. Pure.

Greedy: the most points per character first, less what the kept sentences already say. Ties: the earlier sentence.
Source: maximal marginal relevance (Carbonell and Goldstein, SIGIR 1998), under a budget as in Lin and Bilmes, NAACL
2010. Whole numbers throughout, so that the choice is the same on every platform.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from kalito_mcp.summaries.salience import SentenceFeatures, distinguishing_words, extract_features
from kalito_mcp.text.lazy_pattern import lazy
from kalito_mcp.text.sentences import ELLIPSIS, clauses, cut

_MAX_POOL: Final = 240
_MIN_POINTS: Final = 14
# In a summary of summaries: more than a few words about nobody, at no time.
_MIN_LASTING_POINTS: Final = 42
# Characters added to every sentence's length: without them, splinters would have the most points per character.
_SENTENCE_PRICE: Final = 50
# A clause at the end of a sentence needs as many points to stay: a name and a term more, or a decision.
_MIN_LAST_CLAUSE: Final = 30
_MIN_SAVED: Final = 16
_NEAR_IDENTICAL: Final = 75
_MIN_COMPARED: Final = 3
_REDUNDANCY_WEIGHT: Final = 90
# Percent: each further sentence of one message (or part) keeps this much of its points.
_GROUP_DISCOUNT: Final = 82

_ENDED: Final = lazy(r"[.!?…。！？｡؟।॥။][\"'”’»)\]」』）】》]*$")
_ENDS_IN_KANJI: Final = lazy(r"[\u3040-\u30ff\u3400-\u9fff]$")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A sentence that may be kept. `group` is its message or part; `answer_group` is the one that answers it."""

    order: int
    group: int
    speaker: str
    sentence: SentenceFeatures
    points: int
    answer_group: int | None = None


def tighten(text: str, worth: Callable[[SentenceFeatures], int]) -> str:
    """Drop the clauses at the end that say little; an ellipsis marks that. Brackets and quotations stay whole."""
    parts = clauses(text)
    if len(parts) == 1:
        return text
    kept = len(parts)
    while kept and not _says_much(parts[kept - 1], worth):
        kept -= 1
    if kept in {0, len(parts)}:
        return text
    shorter = "".join(parts[:kept]).strip(" ,;—–-")
    is_whole = shorter.count("(") == shorter.count(")") and shorter.count('"') % 2 == 0
    return shorter + ELLIPSIS if is_whole and len(text) - len(shorter) >= _MIN_SAVED else text


def _says_much(clause: str, worth: Callable[[SentenceFeatures], int]) -> bool:
    found = extract_features(clause)
    return bool(found.numbers) or worth(found) >= _MIN_LAST_CLAUSE


def trim(text: str, max_chars: int, worth: Callable[[SentenceFeatures], int]) -> str:
    """Return the run of clauses worth most within `max_chars`. An ellipsis marks each cut."""
    parts = clauses(text)
    values = [max(worth(extract_features(part)), 0) for part in parts]
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
        # The best clause is too long, but its beginning says more than any other run.
        best = (values.index(max(values)), len(parts))
    kept = "".join(parts[best[0] : best[1]]).strip(" ,;—–")
    if best[0] > 0:
        kept = ELLIPSIS + kept
    if best[1] < len(parts) and len(kept) + len(ELLIPSIS) <= max_chars:
        kept += ELLIPSIS
    return cut(kept, max_chars)


def choose(candidates: Sequence[Candidate], room: int, *, share: int | None = None) -> list[Candidate]:
    """Choose candidates, in order, whose lines and line feeds fit into `room` characters.

    With a `share`, which a summary of summaries has, every group first gets up to that many characters, and what is
    said of nobody and nothing in particular is left out. Questions with an answer in the range come
    last, and are kept only if no sentence of the answer is.
    """
    open_ones = [candidate for candidate in candidates if candidate.answer_group is None]
    answered = [candidate for candidate in candidates if candidate.answer_group is not None]
    chosen = _Choice(room, _MIN_POINTS if share is None else _MIN_LASTING_POINTS)
    if share is not None:
        by_group: dict[int, list[Candidate]] = {}
        for candidate in open_ones:
            by_group.setdefault(candidate.group, []).append(candidate)
        # The group with the best sentence first, in case the room is too small for all.
        for pool in sorted(by_group.values(), key=lambda pool: -max(candidate.points for candidate in pool)):
            chosen.fill(pool, limit=share)
    chosen.fill(open_ones)
    kept_groups = {candidate.group for candidate in chosen.kept}
    chosen.fill([candidate for candidate in answered if candidate.answer_group not in kept_groups])
    return chosen.kept


def lines(kept: Sequence[Candidate]) -> list[str]:
    """Return a line for each turn of a speaker: `Ann: I live in Oslo. I moved there in 2019.`"""
    turns: list[str] = []
    previous: str | None = None
    for candidate in kept:
        text = _end_sentence(candidate.sentence.text)
        if candidate.speaker and candidate.speaker == previous:
            turns[-1] += f" {text}"
        else:
            turns.append(f"{candidate.speaker}: {text}" if candidate.speaker else text)
        previous = candidate.speaker
    return turns


class _Choice:
    """The candidates kept so far, always in order and within the room."""

    def __init__(self, room: int, least: int) -> None:
        self.kept: list[Candidate] = []
        self._room = room
        self._least = least
        self._length = 0
        self._group_sizes: dict[int, int] = {}

    def fill(self, pool: Sequence[Candidate], limit: int | None = None) -> None:
        """Keep the best of the pool, one after the other, until nothing more fits.

        With a limit of characters, stop after the first kept one at the next best that does not fit: a small sentence
        is seldom the best use of that room.
        """
        ceiling = self._room if limit is None else min(self._room, self._length + limit)
        taken = {candidate.order for candidate in self.kept}
        waiting = [c for c in pool if c.points >= self._least and c.order not in taken]
        if len(waiting) > _MAX_POOL:
            waiting = sorted(sorted(waiting, key=_own_value, reverse=True)[:_MAX_POOL], key=_order)
        offers = [_Offer(candidate, self._group_sizes.get(candidate.group, 0)) for candidate in waiting]
        for kept in self.kept:
            _discount(offers, kept)
        while offers:
            # Offers are in order and max returns the first, so ties go to the earlier sentence.
            best = max(offers, key=_current_value)
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
        # The cheap test first: the sentence may be longer than the room left.
        if self._length + len(candidate.sentence.text) > ceiling:
            return False
        tried = sorted([*self.kept, candidate], key=_order)
        length = sum(len(line) + 1 for line in lines(tried)) - 1
        if length > ceiling:
            return False
        self.kept, self._length = tried, length
        self._group_sizes[candidate.group] = self._group_sizes.get(candidate.group, 0) + 1
        return True


class _Offer:
    """A candidate, and its value given the kept sentences."""

    __slots__ = ("candidate", "distinguishing_words", "group_size", "overlap", "value")

    def __init__(self, candidate: Candidate, group_size: int) -> None:
        self.candidate = candidate
        self.group_size = group_size
        self.overlap = 0
        self.distinguishing_words: frozenset[str] | None = None
        self.value = self.worth()

    def worth(self) -> int:
        """Return the points per character, scaled, less the overlap with kept sentences and the group's discount."""
        candidate = self.candidate
        worth = candidate.points * (10_000 - self.overlap * _REDUNDANCY_WEIGHT)
        for _ in range(self.group_size):
            worth = worth * _GROUP_DISCOUNT // 100
        return worth // (_SENTENCE_PRICE + len(candidate.sentence.text) + len(candidate.speaker))


def _discount(offers: Sequence[_Offer], kept: Candidate) -> None:
    """Lower the offers by their overlap with the kept sentence."""
    terms = kept.sentence.terms
    kept_words = distinguishing_words(kept.sentence)
    for offer in offers:
        sentence = offer.candidate.sentence
        if terms.isdisjoint(sentence.terms):
            continue
        # Very short sentences may share their one word by chance.
        smaller = max(min(len(sentence.terms), len(terms)), _MIN_COMPARED)
        overlap = 100 * len(sentence.terms & terms) // smaller
        if overlap >= _NEAR_IDENTICAL:
            if offer.distinguishing_words is None:
                offer.distinguishing_words = distinguishing_words(sentence)
            # Another number or a "not" makes it a correction, not a repetition.
            if not offer.distinguishing_words <= kept_words:
                continue
        if overlap > offer.overlap:
            offer.overlap = min(overlap, 100)
            offer.value = offer.worth()


def _own_value(candidate: Candidate) -> int:
    return _Offer(candidate, 0).value


def _current_value(offer: _Offer) -> int:
    return offer.value


def _order(candidate: Candidate) -> int:
    return candidate.order


def _end_sentence(text: str) -> str:
    """Add a full stop if needed, so that a fold can split the line into sentences again."""
    if _ENDED().search(text[-4:]):
        return text
    return f"{text}{'。' if _ENDS_IN_KANJI().search(text) else '.'}"
