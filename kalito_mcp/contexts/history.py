"""The matches of a context as lines, and what they cost. Pure.

How many steps fit is found by trying, so each line is rendered and counted once a context.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Final

from kalito_mcp.contexts.passages import Turn, passages
from kalito_mcp.contexts.render import HistoryLines
from kalito_mcp.domain.zone import Zone


class History:
    """The passages of the first steps of a list."""

    def __init__(
        self, steps: Sequence[Sequence[Turn]], session_id: str | None, zone: Zone, line_cost: Callable[[str], int]
    ) -> None:
        self.steps: Final = steps
        self.lines: Final = cache(self._lines)
        """The lines of this many first steps."""
        self._rendered = HistoryLines(session_id, zone)
        self._line_cost = cache(line_cost)

    def cost(self, kept: int) -> int:
        """The tokens of the lines, without those of the heading."""
        return sum(map(self._line_cost, self.lines(kept)))

    def turns(self, kept: int) -> list[Turn]:
        """The turns of this many first steps."""
        return [turn for step in self.steps[:kept] for turn in step]

    def _lines(self, kept: int) -> list[str]:
        return self._rendered.lines(passages(self.turns(kept)))
