"""Checks that a model's answer is a summary. Pure.

Four checks are the specification's (length, compression, telltale patterns, word overlap); the one for control
characters is ours. They find poems, stories, lists and chatter, but not a wrong fact. The description of a flaw never
quotes the answer, so that it can be logged.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class ValidationPolicy:
    """The limits of a summary. The ratio and the overlap are in [0, 1]."""

    max_characters: int = 300
    max_ratio: float = 0.3
    min_overlap: float = 0.1


# Every pattern takes linear time: it is anchored, or its repeated part cannot contain what must follow.
_TELLTALES: Final = (
    (re.compile(r"\A(?:Here['’]s|Certainly|Let me|I['’]ll create|I can)", re.I), "begins like a chat reply"),
    (re.compile(r"```"), "contains a code block"),
    (re.compile(r"\ATitle:", re.I), "begins with a title"),
    (re.compile(r"\A(?:In fields where|Once upon|There was)", re.I), "begins like a story or a poem"),
    (re.compile(r"\*\*[A-Z][^*]+\*\*"), "contains a bold heading"),
    (re.compile(r"\A(?:Chapter|Scene|Act [IVX]+)", re.I), "begins like a chapter or a scene"),
    (re.compile(r"\A[0-9]+\."), "begins with a numbered list"),
    (re.compile(r"^[A-Z][a-z]+ [A-Z][a-z]+:$", re.M), "contains a character's cue, as in a play"),
)
_UNPRINTABLE: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
# Scripts that put no spaces between words, and Hangul, whose words are mostly shorter than four characters.
_DENSE_SCRIPT: Final = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]+"
)
_SHORTEST_WORD: Final = 4


def find_flaw(summary: str, source_texts: Sequence[str], policy: ValidationPolicy) -> str | None:
    """Describe the first flaw of the summary; None without a flaw.

    Lengths are in characters. A value equal to its limit is allowed. A blank summary is flawed, and so is any summary
    of blank sources.
    """
    return next(_flaws(summary, source_texts, policy), None)


def _flaws(summary: str, source_texts: Sequence[str], policy: ValidationPolicy) -> Iterator[str]:
    if not summary.strip():
        yield "is empty"
    if _UNPRINTABLE.search(summary):
        yield "contains control characters or lone surrogates"
    if len(summary) > policy.max_characters:
        yield f"is {len(summary)} characters long, more than {policy.max_characters}"
    source_length = sum(len(text) for text in source_texts)
    if source_length == 0 or len(summary) / source_length > policy.max_ratio:
        yield f"is {len(summary)} characters long, more than {policy.max_ratio:.0%} of its source's {source_length}"
    for pattern, telltale in _TELLTALES:
        if pattern.search(summary):
            yield telltale
    if not _overlaps(summary, source_texts, policy.min_overlap):
        yield f"shares less than {policy.min_overlap:.0%} of its words with its source"


def _overlaps(summary: str, source_texts: Sequence[str], min_overlap: float) -> bool:
    words = list(_words(summary.lower()))
    source = " ".join(source_texts).lower()
    found = 0
    for word, is_comparable in words:
        if found / len(words) >= min_overlap:
            break  # the first words of a true summary are enough, and the source may be megabytes
        found += is_comparable and word in source
    return found / len(words) >= min_overlap


def _words(text: str) -> Iterator[tuple[str, bool]]:
    """Yield each word, or pair of characters in a dense script, and whether it is long enough to compare."""
    for word in text.split():
        runs = _DENSE_SCRIPT.findall(word)
        if not runs:
            yield word, len(word) >= _SHORTEST_WORD
        for run in runs:
            for start in range(max(1, len(run) - 1)):
                yield run[start : start + 2], len(run) > 1
