"""Which records contain terms, as arrays, from pages of the index and from what is not folded into them yet. Pure."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kalito_mcp.storage.postgres.term_pages import MORE, Page, count


class Postings(NamedTuple):
    """The keys of the records with a term, ascending, and how often each contains it, as COUNT_MARKS counts."""

    keys: NDArray[np.int64]
    times: NDArray[np.int64]


def postings(terms: Collection[str], found: Sequence[Any]) -> Mapping[str, Postings]:
    """The postings of each term, from rows of SELECT_POSTINGS."""
    packed: dict[str, list[bytes]] = {term: [] for term in terms}
    pages, fresh = _parted(found)
    for page in sorted(pages, reverse=True):
        of_page = page.postings
        for term in packed.keys() & of_page.keys():
            packed[term].append(of_page[term])
    keys, times, ends = _unpacked([one for of_term in packed.values() for one in of_term])
    fresh_keys = np.frombuffer(fresh.keys, ">i8").astype(np.int64)
    lines = fresh.terms.split("\n")
    said, start, part = {}, 0, 0
    for term, of_term in packed.items():
        part += len(of_term)
        end = ends[part - 1] if part else 0
        folded = Postings(keys[start:end][::-1], times[start:end][::-1])
        said[term] = _with_fresh(term, folded, lines, fresh_keys)
        start = end
    return said


def counts(terms: Collection[str], found: Sequence[Any]) -> Mapping[str, int]:
    """How many records contain each term, of those that any does; from rows of SELECT_POSTINGS."""
    said: Counter[str] = Counter()
    pages, fresh = _parted(found)
    for page in pages:
        said.update({term: count(packed) for term, packed in page.postings.items() if term in terms})
    said.update(term for term in fresh.terms.split() if term in terms)
    return said


def _parted(found: Sequence[Any]) -> tuple[list[Page], Page]:
    """The pages in these rows, and what is fresh."""
    [fresh] = (Page("", 0, terms or "", keys or b"") for term, _, terms, keys in found if term is None)
    return [Page(*row) for row in found if row[0] is not None], fresh


def _unpacked(packed: Sequence[bytes]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """The keys in these parts, newest first, how often each record contains the term, and where each part ends."""
    sent = np.frombuffer(b"".join(packed), np.uint8)
    last = np.flatnonzero(sent < MORE)
    if not len(last):
        nothing = np.empty(0, np.int64)
        return nothing, nothing, nothing
    begins = np.concatenate(([0], last[:-1] + 1))
    places = np.arange(len(sent)) - np.repeat(begins, last - begins + 1)
    numbers = np.add.reduceat((sent & (MORE - 1)).astype(np.int64) << (7 * places), begins)
    ends = np.searchsorted(last, np.cumsum([len(one) for one in packed]))
    heads = np.concatenate(([0], ends[:-1]))
    # Each part has its newest key, then differences: keys are sums of what is negative from there on.
    steps = -(numbers >> 2)
    steps[heads] *= -1
    sums = np.cumsum(steps)
    return sums - np.repeat(sums[heads] - steps[heads], ends - heads), numbers & 3, ends


def _with_fresh(term: str, folded: Postings, lines: Sequence[str], keys: NDArray[np.int64]) -> Postings:
    """The postings of a term, with those of fresh records: each has its terms in a line."""
    part, marked = f" {term} ", f":{term} "
    found = [at for at, line in enumerate(lines) if part in line]
    if not found:
        return folded
    times = [1 + lines[at].count(marked) for at in found]
    new = Postings(np.concatenate([folded.keys, keys[found]]), np.concatenate([folded.times, times]))
    if len(folded.keys) and folded.keys[-1] > keys[found[0]]:  # an old record was indexed again
        order = np.argsort(new.keys)
        return Postings(new.keys[order], new.times[order])
    return new
