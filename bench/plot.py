"""Draw costs against sizes as an SVG, without any library: panels side by side, both axes logarithmic. Pure.

The plot has no background, and its text follows the reader's light or dark scheme. Every line ends with its last value,
so that no reader must guess between the ticks.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

Points = Sequence[tuple[float, float]]

# Readers can tell the first two apart on white and on black, also without seeing red or green.
_COLOURS: Final = ("#2f81f7", "#d4862a", "#8957e5", "#4f9d69", "#818b98")
_PANEL_WIDTH, _PANEL_HEIGHT = 200, 150
_LEFT, _TOP, _GAP, _BOTTOM, _RIGHT = 52, 52, 92, 42, 48
_STEPS: Final = (1.0, 2.0, 5.0)
_MOST_TICKS: Final = 6
_DECADE: Final = 10
# A size of 10^5 and a few records more must not open the next decade.
_NEARLY: Final = 0.02
_LETTERS: Final = ((10**9, "G"), (10**6, "M"), (10**3, "k"))
_STYLE: Final = """
text { font: 11px system-ui, sans-serif; fill: #3d444d; }
.title { font-weight: 600; }
.grid { stroke: #818b98; stroke-opacity: .3; }
.line { fill: none; stroke-width: 2; stroke-linejoin: round; }
@media (prefers-color-scheme: dark) { text { fill: #c9d1d9; } }
"""


@dataclass(frozen=True, slots=True)
class Panel:
    """One quantity: lines by name, each with points (size, value). Points that are not above 0 are left out."""

    title: str
    lines: Mapping[str, Points]


@dataclass(frozen=True, slots=True)
class Axis:
    """A logarithmic axis: its place and its ticks. The first and the last tick are its ends."""

    ticks: tuple[float, ...]
    start: float
    length: float

    def at(self, value: float) -> float:
        """The position of a value."""
        low, high = math.log10(self.ticks[0]), math.log10(self.ticks[-1])
        return self.start + self.length * (math.log10(value) - low) / (high - low)


def plot(panels: Sequence[Panel], *, across: str) -> str:
    """Draw the SVG. `across` says what the sizes are. A name has the same colour in every panel.

    Raises:
        ValueError: no panel has a point.
    """
    shown = [panel for panel in panels if any(_above_zero(points) for points in panel.lines.values())]
    if not shown:
        raise ValueError("nothing to plot; measure at least one size")
    names = list(dict.fromkeys(name for panel in shown for name in panel.lines))
    colours = {name: _COLOURS[place % len(_COLOURS)] for place, name in enumerate(names)}
    width = _LEFT + len(shown) * _PANEL_WIDTH + (len(shown) - 1) * _GAP + _RIGHT
    height = _TOP + _PANEL_HEIGHT + _BOTTOM
    label = ", ".join(panel.title for panel in shown) + f" against {across}"
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
            f' role="img" aria-label="{escape(label)}">',
            f"<style>{_STYLE}</style>",
            *_legend(colours),
            *(
                line
                for place, panel in enumerate(shown)
                for line in _panel(panel, _LEFT + place * (_PANEL_WIDTH + _GAP), colours, across)
            ),
            "</svg>\n",
        ]
    )


def ticks(values: Sequence[float]) -> tuple[float, ...]:
    """Round values from below the least to above the greatest, over at least a decade.

    They are 1, 2 and 5 of each decade, or only whole decades if there would be too many.
    """
    low, high = min(values), max(values)
    decades = range(math.floor(math.log10(low)) - 2, math.ceil(math.log10(high)) + 2)
    for steps in (_STEPS, _STEPS[:1]):
        every = [step * 10.0**decade for decade in decades for step in steps]
        first = max(place for place, tick in enumerate(every) if tick <= low * (1 + 1e-9))
        last = min(place for place, tick in enumerate(every) if tick >= high * (1 - 1e-9))
        # A narrower axis would exaggerate small differences.
        while every[last] < _DECADE * every[first] * (1 - 1e-9):
            first -= 1
        chosen = tuple(every[first : last + 1])
        if len(chosen) <= _MOST_TICKS:
            break
    return chosen


def short(value: float) -> str:
    """A number with two or three digits and a letter for thousands: `8.6`, `350`, `10k`, `1M`."""
    for size, letter in _LETTERS:
        if value >= size * (1 - 5e-4):
            return f"{value / size:.3g}{letter}"
    return f"{value:.2g}" if value < 100 else f"{value:.0f}"


def _panel(panel: Panel, left: float, colours: Mapping[str, str], across: str) -> Iterator[str]:
    lines = {name: _above_zero(points) for name, points in panel.lines.items()}
    x_axis = Axis(_decades([x for points in lines.values() for x, _ in points]), left, _PANEL_WIDTH)
    y_axis = Axis(ticks([y for points in lines.values() for _, y in points]), _TOP + _PANEL_HEIGHT, -_PANEL_HEIGHT)
    yield _text(left, _TOP - 12, panel.title, "start", ' class="title"')
    for tick in y_axis.ticks:
        y = y_axis.at(tick)
        yield f'<path class="grid" d="M{left:.1f} {y:.1f}h{_PANEL_WIDTH}"/>'
        yield _text(left - 6, y + 4, short(tick), "end")
    for tick in x_axis.ticks:
        yield _text(x_axis.at(tick), _TOP + _PANEL_HEIGHT + 16, short(tick), "middle")
    yield _text(left + _PANEL_WIDTH / 2, _TOP + _PANEL_HEIGHT + 33, across, "middle")
    labels: list[tuple[float, float, str, str]] = []
    for name, points in lines.items():
        if not points:
            continue
        places = [(x_axis.at(x), y_axis.at(y)) for x, y in points]
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
        yield f'<path class="line" stroke="{colours[name]}" d="M{path}"/>'
        for x, y in places:
            yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colours[name]}"/>'
        x, y = places[-1]
        labels.append((y, x, short(points[-1][1]), colours[name]))
    ends: list[float] = []
    # From the top down, so that a label that must move stays below the larger ones.
    for y, x, value, colour in sorted(labels):
        ends.append(_apart(y, ends))
        yield _text(x + 7, ends[-1] + 4, value, "start", f' style="fill:{colour}"')


def _legend(colours: Mapping[str, str]) -> Iterator[str]:
    left: float = _LEFT
    for name, colour in colours.items():
        yield f'<path class="line" stroke="{colour}" d="M{left:.0f} 14h16"/>'
        yield _text(left + 22, 18, name, "start")
        left += 44 + 7 * len(name)


def _text(x: float, y: float, text: str, anchor: str, more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>{escape(text)}</text>'


def _apart(place: float, taken: Sequence[float]) -> float:
    """The position, or one below it if a label is already there."""
    while any(abs(place - other) < 12 for other in taken):
        place += 3
    return place


def _decades(values: Sequence[float]) -> tuple[float, ...]:
    low = math.floor(math.log10(min(values)) + _NEARLY)
    high = max(low + 1, math.ceil(math.log10(max(values)) - _NEARLY))
    return tuple(10.0**decade for decade in range(low, high + 1))


def _above_zero(points: Points) -> list[tuple[float, float]]:
    return [(x, y) for x, y in points if x > 0 and y > 0]
