"""The plot is complete, and its axes contain every value."""

import re
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.plot import Axis, Panel, plot, short, ticks

VALUES = st.lists(st.floats(min_value=1e-6, max_value=1e12), min_size=1, max_size=5)


@given(VALUES)
def test_the_ticks_enclose_the_values_and_ascend(values: list[float]) -> None:
    found = ticks(values)
    assert found[-1] >= 10 * found[0] * (1 - 1e-6)
    assert list(found) == sorted(set(found))
    assert found[0] <= min(values) * (1 + 1e-6)
    assert found[-1] >= max(values) * (1 - 1e-6)


def test_equal_factors_are_equal_distances() -> None:
    axis = Axis((1.0, 10.0, 100.0), start=0, length=200)
    assert [round(axis.at(value)) for value in (1, 10, 100)] == [0, 100, 200]


@pytest.mark.parametrize(
    ("value", "shown"),
    [(8.62, "8.6"), (0.5, "0.5"), (350.4, "350"), (10_000, "10k"), (999_999, "1M"), (2.5e9, "2.5G")],
)
def test_numbers_are_short(value: float, shown: str) -> None:
    assert short(value) == shown


def test_every_line_ends_with_its_value_and_names_are_escaped() -> None:
    panels = [
        Panel("p50 <ms>", {"kalito": [(1e4, 2), (1e5, 4.4)], "FTS5 & co": [(1e4, 3), (1e5, 44)]}),
        Panel("RSS, MB", {"kalito": [(1e4, 70), (1e5, 81)]}),
    ]
    drawn = ET.fromstring(plot(panels, across="records"))  # noqa: S314 - our own
    texts = [text.text for text in drawn.iter("{http://www.w3.org/2000/svg}text")]
    assert {"p50 <ms>", "FTS5 & co", "4.4", "44", "81", "records"} <= set(texts)
    assert len(list(drawn.iter("{http://www.w3.org/2000/svg}circle"))) == 6


def test_some_records_more_than_a_power_of_ten_open_no_further_decade() -> None:
    drawn = plot([Panel("p50", {"kalito": [(10_240, 2), (100_352, 4)]})], across="records")
    assert ">100k<" in drawn
    assert ">1M<" not in drawn


def test_without_a_point_there_is_no_plot() -> None:
    with pytest.raises(ValueError, match="at least one size"):
        plot([Panel("p50", {"kalito": [(1e4, 0.0)]})], across="records")


def test_labels_that_must_move_keep_the_order_of_their_values() -> None:
    lines = {name: [(1_000, 1), (5_000, value)] for name, value in (("a", 31), ("b", 64), ("c", 10), ("d", 49))}
    drawn = plot([Panel("cost", lines)], across="turns")
    labels = re.findall(r'y="([\d.]+)" text-anchor="start" style="fill:[^"]*">(\d+)<', drawn)
    assert [value for _, value in sorted(labels, key=lambda label: float(label[0]))] == ["64", "49", "31", "10"]
