"""How a benchmark reports: one JSON line on stdout, its progress on stderr, and figures of the machine.

It never prints a path, so that the line does not depend on the folder.
"""

import argparse
import json
import os
import platform
import resource
import sqlite3
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parent.parent
_KIB_IN_MB: Final = 1024


def options(doc: str | None) -> argparse.ArgumentParser:
    """The command line of every benchmark. Each adds its own options."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="smaller sizes: seconds instead of minutes")
    return parser


def in_rounds(name: str, doc: str | None, campaign: Callable[..., Mapping[str, Any]], *, usual: int, quick: int) -> int:
    """The command line of a campaign of rounds. The exit code is 1 if it found a violation."""
    parser = options(doc)
    parser.add_argument("--rounds", type=int, help=f"default {usual}, quick {quick}")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    figures = campaign(rounds=given.rounds or (quick if given.quick else usual), seed=given.seed)
    emit(name, figures)
    return int(figures["violations"] > 0)


def emit(benchmark: str, figures: Mapping[str, Any]) -> None:
    """Print the JSON line."""
    machine = {
        "cpus": os.cpu_count(),
        "system": platform.system(),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
    }
    print(json.dumps({"benchmark": benchmark, **rounded(figures), "machine": machine}), flush=True)


def progress(line: str) -> None:
    """Print a progress line to stderr."""
    print(line, file=sys.stderr, flush=True)


def rounded(figures: Any) -> Any:
    """The figures, rounded to four significant digits."""
    if isinstance(figures, float):
        return float(f"{figures:.4g}")
    if isinstance(figures, Mapping):
        return {name: rounded(value) for name, value in figures.items()}
    if isinstance(figures, list | tuple):
        return [rounded(value) for value in figures]
    return figures


def percentile(values: Iterable[float], share: float) -> float:
    """The smallest value that at least `share` of the values do not exceed. 0 if there are no values."""
    ordered = sorted(values)
    if not ordered:
        return 0.0
    return ordered[max(0, min(len(ordered) - 1, -int(-share * len(ordered) // 1) - 1))]


def latency(times_s: Sequence[float]) -> dict[str, Any]:
    """Count, percentiles and maximum, in milliseconds."""
    return {
        "n": len(times_s),
        "p50_ms": 1000 * percentile(times_s, 0.5),
        "p95_ms": 1000 * percentile(times_s, 0.95),
        "p99_ms": 1000 * percentile(times_s, 0.99),
        "max_ms": 1000 * max(times_s, default=0.0),
    }


def peak_rss_mb() -> float:
    """The peak resident memory of this process."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (_KIB_IN_MB**2 if sys.platform == "darwin" else _KIB_IN_MB)


def rss_mb(process_id: int) -> float | None:
    """The resident memory of a process now. None if the system does not report it."""
    try:
        status = Path(f"/proc/{process_id}/status").read_text(encoding="utf-8")
    except OSError:
        return None
    resident = [line.split()[1] for line in status.splitlines() if line.startswith("VmRSS:")]
    return int(resident[0]) / _KIB_IN_MB if resident else None
