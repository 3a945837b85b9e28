"""Why a hit is there, or why there is none, in words: the reasons behind its parts, the largest first. Pure."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from kalito_mcp.retrieval.answerability import unmatched_words
from kalito_mcp.retrieval.collector import Collector
from kalito_mcp.retrieval.question import Question
from kalito_mcp.retrieval.scored_candidate import ScoredCandidate
from kalito_mcp.retrieval.weights import NEGATIVE
from kalito_mcp.text.analysis import is_spelled_with_spaces
from kalito_mcp.text.plurals import plural

NOTHING: Final = "nothing matches this query"
_MAX_WORDS: Final = 6
_MAX_UNMATCHED: Final = 6
"""Words of the query that a note names."""

_MIN_PART: Final = 0.005
"""Smaller parts are not worth a reason."""

_MIN_SHARE: Final = 0.1
"""Of a hit's score. A part that nearly every hit has a little of is no reason for one."""


def explain(scored: ScoredCandidate) -> str:
    """Each reason with its part of the score: says "ferry" (+0.17); "moss" said just before or after (+0.12)."""
    parts = sorted(_merged_parts(scored).items(), key=lambda part: -abs(part[1]))
    least = max(_MIN_PART, _MIN_SHARE * scored.score)
    reasons = [
        (name, _REASONS[name](scored), value)
        for name, value in parts
        if abs(value) >= (_MIN_PART if name in NEGATIVE else least)
    ]
    worded = [(name in NEGATIVE, f"{reason} ({value:+.2f})") for name, reason, value in reasons if reason]
    return "; ".join(reason for _, reason in sorted(worded, key=lambda one: one[0]))


def _merged_parts(scored: ScoredCandidate) -> Mapping[str, float]:
    """The parts, with those added together that have the same reason: what the text says itself counts in its
    neighbours, its session and its spelling too."""
    parts = dict(scored.parts)
    same_reason = [
        name
        for name, is_of_text in (
            ("neighbours", not scored.neighbour_terms),
            ("session", scored.is_alone),
            ("spelling", not _unmatched(scored)),
        )
        if is_of_text
    ]
    if "speaker" in parts and not scored.analyzed.matched_words:
        parts["speaker"] += sum(parts.pop(name, 0.0) for name in ("lexical", *same_reason))
    elif "lexical" in parts:
        parts["lexical"] += sum(parts.pop(name, 0.0) for name in same_reason)
    return parts


def _unmatched(scored: ScoredCandidate) -> list[str]:
    """The words of the query that the text contains in no form."""
    question = scored.question
    return [question.surface[term] for term in question.terms if term not in scored.terms]


def _spelling(scored: ScoredCandidate) -> str:
    unmatched = _quoted(_unmatched(scored))
    return f"has some letters of {unmatched}" if unmatched else ""


def _lexical(scored: ScoredCandidate) -> str:
    matched = scored.analyzed.matched_words
    if not matched:
        return ""
    return "says " + _joined(
        f'"{word}"' + (f' for "{scored.question.surface[term]}"' if term in scored.question.corrected_terms else "")
        for term, word in matched.items()
    )


def _neighbours(scored: ScoredCandidate) -> str:
    near = _quoted(scored.question.surface[term] for term in scored.neighbour_terms)
    return f"{near} said just before or after" if near else ""


def _hyponym(scored: ScoredCandidate) -> str:
    return "mentions " + _joined(
        f"{scored.question.surface[kind]}: {_quoted(found)}" for kind, found in scored.analyzed.hyponym_words.items()
    )


def _date(scored: ScoredCandidate) -> str:
    day = scored.question.zone.date(scored.candidate.created_at)
    return f"said on {day}, in or near the time you named" if scored.is_of_named_time else ""


_REASONS: Final[Mapping[str, Callable[[ScoredCandidate], str]]] = {
    "lexical": _lexical,
    "neighbours": _neighbours,
    "answers": lambda _: "follows a question like yours",
    "session": lambda _: "other messages of its conversation match",
    "spelling": _spelling,
    "hyponym": _hyponym,
    "speaker": lambda scored: f"said by {scored.candidate.name}, whom the query names",
    "date": _date,
    "first_person": lambda _: "speaks in the first person",
    "semantic": lambda _: "similar in meaning",
    "neighbour_semantic": lambda _: "a message before or after it is similar in meaning",
    "assistant": lambda _: "lowered: the assistant said it",
}


def _quoted(found: Iterable[str]) -> str:
    return _joined(f'"{word}"' for word in dict.fromkeys(found))


def _joined(found: Iterable[str]) -> str:
    listed = list(found)
    return ", ".join(listed[:_MAX_WORDS]) + (", ..." if len(listed) > _MAX_WORDS else "")


def why_empty(question: Question, found: Collector, *, is_all: bool) -> str | None:
    """Why there is no hit, as far as that is known."""
    noise = found.noise
    if found.excluded_count:
        return f'your "-word" excluded {plural(found.excluded_count, "record")}; search without it to see more'
    if not is_all or (found.read_count and not noise):
        return None
    if question.asks_time_alone:
        return "nothing was said at that time, and nothing mentions it"
    unmatched = unmatched_words(noise) if noise else tuple(question.surface[term] for term in question.terms)
    # In scripts without spaces, terms are not words that a reader would recognise.
    listed = ", ".join(f'"{word}"' for word in unmatched[:_MAX_UNMATCHED] if is_spelled_with_spaces(word))
    return NOTHING + (f"; not found: {listed}" if listed else "")
