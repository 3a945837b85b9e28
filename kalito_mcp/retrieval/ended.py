"""Finds hits that a newer hit ends explicitly, as "we no longer deploy on Fridays" ends "we deploy on Fridays". Pure.

It needs no understanding: a sentence with one of a few expressions for an end, and most of the older statement's words;
or one that says "now", and all of its words but one: "I live in Bern now" ends "I live in Porto". Everything else is
shown with its date, and left to the reader.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from kalito_mcp.domain.records import Role
from kalito_mcp.domain.search import Hit
from kalito_mcp.text.analysis import query_terms
from kalito_mcp.text.sentences import split_sentences

_END: Final = re.compile(
    r"\b(?:no longer|(?:not|\w+n't)\b.{1,60}\bany ?(?:more|longer)|"
    r"(?:has |have |had )?(?:stopped|quit|gave up|given up)|(?:moved|switched|changed|went|transferred|migrated) from|"
    r"nicht mehr|kein\w* mehr|ne\b.{1,40}\bplus|ya no|dejó de|dejé de|não\b.{1,40}\bmais|non\b.{1,40}\bpiù)\b|"
    r"больше не|不再",
    re.IGNORECASE,
)
_NOW: Final = re.compile(
    r"\b(?:now|these days|jetzt|inzwischen|maintenant|désormais|ahora|adesso|ora|agora|nu|tegenwoordig|numera|teraz)\b"
    r"|теперь|现在|今は|이제",
    re.IGNORECASE,
)
_MOST_TERMS: Final = 10
"""Of a statement that may be ended as a whole. A longer one says other things, too."""

_LEAST_TERMS: Final = 2
_SHARE: Final = 0.75
"""Of its terms that the sentence about its end has to repeat."""


def has_ends(hits: Sequence[Hit]) -> bool:
    """Whether one of the hits may end another."""
    return any(_END.search(hit.text) or _NOW.search(hit.text) for hit in hits)


def with_ends(hits: Sequence[Hit], in_order: Sequence[str] = ()) -> list[Hit]:
    """The hits, in their order; a hit that a newer one ends is labelled with the newer one and its moment. Only users'
    words count, and existing labels stay. What somebody shared in a space ends only what they shared there. Of the ids
    `in_order`, the later one is newer, whatever the clock said; other hits are compared by their moments.
    """
    places = {record_id: place for place, record_id in enumerate(in_order)}
    said = [hit for hit in hits if hit.role in (None, Role.USER)]
    endings = [
        (hit, frozenset(query_terms(_NOW.sub("", one))), _END.search(one) is None)
        for hit in said
        for one in split_sentences(hit.text)
        if _END.search(one) or _NOW.search(one)
    ]
    return [_ended(hit, endings, places) if endings and hit in said else hit for hit in hits]


def _ended(hit: Hit, endings: Sequence[tuple[Hit, frozenset[str], bool]], places: Mapping[str, int]) -> Hit:
    if hit.valid_until is not None or _END.search(hit.text):
        return hit
    stated = frozenset(query_terms(hit.text))
    if not _LEAST_TERMS <= len(stated) <= _MOST_TERMS:
        return hit
    later = [
        newer
        for newer, terms, is_restated in endings
        if _is_newer(newer, hit, places)
        and _may_end(newer, hit)
        and (_is_restated(stated, terms) if is_restated else len(stated & terms) >= _SHARE * len(stated))
    ]
    if not later:
        return hit
    first = min(later, key=lambda newer: newer.created_at)
    return replace(hit, valid_until=first.created_at, superseded_by=first.record_id)


def _is_restated(stated: frozenset[str], terms: frozenset[str]) -> bool:
    """Whether these say the same of another value: all terms but one of each."""
    return len(stated) == len(terms) == len(stated & terms) + 1


def _is_newer(newer: Hit, hit: Hit, places: Mapping[str, int]) -> bool:
    if newer.record_id in places and hit.record_id in places:
        return places[newer.record_id] > places[hit.record_id]
    return newer.created_at > hit.created_at


def _may_end(newer: Hit, hit: Hit) -> bool:
    return newer.space is None or (newer.space, newer.shared_by) == (hit.space, hit.shared_by)
