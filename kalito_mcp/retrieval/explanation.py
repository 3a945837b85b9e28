"""Why a hit is there, in words: what its parts are made of, the largest first. Pure."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from kalito_mcp.domain.time import to_iso
from kalito_mcp.retrieval.ranking import Scored
from kalito_mcp.retrieval.weights import AGAINST

_MOST_WORDS: Final = 6
_LEAST_PART: Final = 0.005
"""Of the score: what is less explains nothing."""


def explained(scored: Scored) -> str:
    """One sentence, such as: says "ferry"; "moss" said just before or after; said by Ann, who is asked about."""
    parts = sorted(scored.parts.items(), key=lambda part: -abs(part[1]))
    reasons = [(name, _REASONS[name](scored)) for name, value in parts if abs(value) >= _LEAST_PART]
    speaking = [reason for name, reason in reasons if reason and name not in AGAINST]
    return "; ".join(speaking + [f"less, for it {reason}" for name, reason in reasons if name in AGAINST])


def _own(scored: Scored) -> str:
    said = scored.reading.said
    return "says " + _listed(
        f'"{said[term]}"' + (f' (for "{scored.written[term]}")' if term in scored.corrected else "")
        for term in scored.reading.counts
    )


def _context(scored: Scored) -> str:
    near = _quoted(scored.written[term] for term in scored.near)
    return f"{near} said just before or after" if near else ""


def _kind(scored: Scored) -> str:
    return "tells of " + _listed(
        f"{scored.written[kind]}: {_quoted(found)}" for kind, found in scored.reading.instances.items()
    )


_REASONS: Final[Mapping[str, Callable[[Scored], str]]] = {
    "own": _own,
    "context": _context,
    "session": lambda _: "its conversation speaks of this",
    "spelling": lambda _: "worded like the query",
    "kind": _kind,
    "speaker": lambda scored: f"said by {scored.candidate.name}, who is asked about",
    "date": lambda scored: f"said on {to_iso(scored.candidate.created_at)[:10]}, in or near the time that is named",
    "time": lambda _: "tells a time, and the query asks when",
    "number": lambda _: "has a number, and the query asks for one",
    "first_person": lambda _: "tells of oneself",
    "statement": lambda _: "states a wish, a plan or a rule",
    "meaning": lambda _: "alike in meaning",
    "gist": lambda _: "what is said around it is alike in meaning",
    "question": lambda _: "only asks",
    "assistant": lambda _: "is the assistant's, who is not asked about",
}


def _quoted(found: Iterable[str]) -> str:
    return _listed(f'"{word}"' for word in dict.fromkeys(found))


def _listed(found: Iterable[str]) -> str:
    listed = list(found)
    return ", ".join(listed[:_MOST_WORDS]) + (", ..." if len(listed) > _MOST_WORDS else "")
