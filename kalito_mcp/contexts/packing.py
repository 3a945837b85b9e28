"""One attempt to pack a context: what was taken, and the passages that may be. Pure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from kalito_mcp.contexts import render
from kalito_mcp.contexts.history import History
from kalito_mcp.contexts.parts import ContextParts
from kalito_mcp.contexts.passages import Turn, ends, passages, steps
from kalito_mcp.domain.search import Hit, TurnBeside


@dataclass(frozen=True, slots=True)
class TakenPassages:
    """Turns that were taken, the lines of their passages, the tokens of these, and the number of their steps."""

    turns: Sequence[Turn] = ()
    lines: Sequence[str] = ()
    cost: int = 0
    steps: int = 0

    @property
    def hits(self) -> tuple[Hit, ...]:
        """The hits among the turns, in their order, each with its text as it is shown. The first of a passage has the
        turns around them."""
        around: dict[int, tuple[TurnBeside, ...]] = {}
        for passage in passages(self.turns):
            first = next((one.said.key for one in passage if one.is_hit), 0)
            around[first] = tuple(_said(one) for one in passage if not one.is_hit)
        return tuple(
            replace(one.said, text=one.said.text if one.is_whole else one.text, turns=around.get(one.said.key, ()))
            for one in self.turns
            if isinstance(one.said, Hit)
        )


@dataclass(slots=True)
class Packing:
    """One attempt: the pieces taken, by their place in the parts, and the tokens left. Of the turns of the matches and
    of the latest conversations, those that were taken, and the lines of their passages."""

    left: int
    recent: dict[int, render.Piece] = field(default_factory=dict[int, render.Piece])
    known: dict[int, render.Piece] = field(default_factory=dict[int, render.Piece])
    pins: dict[int, render.Piece] = field(default_factory=dict[int, render.Piece])
    summaries: dict[int, render.Piece] = field(default_factory=dict[int, render.Piece])
    matching: TakenPassages = TakenPassages()
    latest: TakenPassages = TakenPassages()
    shown_first: frozenset[int] = frozenset()
    """The keys of what was taken before the matches, and is none of them."""

    def take(self, part: dict[int, render.Piece], place: int, piece: render.Piece, cost: int) -> bool:
        """Take the piece if its cost is left. Return whether it was taken."""
        if cost > self.left:
            return False
        part[place] = piece
        self.left -= cost
        return True


def _said(turn: Turn) -> TurnBeside:
    return TurnBeside(turn.said.record_id, turn.said.role, turn.said.name, turn.text)


class Histories:
    """The passages of one context, made when they are first needed."""

    def __init__(self, parts: ContextParts, history: Callable[[Sequence[Sequence[Turn]], str | None], History]) -> None:
        self._parts = parts
        self._history = history
        self._made: dict[tuple[int, frozenset[int]], History] = {}
        self.latest = history(ends(parts.latest, parts.query), parts.session_id)

    def matching(self, packing: Packing, level: int = 0) -> History:
        """Those of the matches, condensed by the level (see `passages`), without what was taken before them."""
        shown = packing.shown_first
        made = self._made.get((level, shown))
        if made is None:
            hits = [one for one in self._parts.hits if one.key not in shown]
            around = [one for one in self._parts.around if one.key not in shown]
            found = steps(hits, around, self._parts.query, level=level)
            made = self._made[level, shown] = self._history(found, self._parts.session_id)
        return made


def taken(history: History, kept: int) -> TakenPassages:
    """The passages of this many first steps."""
    return TakenPassages(history.turns(kept), history.lines(kept), history.cost(kept), kept)
