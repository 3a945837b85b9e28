"""The report of a purge: what it erased, and what it could not reach."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class PurgeReport:
    """`erased` are the ids of the records that are gone, including earlier purges. `rewritten` names the
    summaries and snapshots that were rewritten without them. `remaining` maps the places that may still contain the
    words to what to do there; another `purge` of no records retries these. `is_owed`: some of it failed, and the
    background tries again. `elsewhere` says, for the operator, where the words stay for a while outside the tables.
    """

    erased: tuple[str, ...]
    rewritten: tuple[str, ...]
    remaining: Mapping[str, str]
    is_owed: bool = False
    elsewhere: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {
            "erased": list(self.erased),
            "rewritten": list(self.rewritten),
            "remaining": dict(self.remaining),
        }


@dataclass(frozen=True, slots=True)
class ForgetRequest:
    """What to forget, or to erase: everything that speaks of a subject, and everything with an identifier."""

    about: str | None = None
    identifier: str | None = None
    is_purge: bool = False


@dataclass(frozen=True, slots=True)
class FoundRecord:
    """One record of a `ForgetPreview`. `text` is its beginning."""

    id: str
    text: str


@dataclass(frozen=True, slots=True)
class ForgetPreview:
    """What a `ForgetRequest` would forget or erase, oldest first. `token` stands for exactly these records, as they
    are; None without records."""

    records: tuple[FoundRecord, ...]
    token: str | None
