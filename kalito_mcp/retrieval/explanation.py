"""Why a hit is there, in words: what its parts are made of, the largest first. Pure."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from kalito_mcp.domain.time import to_iso
from kalito_mcp.retrieval.ranking import Scored
from kalito_mcp.retrieval.weights import AGAINST

_MOST_WORDS: Final = 6
_LEAST_PART: Final = 0.005
"""What is less explains nothing."""

_LEAST_SHARE: Final = 0.1
"""Of a hit's score: what nearly every hit has a little of is no reason for one."""


def explained(scored: Scored) -> str:
    """Each reason with its part of the score: says "ferry" (+0.17); "moss" said just before or after (+0.12)."""
    parts = sorted(_gathered(scored).items(), key=lambda part: -abs(part[1]))
    least = max(_LEAST_PART, _LEAST_SHARE * scored.score)
    reasons = [
        (name, _REASONS[name](scored), value)
        for name, value in parts
        if abs(value) >= (_LEAST_PART if name in AGAINST else least)
    ]
    told = [(name in AGAINST, f"{reason} ({value:+.2f})") for name, reason, value in reasons if reason]
    return "; ".join(reason for _, reason in sorted(told, key=lambda one: one[0]))


def _gathered(scored: Scored) -> Mapping[str, float]:
    """The parts, those that have one reason as one: what the text itself says counts for its surroundings, for its
    conversation and for its letters too."""
    parts = dict(scored.parts)
    also = [
        name
        for name, is_its_own in (
            ("context", not scored.near),
            ("session", scored.surroundings.is_alone(scored.place)),
            ("spelling", not _unsaid(scored)),
        )
        if is_its_own
    ]
    if "speaker" in parts and not scored.reading.said:
        parts["speaker"] += sum(parts.pop(name, 0.0) for name in ("own", *also))
    elif "own" in parts:
        parts["own"] += sum(parts.pop(name, 0.0) for name in also)
    return parts


def _unsaid(scored: Scored) -> list[str]:
    """The words of the query that the text does not say in any form."""
    question = scored.question
    return [question.written[term] for term in question.terms if term not in scored.reading.counts]


def _spelling(scored: Scored) -> str:
    unsaid = _quoted(_unsaid(scored))
    return f"some letters of {unsaid}" if unsaid else ""


def _own(scored: Scored) -> str:
    said = scored.reading.said
    if not said:
        return ""
    return "says " + _listed(
        f'"{word}"' + (f' for "{scored.question.written[term]}"' if term in scored.question.corrected_terms else "")
        for term, word in said.items()
    )


def _context(scored: Scored) -> str:
    near = _quoted(scored.question.written[term] for term in scored.near)
    return f"{near} said just before or after" if near else ""


def _kind(scored: Scored) -> str:
    return "tells of " + _listed(
        f"{scored.question.written[kind]}: {_quoted(found)}" for kind, found in scored.reading.instances.items()
    )


def _date(scored: Scored) -> str:
    day = to_iso(scored.candidate.created_at)[:10]
    return f"said on {day}, in or near the time that is named" if scored.is_of_the_time else ""


_REASONS: Final[Mapping[str, Callable[[Scored], str]]] = {
    "own": _own,
    "context": _context,
    "session": lambda _: "other messages of its conversation match",
    "spelling": _spelling,
    "kind": _kind,
    "speaker": lambda scored: f"said by {scored.candidate.name}, who is asked about",
    "date": _date,
    "time": lambda _: "tells a time, and the query asks when",
    "number": lambda _: "has a number, and the query asks for one",
    "first_person": lambda _: "speaks in the first person",
    "statement": lambda _: "states a wish, a plan or a rule",
    "meaning": lambda _: "alike in meaning",
    "gist": lambda _: "what is said around it is alike in meaning",
    "question": lambda _: "lowered, for it only asks",
    "assistant": lambda _: "lowered, for the assistant said it",
}


def _quoted(found: Iterable[str]) -> str:
    return _listed(f'"{word}"' for word in dict.fromkeys(found))


def _listed(found: Iterable[str]) -> str:
    listed = list(found)
    return ", ".join(listed[:_MOST_WORDS]) + (", ..." if len(listed) > _MOST_WORDS else "")
