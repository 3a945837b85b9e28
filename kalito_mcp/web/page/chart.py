"""Bars: of numbers by day, and of parts side by side, as shapes of an SVG. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final

WIDTH: Final = 600
HEIGHT: Final = 100
_GAP: Final = 0.25
"""The space between two bars, as a part of a bar with its space."""


@dataclass(frozen=True, slots=True)
class Block:
    """A rectangle of a bar, in units of `WIDTH` and `HEIGHT`, from the top left."""

    name: str
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class DayBar:
    """One day with its numbers by name, their sum, and its blocks from below."""

    day: str
    numbers: Mapping[str, int]
    total: int
    blocks: tuple[Block, ...]


def day_bars(numbers: Mapping[str, Mapping[str, int]], names: Sequence[str], *, days: int, today: str) -> list[DayBar]:
    """A bar for each of the last days, up to today; days without a number have none. `numbers` are by day, such as
    2026-11-28, and then by name; `names` are in the order of the blocks. The highest bar has the whole height."""
    last = date.fromisoformat(today)
    shown = [(last - timedelta(days=ago)).isoformat() for ago in range(days - 1, -1, -1)]
    sums = [sum(numbers.get(day, {}).values()) for day in shown]
    most, step = max(1, *sums), WIDTH / days
    bars: list[DayBar] = []
    for place, (day, total) in enumerate(zip(shown, sums, strict=True)):
        blocks: list[Block] = []
        below = 0.0
        for name in names:
            height = HEIGHT * numbers.get(day, {}).get(name, 0) / most
            if height > 0:
                below += height
                blocks.append(Block(name, place * step, HEIGHT - below, step * (1 - _GAP), height))
        bars.append(DayBar(day, numbers.get(day, {}), total, tuple(blocks)))
    return bars


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of a horizontal bar. `begin` and `width` are hundredths of the bar, and `value` is what it stands for."""

    name: str
    label: str
    value: float
    begin: float
    width: float


def side_by_side(parts: Iterable[tuple[str, str, float, float]]) -> tuple[Segment, ...]:
    """The segments of a bar from the left, each with its name, label, value and width. Those without a width are left
    out."""
    segments: list[Segment] = []
    begin = 0.0
    for name, label, value, width in parts:
        if width > 0:
            segments.append(Segment(name, label, value, begin, width))
            begin += width
    return tuple(segments)
