"""What an erasure did, and what it could not reach."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class PurgeReport:
    """`erased` are the ids of the records that are gone, also those that an earlier purge erased; `rewritten` what was
    made of them and is written anew without them (summaries, snapshots). `remaining` are the places that may still hold
    the words, with what to do there; while there are any, another `purge` of nothing finishes what can be finished.
    `is_owed`: some of it failed, and is tried again in the background.
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
