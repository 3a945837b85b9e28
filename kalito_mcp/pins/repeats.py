"""Which lasting pins say the same as another, or are superseded by a newer one. Pure.

One pin supersedes another only if both state the value of one thing that has a single value at a time: where somebody
lives or works, a name, an age, an address, a favourite. All other pins stay side by side. The rules read English.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final, TypeVar

from kalito_mcp.domain.known import KnownRecord, OfferedPin
from kalito_mcp.pins.person import ASKED_TO_REMEMBER
from kalito_mcp.pins.reach import as_said
from kalito_mcp.text.analysis import indexed_words, stem
from kalito_mcp.text.lazy_pattern import lazy

_FUNCTION_WORDS: Final = frozenset(
    "a an the and also is are am was be been being has have had i me my of that this to so very really now".split()
)
"""Two texts that differ in these alone say the same."""

_SPEAKER: Final = lazy(r"^([A-Z][\w'.-]{0,40}(?: [A-Z][\w'.-]{0,40})?): ")
_SINGLE_VALUED: Final = (
    ("home", lazy(r"\bI (?:currently |now |just |recently )?(?:live in|moved to)\b|\bI(?:'m| am) living in\b")),
    ("work", lazy(r"\bI (?:currently |now )?work (?:at|for)\b")),
    ("profession", lazy(r"\bI (?:currently |now )?work as\b")),
    ("age", lazy(r"\bI(?:'m| am) \d{1,3} years old\b")),
    ("home", lazy(r"^([A-Z][\w'-]{1,40}) (?:now )?lives in\b")),
    (
        "of",
        lazy(
            r"\b[Mm]y ((?:[\w-]{1,20} ){0,2}(?:name|e-?mail|phone|number|address|job|employer|birthday|age|"
            r"time ?zone|pronouns|native language|favou?rite (?:[\w-]{1,20} )?[\w-]{1,20}))(?: address| number)?"
            r"(?: is| are|:) ",
            re.IGNORECASE,
        ),
    ),
)

Stated = TypeVar("Stated", KnownRecord, OfferedPin)


def superseded(records: Iterable[KnownRecord]) -> frozenset[str]:
    """The ids of the records of which a newer one states another value. Of two of one moment neither is."""
    newest: dict[str, int] = {}
    stated: list[tuple[str, KnownRecord]] = []
    for record in records:
        thing = _thing(record.text)
        if thing is not None:
            stated.append((thing, record))
            newest[thing] = max(newest.get(thing, record.created_at), record.created_at)
    return frozenset(record.record_id for thing, record in stated if record.created_at < newest[thing])


def without_repeats(records: Iterable[Stated], shown: Iterable[str], *, most: int) -> list[Stated]:
    """The first records, at most this many, that repeat neither each other nor what is shown elsewhere."""
    known = {_words(text) for text in shown}
    kept: list[Stated] = []
    for record in records:
        if len(kept) >= most:
            break
        words = _words(record.text)
        if words not in known:
            known.add(words)
            kept.append(record)
    return kept


@lru_cache(maxsize=1_024)
def _thing(text: str) -> str | None:
    """What the text states the value of, as a key; None if that may have several values, or no rule fits."""
    named = _SPEAKER().match(text)
    said = as_said(text[named.end() :] if named else text).replace("’", "'")
    for thing, pattern in _SINGLE_VALUED:
        found = pattern().search(said)
        if found:
            return " ".join(filter(None, [named and named[1], thing, *found.groups()])).casefold()
    return None


@lru_cache(maxsize=1_024)
def _words(text: str) -> frozenset[str]:
    said = as_said(text)
    asked = ASKED_TO_REMEMBER().match(said)
    words = indexed_words(said[asked.end() :] if asked else said)
    return frozenset(stem(word) for word in words if word not in _FUNCTION_WORDS) or frozenset(words or [text])
