"""Bars by day: each number has its place and its height."""

from hypothesis import given
from hypothesis import strategies as st

from kalito_mcp.web.page.chart import HEIGHT, WIDTH, day_bars

NAMES = ("one", "two")


def test_each_of_the_last_days_has_a_bar_with_its_blocks_on_each_other() -> None:
    numbers = {"2026-02-28": {"one": 30, "two": 10}, "2026-03-01": {"two": 20}, "2025-01-01": {"one": 900}}
    bars = day_bars(numbers, NAMES, days=3, today="2026-03-01")
    assert [(bar.day, bar.total) for bar in bars] == [("2026-02-27", 0), ("2026-02-28", 40), ("2026-03-01", 20)]
    assert [[(one.name, one.x, one.y, one.height) for one in bar.blocks] for bar in bars] == [
        [],
        [("one", 200, 25, 75), ("two", 200, 0, 25)],
        [("two", 400, 50, 50)],
    ]


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=30))
def test_no_block_leaves_the_picture(counts: list[int]) -> None:
    numbers = {f"2026-03-{day:02}": {"one": count, "two": count // 2} for day, count in enumerate(counts, 1)}
    for bar in day_bars(numbers, NAMES, days=30, today="2026-03-30"):
        for block in bar.blocks:
            assert block.x >= 0
            assert block.x + block.width <= WIDTH
            assert block.y > -1e-9
            assert block.y + block.height <= HEIGHT + 1e-9
