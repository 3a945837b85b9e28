"""Processor time and memory of a process with all its descendants, from /proc. None where the system has no /proc."""

import os
from pathlib import Path
from typing import Final

from bench.report import rss_mb

_PROC: Final = Path("/proc")
# Of /proc/PID/stat after the name: the parent, then the times of the process and of its children that have ended.
_PARENT, _TIMES = 1, slice(11, 15)


def children_of(process_id: int) -> set[int]:
    """The processes that this process has started and that live."""
    return {child for child, fields in _all().items() if int(fields[_PARENT]) == process_id}


def tree_of(process_id: int) -> set[int]:
    """The process and its descendants that live."""
    everyone = _all()
    tree, reached = {process_id}, {process_id}
    while reached:
        reached = {one for one, fields in everyone.items() if int(fields[_PARENT]) in reached} - tree
        tree |= reached
    return tree & everyone.keys()


def cpu_s(process_id: int) -> float | None:
    """Seconds of processor time of the tree so far, in the resolution of the system's clock ticks (usually 10 ms)."""
    everyone = _all()
    ticks = [int(ticks) for one in tree_of(process_id) if one in everyone for ticks in everyone[one][_TIMES]]
    return sum(ticks) / os.sysconf("SC_CLK_TCK") if ticks else None


def tree_rss_mb(process_id: int) -> float | None:
    """Resident memory of the tree. Pages that processes share count for each."""
    sizes = [size for one in tree_of(process_id) if (size := rss_mb(one)) is not None]
    return sum(sizes) if sizes else None


def _all() -> dict[int, list[str]]:
    """The fields of /proc/PID/stat after the name, of every process."""
    found = {}
    for folder in _PROC.glob("[0-9]*"):
        try:
            stat = (folder / "stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue  # it has ended
        found[int(folder.name)] = stat.rpartition(")")[2].split()
    return found
