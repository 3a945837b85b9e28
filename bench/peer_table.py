"""The rows of `bench.peers` as a Markdown table and as a plot. Pure."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from bench.plot import Panel, plot

Row = Mapping[str, Any]

_COLUMNS: Final = {
    "server": "name",
    "cold start: s / CPU s": "cold_start",
    "import, turns/s": "import_per_s",
    "store one, p50 / p95 ms": "store",
    "search p50 / CPU ms": "search",
    "found, question / keyword %": "found",
    "an answer, KB": "answer",
    "RSS idle / full, MB": "rss",
    "disk / text": "disk_ratio",
}
_PLOTTED: Final[Mapping[str, Callable[[Row], float]]] = {
    "search: processor time, ms": lambda row: row["question"]["cpu_ms"],
    "store one, p50, ms": lambda row: row["store"]["p50_ms"],
    "an answer by keyword, KB": lambda row: row["keyword"]["text_kb"],
}


def table(rows: Sequence[Row]) -> Iterator[str]:
    """The rows of one size as a Markdown table."""
    yield f"| {' | '.join(_COLUMNS)} |"
    yield "|" + "---|" * len(_COLUMNS)
    for row in rows:
        if "why" in row:
            yield f"| {row['name']} | {row['why']} |" + " |" * (len(_COLUMNS) - 2)
        else:
            yield f"| {' | '.join(_cell(row, column) for column in _COLUMNS.values())} |"


def _cell(row: Row, column: str) -> str:
    pairs = {
        "cold_start": (row["cold_start_s"], row["cold_start_cpu_s"]),
        "store": (row["store"]["p50_ms"], row["store"]["p95_ms"]),
        "search": (row["question"]["p50_ms"], row["question"]["cpu_ms"]),
        "found": (row["question"]["found"], row["keyword"]["found"]),
        "answer": (row["question"]["text_kb"], row["keyword"]["text_kb"]),
        "rss": (row["rss_idle_mb"], row["rss_full_mb"]),
    }
    values = pairs.get(column, (row.get(column),))
    return " / ".join(value if isinstance(value, str) else _number(value) for value in values)


def _number(value: float | None) -> str:
    if value is None:
        return "?"
    return f"{value:.0f}" if value >= 10 else f"{value:.2g}"


def drawn(rows: Sequence[Row]) -> str:
    """The costs against the size as an SVG."""
    measured = [row for row in rows if "why" not in row]
    names = list(dict.fromkeys(row["name"] for row in measured))
    panels = [
        Panel(title, {name: [(row["turns"], of(row)) for row in measured if row["name"] == name] for name in names})
        for title, of in _PLOTTED.items()
    ]
    return plot(panels, across="turns")
