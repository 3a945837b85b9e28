"""Groups search hits and the messages around them into passages. Pure.

A turn is a hit or a message around one. A passage is a run of turns of one session without a gap, so adjacent hits, and
hits that share a turn, are in one passage. `steps` chooses which of their sentences are shown.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from kalito_mcp.domain.search import Candidate, Hit


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


def passages(kept: Sequence[Turn]) -> list[list[Turn]]:
    """Groups the turns into passages, ranked by their best hit; the turns of a passage are in order of seq.

    A turn without a seq is a separate passage.
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


def _follows(turn: Turn, last: Turn) -> bool:
    seq, before = turn.said.seq, last.said.seq
    return seq is not None and before is not None and seq == before + 1 and turn.said.session_id == last.said.session_id
