"""Pages of the text index: which records contain a term, sorted by term and key, in blocks of bounded size. Pure.

A page has the entries from its own place, a term and a key, to the place of the next page. An agent's first page begins
at the empty term, so that every entry has a page. For each of its terms a page has the newest key, then the differences
to older ones: new records are put in front without a look at the others. A number is written in groups of seven bits,
the lowest first. Its two lowest bits say how often the record contains the term, 1 to 3 as COUNT_MARKS counts; so no
number has a zero byte, which parts the terms.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

PAGE_BYTES: Final = 1_000
"""The most that a page contains. PostgreSQL keeps such a row in its block, several of them in each."""

_PART: Final = b"\0"
MORE: Final = 128
_BYTES: Final = [bytes([value]) for value in range(256)]
_HEAD: Final = 10
"""The bytes of the largest number."""

Start = tuple[str, int]
Changes = Mapping[str, Mapping[int, int]]
"""For each term, by key of a record: how often it contains the term, or 0 if it is to be taken out."""


class Page(NamedTuple):
    """The first place that belongs to it, its terms parted by spaces, and their keys. A page that begins with all keys
    of a term begins at key 0."""

    term: str
    first: int
    terms: str
    keys: bytes

    @property
    def start(self) -> Start:
        """Its first place."""
        return self.term, self.first

    def is_sound(self, end: Start | None) -> bool:
        """Whether its entries are in order and from its first place to this one, where the next page begins."""
        entries = [(term, key) for term, packed in self.postings.items() for key, _ in unpacked(packed)[::-1]]
        ordered = [self.start, *entries, *([] if end is None else [end])]
        is_paired = not self.terms or self.terms.count(" ") == self.keys.count(_PART)
        return is_paired and ordered == sorted(ordered) and len({*entries, end}) == len(entries) + 1

    @property
    def postings(self) -> dict[str, bytes]:
        """The packed keys of each term."""
        return dict(zip(self.terms.split(" "), self.keys.split(_PART), strict=False)) if self.terms else {}


FIRST_PAGE: Final = Page("", 0, "", b"")


def by_page(starts: Iterable[Start], changes: Changes) -> dict[Start, Changes]:
    """The changes that belong to a page, by where it begins. `starts` has at least the pages where a change belongs, if
    they exist."""
    at, *later = sorted(starts) or [FIRST_PAGE.start]
    ends = iter([*later, None])
    end = next(ends)
    placed, here = dict[Start, Changes](), dict[str, Mapping[int, int]]()
    for term, changed_records in sorted(changes.items()):
        records = changed_records
        while end is not None and (term, max(records)) >= end:
            if within := {key: times for key, times in records.items() if (term, key) < end}:
                here[term] = within
                records = {key: times for key, times in records.items() if key not in within}
            if here:
                placed[at] = here
            at, end, here = end, next(ends), {}
        here[term] = records
    return {**placed, at: here}


def changed(pages: Iterable[Page], placed: Mapping[Start, Changes]) -> Iterator[Page]:
    """The pages with these changes, some of them new. One without terms is to be deleted, unless it is the first."""
    found = {page.start: page.postings for page in pages}
    for start, changes in placed.items():
        postings = found.get(start, {})
        for term, records in changes.items():
            if packed := _merged(postings.get(term, b""), records):
                postings[term] = packed
            else:
                postings.pop(term, None)
        yield from _cut(start, sorted(postings.items()))


def unpacked(packed: bytes) -> list[tuple[int, int]]:
    """The keys of a term in a page, newest first, and how often each record contains it."""
    found = list[tuple[int, int]]()
    key = number = shift = 0
    for byte in packed:
        number |= (byte & 127) << shift
        shift += 7
        if byte < MORE:
            key = key - (number >> 2) if found else number >> 2
            found.append((key, number & 3))
            number = shift = 0
    return found


def count(packed: bytes) -> int:
    """How many keys there are."""
    return sum(byte < MORE for byte in packed)


def _merged(packed: bytes, records: Mapping[int, int]) -> bytes:
    """The keys of a term in a page with these changes."""
    added = sorted(records.items(), reverse=True)
    newest, end = _head(packed)
    if added[-1][0] > newest >> 2 and 0 not in records.values():
        new = _packed(added)
        if packed:
            new += _number((added[-1][0] - (newest >> 2)) << 2 | newest & 3) + packed[end:]
        return new
    merged = {**dict(unpacked(packed)), **records}
    return _packed(sorted(((key, times) for key, times in merged.items() if times), reverse=True))


def _head(packed: bytes) -> tuple[int, int]:
    """The first number, and where the next one begins."""
    number = end = 0
    for end, byte in enumerate(packed):
        number |= (byte & 127) << 7 * end
        if byte < MORE:
            return number, end + 1
    return number, end


def _packed(records: Iterable[tuple[int, int]]) -> bytes:
    """Keys, newest first, and how often each record contains the term."""
    parts = []
    newer = 0
    for key, times in records:
        parts.append(_number(((newer - key) if newer else key) << 2 | times))
        newer = key
    return b"".join(parts)


def _number(value: int) -> bytes:
    return _BYTES[value] if value < MORE else _BYTES[value & 127 | MORE] + _number(value >> 7)


def _cut(start: Start, postings: Sequence[tuple[str, bytes]]) -> Iterator[Page]:
    """The page with these keys, or several that are about equally full. A term that does not fit into one page fills
    all but the newest: it grows only there."""
    whole = _page(start, postings)
    if len(whole.terms.encode()) + len(whole.keys) < PAGE_BYTES:
        yield whole
        return
    sizes = [_size(term, packed) for term, packed in postings]
    share = sum(sizes) / max(1, -(-sum(sizes) // PAGE_BYTES))
    at, size, here = start, 0, list[tuple[str, bytes]]()
    for (term, packed), of_term in zip(postings, sizes, strict=True):
        if here and (size >= share or size + of_term > PAGE_BYTES):
            yield _page(at, here)
            at, size, here = (term, 0), 0, []
        last = packed
        if of_term > PAGE_BYTES:
            *full, newest = _filled(unpacked(packed), PAGE_BYTES - _size(term, b""))
            for records in full:
                yield _page(at, [(term, _packed(records))])
                at = (term, records[0][0] + 1)
            last = _packed(newest)
        here.append((term, last))
        size += _size(term, last)
    yield _page(at, here)


def _filled(records: Sequence[tuple[int, int]], most: int) -> list[list[tuple[int, int]]]:
    """The records in parts of this many bytes, the oldest part first."""
    parts: list[list[tuple[int, int]]] = [[]]
    size = _HEAD
    for older, newer in pairwise([(0, 0), *reversed(records)]):
        size += len(_number((newer[0] - older[0]) << 2))
        if parts[-1] and size > most:
            parts.append([])
            size = _HEAD
        parts[-1].append(newer)
    return [part[::-1] for part in parts]


def _size(term: str, packed: bytes) -> int:
    """The bytes that it takes in a page."""
    return len(term.encode()) + len(packed) + 2


def _page(at: Start, postings: Sequence[tuple[str, bytes]]) -> Page:
    return Page(*at, " ".join([term for term, _ in postings]), _PART.join([packed for _, packed in postings]))
