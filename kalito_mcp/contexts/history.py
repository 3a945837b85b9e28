"""The matches that fit into a context, as lines. Pure.

How many steps fit is found by trying, so each line is rendered and counted once per context.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Final, Protocol

from kalito_mcp.contexts.passages import Turn, passages
from kalito_mcp.contexts.render import HistoryLines
from kalito_mcp.contexts.steps import Part
from kalito_mcp.domain.search import Hit, TurnBeside
from kalito_mcp.domain.zone import Zone

_FIRST_TRIED: Final = 16
"""Steps. If they fit, twice as many are tried."""

_TRIED: Final = 6
"""Steps after the first that does not fit. They fill what it leaves."""


class Shown(Protocol):
    """The steps that may be shown, best first, and their turns."""

    def first(self, count: int) -> list[frozenset[Part]]: ...

    def turns(self, parts: Collection[Part]) -> list[Turn]: ...


@dataclass(frozen=True, slots=True)
class TakenPassages:
    """Turns that were taken, in the order of their passages, the lines of these, and the tokens of the lines."""

    turns: Sequence[Turn] = ()
    lines: Sequence[str] = ()
    cost: int = 0

    @property
    def hits(self) -> tuple[Hit, ...]:
        """The hits among the turns, in their order, each with its text as it is shown. The first of a passage has the
        turns around them."""
        around: dict[str, tuple[TurnBeside, ...]] = {}
        for passage in passages(self.turns):
            first = next((one.said.record_id for one in passage if one.is_hit), "")
            around[first] = tuple(_said(one) for one in passage if not one.is_hit)
        return tuple(
            replace(
                one.said, text=one.said.text if one.is_whole else one.text, turns=around.get(one.said.record_id, ())
            )
            for one in self.turns
            if isinstance(one.said, Hit)
        )


_NOTHING: Final = TakenPassages()


def _said(turn: Turn) -> TurnBeside:
    return TurnBeside(turn.said.record_id, turn.said.role, turn.said.name, turn.text)


class History:
    """The passages of some steps of a list."""

    def __init__(self, steps: Shown, session_id: str | None, zone: Zone, line_cost: Callable[[str], int]) -> None:
        self._steps = steps
        self._rendered = HistoryLines(session_id, zone)
        self._line_cost = cache(line_cost)

    def fitting(self, room: int) -> TakenPassages:
        """The first steps that fit into this many tokens, then later ones that still fit."""
        low, high = 0, _FIRST_TRIED
        best = _NOTHING
        while low < high:
            steps = self._steps.first(high)
            found = self._taken(frozenset().union(*steps))
            if found.cost > room:
                break
            best, low, high = found, len(steps), 2 * high if len(steps) == high else len(steps)
        while low + 1 < high:
            middle = (low + high) // 2
            found = self._taken(frozenset().union(*self._steps.first(middle)))
            if found.cost <= room:
                best, low = found, middle
            else:
                high = middle
        parts: frozenset[Part] = frozenset().union(*self._steps.first(low))
        for step in self._steps.first(low + 1 + _TRIED)[low + 1 :]:
            more = self._taken(parts | step)
            if more.cost <= room:
                parts, best = parts | step, more
        return best

    def _taken(self, parts: frozenset[Part]) -> TakenPassages:
        found = passages(self._steps.turns(parts))
        lines = self._rendered.lines(found)
        return TakenPassages([turn for one in found for turn in one], lines, sum(map(self._line_cost, lines)))
