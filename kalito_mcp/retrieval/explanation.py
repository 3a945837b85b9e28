"""Explains a hit, or why there are no hits: the reasons behind the parts of its score, the largest first. Pure."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from kalito_mcp.retrieval.collector import Collector
from kalito_mcp.retrieval.question import Question
from kalito_mcp.retrieval.scored_candidate import ScoredCandidate
from kalito_mcp.text.analysis import is_spelled_with_spaces
from kalito_mcp.text.plurals import plural

NOTHING: Final = "nothing matches this query"
_MAX_WORDS: Final = 6
_MIN_PART: Final = 0.005
"""Smaller parts are not worth a reason."""


def explain(scored: ScoredCandidate) -> str:
    """Each reason with its part of the score: says "ferry" (+0.17); similar in meaning (+0.12)."""
    parts = sorted(scored.parts.items(), key=lambda part: -part[1])
    worded = [(_REASONS[name](scored), value) for name, value in parts if abs(value) >= _MIN_PART]
    return "; ".join(f"{reason} ({value:+.2f})" for reason, value in worded if reason)


def _words(scored: ScoredCandidate) -> str:
    """The words of the question in the text, or else in the turns around it."""
    surface, corrected = scored.question.surface, scored.question.corrected_terms
    said = [
        f'"{word}"' + (f' for "{surface[term]}"' if term in corrected else "")
        for term, word in scored.matched_words.items()
    ]
    near = _quoted(surface[term] for term in scored.nearby)
    own, around = _joined(said) and f"says {_joined(said)}", near and f"{near} said just before or after"
    return "; ".join(filter(None, (own, around))) or "other messages of its conversation have your words"


def _time(scored: ScoredCandidate) -> str:
    day = scored.question.zone.date(scored.candidate.created_at)
    return f"said on {day}, in or near the time you named"


_REASONS: Final[Mapping[str, Callable[[ScoredCandidate], str]]] = {
    "words": _words,
    "meaning": lambda _: "similar in meaning",
    "nearby": lambda _: "a message before or after it is similar in meaning",
    "time": _time,
    "speaker": lambda scored: f"said by {scored.candidate.name or 'the assistant'}, whom the query names",
    "assistant": lambda _: "lowered: the assistant said it",
}


def _quoted(found: Iterable[str]) -> str:
    return _joined(f'"{word}"' for word in dict.fromkeys(found))


def _joined(found: Iterable[str]) -> str:
    listed = list(found)
    return ", ".join(listed[:_MAX_WORDS]) + (", ..." if len(listed) > _MAX_WORDS else "")


def why_empty(question: Question, found: Collector, *, is_all: bool) -> str | None:
    """Why there are no hits, as far as that is known."""
    if found.excluded_count:
        return f'your "-word" excluded {plural(found.excluded_count, "record")}; search without it to see more'
    if not is_all or found.read_count:
        return None
    if question.asks_time_alone:
        return "nothing was said at that time, and nothing mentions it"
    # In scripts without spaces, terms are not words that a reader would recognise.
    unmatched = [word for term in question.terms if is_spelled_with_spaces(word := question.surface[term])]
    return NOTHING + (f"; not found: {_quoted(unmatched)}" if unmatched else "")
