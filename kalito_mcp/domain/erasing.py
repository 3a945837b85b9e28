"""What a purge erased, and what it could not reach."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class PurgeReport:
    """`erased` are the ids of the records that are gone, including those of earlier purges. `rewritten` names the
    summaries and snapshots that were rewritten without them. `remaining` maps the places that may still contain the
    words to what to do there; another `purge` of no records retries these. `is_owed`: some of it failed, and the
    background tries again.
    """

    erased: tuple[str, ...]
    rewritten: tuple[str, ...]
    remaining: Mapping[str, str]
    is_owed: bool = False

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {
            "erased": list(self.erased),
            "rewritten": list(self.rewritten),
            "remaining": dict(self.remaining),
        }
