"""Chooses the sentences of a digest, and writes them under four headings. Pure.

The last word on a matter takes the place of the earlier ones (`last_words`). Of the messages' sentences, those that are
surely worth keeping come first; the rest of the room goes to those that say most for their length: words that no chosen
sentence has, names and numbers. A summary of summaries chooses by that alone, since all of it was worth keeping. Ties:
the earlier sentence. Worth and likeness are whole percents, so that the choice is the same on every platform.
Source: coverage under a budget, Lin and Bilmes, NAACL 2010.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from heapq import heapify, heappop, heappush
from typing import Final

from kalito_mcp.domain.kinds import DIGEST, Kind
from kalito_mcp.text.analysis import query_terms
from kalito_mcp.text.languages import every_function_word
from kalito_mcp.text.lazy_pattern import lazy
from kalito_mcp.text.times.annotation import DATED

HEADINGS: Final[Mapping[str, frozenset[Kind]]] = {f"{heading}:": kinds for heading, kinds in DIGEST.items()}
ANSWERED: Final = " → "
"""Between what was proposed and what the other one said to it."""

BAR: Final = 40
BAR_AMONG_PEOPLE: Final = 20
"""Percent: sentences worth less are left out."""
_SURE: Final = 70
"""Percent: sentences worth at least this come first."""

_SAME: Final = 70
"""Percent of likeness: of two such sentences, the later one is enough."""
_SAME_DECISION: Final = 50
_SAME_SOON: Final = 30
"""The same of two of a person's decisions; and within `_SOON` messages, in which a decision is usually changed."""
_SOON: Final = 4
_FEW: Final = 50
"""Percent: a sentence worth less than this part of an earlier one does not replace it."""

_LONG: Final = 160
_LONG_BONUS: Final = 30
_LATE_BONUS: Final = 20
"""Percent: bonus of a sentence of 160 characters, and of the last one. Both are kept more often."""

_PRICE: Final = 100
"""Characters added to every sentence's length: without them, splinters would say most for their length."""
_TERM: Final = 10
_MOST_TERMS: Final = 8
_DETAIL: Final = 20
_MOST_DETAILS: Final = 3
"""Points of each new word, and of each name, number or date; and how many of them count."""
_MAX_POOL: Final = 240

_CHANGES: Final = frozenset({Kind.DECISION, Kind.CHANGE})
_CHANGEABLE: Final = frozenset({Kind.DECISION, Kind.CHANGE, Kind.PLAN})
_WORD: Final = lazy(r"[^\W_]+(?:['’.,:/_@-][^\W_]+)*")
_DATE: Final = lazy(DATED)
_ENDED: Final = lazy(r"[.!?…。！？｡؟।॥။][\"'”’»)\]」』）】》]*$")
_ENDS_IN_KANJI: Final = lazy(r"[\u3040-\u30ff\u3400-\u9fff]$")


@dataclass(frozen=True)
class Candidate:
    """A sentence that may be kept. `group` is the number of its message or part. `proposal` is what it answers, with
    its speaker, if it says little without that."""

    order: int
    group: int
    speaker: str
    text: str
    kind: Kind
    worth: int
    is_assistant: bool = False
    proposal: str = ""

    @cached_property
    def terms(self) -> frozenset[str]:
        """The stems of its words, without the function words of any language."""
        return frozenset(query_terms(self._undated, every_function_word(), may_be_empty=True))

    @cached_property
    def details(self) -> int:
        """The points of its names, numbers and dates."""
        said: list[str] = _WORD().findall(self._undated)
        numbers = sum(any(map(str.isdigit, word)) for word in said) + len(_DATE().findall(self.text))
        names = sum(word[0].isupper() and len(word) > 1 and not word.startswith(("I'", "I’")) for word in said[1:])
        return _DETAIL * (min(numbers, _MOST_DETAILS) + min(names, _MOST_DETAILS))

    @property
    def _undated(self) -> str:
        return _DATE().sub("", self.text) if "(" in self.text else self.text


def last_words(
    candidates: Sequence[Candidate], likeness: Sequence[Sequence[int]], *, has_decisions: bool, of_parts: bool = False
) -> list[Candidate]:
    """The candidates that no later one replaces.

    `likeness` has percents by the candidates' `order`; without it, only equal words are the same. If the assistant
    repeats others, the repetition is left out instead of the original. With `has_decisions`, a person's decision
    replaces their earlier one about the same. Within a part of a summary of summaries, nothing is compared: there, the
    order is not chronological.
    """
    gone: set[int] = set()
    for at, later in enumerate(candidates):
        for earlier in candidates[:at]:
            if of_parts and earlier.group == later.group:
                continue
            if _is_same(earlier, later, likeness) or (has_decisions and _is_changed(earlier, later, likeness)):
                gone.add(later.order if later.is_assistant and not earlier.is_assistant else earlier.order)
    return [one for one in candidates if one.order not in gone]


def _is_same(earlier: Candidate, later: Candidate, likeness: Sequence[Sequence[int]]) -> bool:
    if not likeness:
        return earlier.text.casefold() == later.text.casefold()
    return likeness[later.order][earlier.order] >= _SAME and 100 * later.worth >= _FEW * earlier.worth


def _is_changed(earlier: Candidate, later: Candidate, likeness: Sequence[Sequence[int]]) -> bool:
    if not likeness or later.is_assistant:
        return False
    alike = likeness[later.order][earlier.order]
    if alike < _SAME_SOON or 100 * later.worth < _FEW * earlier.worth:
        return False
    is_soon = later.group - earlier.group <= _SOON
    if earlier.kind is Kind.OPEN:
        return is_soon and later.kind is not Kind.OPEN
    if earlier.is_assistant:
        return False
    if earlier.group == later.group:
        return earlier.kind is not Kind.FACT
    return later.kind in _CHANGES and earlier.kind in _CHANGEABLE and (is_soon or alike >= _SAME_DECISION)


def choose(candidates: Sequence[Candidate], room: int, *, surest_first: bool) -> list[Candidate]:
    """Choose candidates of messages, in order, whose lines and line feeds fit into `room` characters."""
    chosen = _Choice(room)
    if surest_first:
        last = max((one.group for one in candidates), default=0)
        sure = [one for one in candidates if one.worth >= _SURE]
        for candidate in sorted(sure, key=lambda one: -_sureness(one, last)):
            chosen.keep(candidate, room)
    chosen.fill(candidates)
    return chosen.kept


def choose_of_parts(candidates: Sequence[Candidate], room: int, *, share: int) -> list[Candidate]:
    """Choose candidates of a summary's parts, as `choose`. Every part first gets up to `share` characters."""
    chosen = _Choice(room)
    by_group: dict[int, list[Candidate]] = {}
    for candidate in candidates:
        by_group.setdefault(candidate.group, []).append(candidate)
    # The part with the best sentence first, in case the room is too small for all.
    for pool in sorted(by_group.values(), key=lambda pool: -max(one.worth for one in pool)):
        chosen.fill(pool, limit=share)
    chosen.fill(candidates)
    return chosen.kept


def lines(kept: Sequence[Candidate]) -> list[str]:
    """The headings, and below each a line for each turn of a speaker: `Ann: I live in Oslo. I moved there in 2019.`

    Sentences worth nothing stand first, without a heading.
    """
    found = _turns([one for one in kept if not one.worth])
    for heading, kinds in HEADINGS.items():
        below = _turns([one for one in kept if one.worth and one.kind in kinds])
        found += [heading, *below] if below else []
    return found


def ended(text: str) -> str:
    """The sentence with a full stop at its end, so that a fold can split the line into sentences again."""
    if _ENDED().search(text[-4:]):
        return text
    return f"{text}{'。' if _ENDS_IN_KANJI().search(text) else '.'}"


def _turns(kept: Sequence[Candidate]) -> list[str]:
    turns: list[str] = []
    previous: str | None = None
    for candidate in kept:
        text = ended(candidate.text)
        if candidate.proposal:
            turns.append(f"{candidate.proposal}{ANSWERED}{candidate.speaker}: {text}")
        elif candidate.speaker and candidate.speaker == previous:
            turns[-1] += f" {text}"
        else:
            turns.append(f"{candidate.speaker}: {text}" if candidate.speaker else text)
        previous = candidate.speaker
    return turns


class _Choice:
    """The candidates kept so far, always in order and within the room."""

    def __init__(self, room: int) -> None:
        self.kept: list[Candidate] = []
        self._room = room
        self._length = 0
        self._said: set[str] = set()

    def fill(self, pool: Sequence[Candidate], limit: int | None = None) -> None:
        """Keep the most informative candidates of the pool for their length, one after the other, until nothing more
        fits.

        With a limit of characters, stop after the first kept one at the next that does not fit: a small sentence is
        seldom the best use of that room.
        """
        ceiling = self._room if limit is None else min(self._room, self._length + limit)
        waiting = [one for one in pool if one not in self.kept]
        if len(waiting) > _MAX_POOL:
            waiting = sorted(sorted(waiting, key=self._density, reverse=True)[:_MAX_POOL], key=_order)
        has_kept = False
        # What is kept only lowers the density of the others. So one that still has the density it is listed with is the
        # densest, and the earlier of ties.
        listed = [(-self._density(one), at) for at, one in enumerate(waiting)]
        heapify(listed)
        while listed:
            density, at = heappop(listed)
            best = waiting[at]
            if (now := -self._density(best)) != density:
                heappush(listed, (now, at))
                continue
            is_kept = self.keep(best, ceiling)
            if limit is not None and has_kept and not is_kept:
                break
            has_kept = has_kept or is_kept

    def keep(self, candidate: Candidate, ceiling: int) -> bool:
        """Keep the candidate, unless all that is kept would exceed `ceiling` characters."""
        # The cheap test first: the sentence may be longer than the room left.
        if self._length + len(candidate.text) > ceiling:
            return False
        tried = sorted([*self.kept, candidate], key=_order)
        length = sum(len(line) + 1 for line in lines(tried)) - 1
        if length > ceiling:
            return False
        self.kept, self._length = tried, length
        self._said |= candidate.terms
        return True

    def _density(self, candidate: Candidate) -> int:
        """The new information of the sentence beyond the kept ones, for its length."""
        new = len(candidate.terms - self._said)
        points = candidate.worth // 2 + _TERM * min(new, _MOST_TERMS) + candidate.details
        return 1_000 * points // (_PRICE + len(candidate.text) + len(candidate.proposal))


def _sureness(candidate: Candidate, last_group: int) -> int:
    length = _LONG_BONUS * min(len(candidate.text) + len(candidate.proposal), _LONG) // _LONG
    return candidate.worth + length + _LATE_BONUS * candidate.group // max(last_group, 1)


def _order(candidate: Candidate) -> int:
    return candidate.order
