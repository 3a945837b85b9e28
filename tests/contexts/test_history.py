"""Finding out how many matches fit counts each line once."""

from collections import Counter

from kalito_mcp.contexts.history import History
from kalito_mcp.contexts.passages import Turn
from kalito_mcp.domain.zone import UTC_ZONE
from tests.contexts.test_passages import hit


def test_each_line_is_counted_once_however_often_it_is_tried() -> None:
    """The first turns are tried in any order, and cost what their lines cost together."""
    counted: Counter[str] = Counter()

    def cost(line: str) -> int:
        counted[line] += 1
        return len(line)

    steps = [[Turn(hit(key, seq=3 * key), f"said {key}", rank)] for rank, key in enumerate((5, 1, 9, 4))]
    history = History(steps, "s", UTC_ZONE, cost)
    tried = [history.cost(kept) for kept in (2, 4, 3, 4, 2, 1)]
    assert tried == [sum(map(len, history.lines(kept))) for kept in (2, 4, 3, 4, 2, 1)]
    assert len(history.lines(4)) == 4
    assert set(counted.values()) == {1}
