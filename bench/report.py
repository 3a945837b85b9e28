"""How a benchmark reports: one JSON line on stdout, its progress on stderr, and what of the machine it measures.

It never prints a path: the line is the same from whatever folder it was run.
"""

import argparse
import json
import os
import platform
import resource
import sqlite3
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parent.parent
_KIB_IN_MB: Final = 1024


def options(doc: str | None) -> argparse.ArgumentParser:
    """The command line that every benchmark has; each adds its own sizes."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="smaller sizes: seconds instead of minutes")
    return parser


def emit(benchmark: str, figures: Mapping[str, Any]) -> None:
    """Print the line."""
    machine = {
        "cpus": os.cpu_count(),
        "system": platform.system(),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
    }
    print(json.dumps({"benchmark": benchmark, **rounded(figures), "machine": machine}), flush=True)


def progress(line: str) -> None:
    """Say on stderr how far it is."""
    print(line, file=sys.stderr, flush=True)


def rounded(figures: Any) -> Any:
    """The figures with four significant digits."""
    if isinstance(figures, float):
        return float(f"{figures:.4g}")
    if isinstance(figures, Mapping):
        return {name: rounded(value) for name, value in figures.items()}
    if isinstance(figures, list | tuple):
        return [rounded(value) for value in figures]
    return figures


def percentile(values: Iterable[float], share: float) -> float:
    """The smallest value that at least `share` of the values do not exceed; 0 of no values."""
    ordered = sorted(values)
    if not ordered:
        return 0.0
    return ordered[max(0, min(len(ordered) - 1, -int(-share * len(ordered) // 1) - 1))]


def latency(times_s: Sequence[float]) -> dict[str, Any]:
    """Milliseconds: the median, the tail and the longest."""
    return {
        "n": len(times_s),
        "p50_ms": 1000 * percentile(times_s, 0.5),
        "p95_ms": 1000 * percentile(times_s, 0.95),
        "p99_ms": 1000 * percentile(times_s, 0.99),
        "max_ms": 1000 * max(times_s, default=0.0),
    }


def peak_rss_mb() -> float:
    """The most memory that this process has had resident."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (_KIB_IN_MB**2 if sys.platform == "darwin" else _KIB_IN_MB)


def rss_mb(process_id: int) -> float | None:
    """The memory that a process has resident now; None where the system does not tell."""
    try:
        status = Path(f"/proc/{process_id}/status").read_text(encoding="utf-8")
    except OSError:
        return None
    resident = [line.split()[1] for line in status.splitlines() if line.startswith("VmRSS:")]
    return int(resident[0]) / _KIB_IN_MB if resident else None
