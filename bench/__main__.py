"""Run every benchmark in its short form, one after the other: `python -m bench`. `--full` runs the long forms.

`--campaigns` runs the campaigns instead, at full size. They try to break the guarantees of the memory.
Neither runs `bench.peers`, which installs other servers from the network.
"""

import argparse
import subprocess
import sys
from typing import Final

from bench.report import ROOT

BENCHMARKS: Final = (
    "record",
    "context",
    "evidence",
    "injection",
    "capture",
    "imports",
    "summaries",
    "pins",
    "kinds",
    "intent",
    "search",
    "round_trip",
    "calls",
    "start",
    "processes",
    "waits",
    "conversation",
    "recall",
    "growth",
    "elsewhere",
    "languages",
    "personal",
    "vectors",
    "graph",
    "recollection",
    "redaction",
    "hostile_texts",
    "clients",
    "http_overhead",
    "subscriptions",
    "instructions",
    "token_counters",
    "team",
)
CAMPAIGNS: Final = (
    "kill",
    "cut_purges",
    "canaries",
    "replaced_files",
    "snapshot_races",
    "spaces",
    "power_cut",
    "failover",
    "workday",
    "formats",
    "copies",
    "fuzz",
    "workers",
)
_LONGER: Final = {"search": ("--full",), "recall": ("--typos", "0.5", "--per-category", "--ablate")}
"""The extra arguments of the long forms."""


def main() -> int:
    """Run them all. The exit code is the number of failures."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--full", action="store_true", help="the long forms: about an hour")
    parser.add_argument("--campaigns", action="store_true", help="the campaigns, at full size: an hour or two")
    given = parser.parse_args()
    failed = 0
    for name in CAMPAIGNS if given.campaigns else BENCHMARKS:
        is_long = given.full or given.campaigns
        command = [sys.executable, "-m", f"bench.{name}", *(_LONGER.get(name, ()) if is_long else ["--quick"])]
        failed += subprocess.run(command, cwd=ROOT, check=False).returncode != 0
    return failed


if __name__ == "__main__":
    sys.exit(main())
