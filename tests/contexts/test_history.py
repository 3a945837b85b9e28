"""Finding out how many matches fit counts each line once."""

from collections import Counter
from dataclasses import replace

from kalito_mcp.contexts.history import History
from kalito_mcp.contexts.steps import Steps
from kalito_mcp.domain.zone import UTC_ZONE
from tests.contexts.test_passages import hit

HITS = [replace(hit(key, 3 * key, text=f"said {key}"), score=1 / rank) for rank, key in enumerate((5, 1, 9, 4), 1)]


def test_each_line_is_counted_once_however_often_it_is_tried() -> None:
    """And the turns cost what their lines cost together."""
    counted: Counter[str] = Counter()

    def cost(line: str) -> int:
        counted[line] += 1
        return len(line)

    history = History(Steps(HITS, [], ""), "s", UTC_ZONE, cost)
    taken = [history.fitting(room) for room in range(200)]
    assert [one.cost for one in taken] == [sum(map(len, one.lines)) for one in taken]
    assert all(one.cost <= room for room, one in enumerate(taken))
    assert [len(one.turns) for one in taken[:1] + taken[-1:]] == [0, 4]
    assert set(counted.values()) == {1}


def test_a_later_step_that_fits_fills_what_the_next_one_leaves() -> None:
    long = replace(HITS[1], text="A sentence that is too long for this, " * 5)
    history = History(Steps([HITS[0], long, *HITS[2:]], [], ""), "s", UTC_ZONE, len)
    assert sorted(turn.said.record_id for turn in history.fitting(130).turns) == ["msg_4", "msg_5", "msg_9"]
