"""One attempt to pack a context: what was taken. Pure."""

from dataclasses import dataclass, field

from kalito_mcp.contexts import render
from kalito_mcp.contexts.history import TakenPassages


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
