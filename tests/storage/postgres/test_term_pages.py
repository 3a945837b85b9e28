"""Pages of the text index say what was put into them, in order and in bounded blocks, whatever changes."""

from collections.abc import Mapping
from itertools import zip_longest
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kalito_mcp.storage.postgres import term_pages
from kalito_mcp.storage.postgres.posting_arrays import counts, postings
from kalito_mcp.storage.postgres.term_pages import FIRST_PAGE, Changes, Page, by_page, changed, unpacked

TERMS = st.sampled_from(["fig", "moss", "pear", "pearl", "чай", "x1"]) | st.text("aбz0'", min_size=1, max_size=5)
KEYS = st.integers(1, 12) | st.integers(1, 300) | st.integers(1, 1 << 60)
RECORDS = st.dictionaries(KEYS, st.integers(0, 3), min_size=1, max_size=12)
CHANGES = st.dictionaries(TERMS, RECORDS, min_size=1, max_size=6)


class Index:
    """The pages of an agent, and what they should say."""

    def __init__(self) -> None:
        self.pages: dict[tuple[str, int], Page] = {}
        self.said: dict[str, dict[int, int]] = {}

    def change(self, changes: Changes) -> None:
        """Change the pages where a change belongs, which are all that the function sees."""
        placed = by_page(self.pages, changes)
        for page in changed([self.pages[start] for start in placed if self.pages], placed):
            self.pages[page.start] = page
            if not page.terms and page.term:
                del self.pages[page.start]
        for term, records in changes.items():
            now = self.said.get(term, {}) | records
            self.said[term] = {key: times for key, times in now.items() if times}

    def check(self) -> None:
        pages = [self.pages[start] for start in sorted(self.pages)]
        found: dict[str, dict[int, int]] = {}
        for page, end in zip_longest(pages, [page.start for page in pages[1:]]):
            assert page.is_sound(end), page
            for term, packed in page.postings.items():
                found.setdefault(term, {}).update(unpacked(packed))
            # A term and one key always have room.
            assert len(page.terms.encode()) + len(page.keys) <= max(term_pages.PAGE_BYTES, 35)
        said = {term: records for term, records in self.said.items() if records}
        assert found == said
        rows = [tuple(page) for page in pages]
        assert counts(self.said, [*rows, NOTHING_FRESH]) == {term: len(records) for term, records in said.items()}
        assert read(self.said, [*rows, NOTHING_FRESH]) == self.said


NOTHING_FRESH = (None, None, None, None)


def read(terms: Mapping[str, object], rows: list[tuple[object, ...]]) -> dict[str, dict[int, int]]:
    """What a search reads of these terms."""
    found = {}
    for term, (keys, times) in postings(terms, rows).items():
        assert keys.tolist() == sorted(keys.tolist())
        found[term] = dict(zip(keys.tolist(), times.tolist(), strict=True))
    return found


@given(st.lists(CHANGES, min_size=1, max_size=8), st.sampled_from([1, 30, 100, 1_000]))
def test_pages_say_what_was_put_into_them_whatever_changes(batches: list[Changes], page_bytes: int) -> None:
    index = Index()
    with patch.object(term_pages, "PAGE_BYTES", page_bytes):
        for changes in batches:
            index.change(changes)
            index.check()


@given(st.lists(TERMS, min_size=1, max_size=30, unique=True), st.integers(1, 300))
def test_new_records_grow_pages_that_are_cut(terms: list[str], batches: int) -> None:
    index = Index()
    with patch.object(term_pages, "PAGE_BYTES", 60):
        for key in range(batches):
            index.change({terms[key % len(terms)]: {key + 1: 1}, terms[0]: {key + 1: 3}})
        index.check()
        index.change({term: dict.fromkeys(records, 0) for term, records in index.said.items()})
    assert index.pages == {("", 0): FIRST_PAGE}


def test_a_new_record_is_put_in_front_of_bytes_that_stay() -> None:
    [page] = changed([], {FIRST_PAGE.start: {"fig": {1: 1, 1 << 40: 2}}})
    [later] = changed([page], {page.start: {"fig": {(1 << 40) + 5: 3}}})
    assert unpacked(later.keys) == [((1 << 40) + 5, 3), (1 << 40, 2), (1, 1)]
    assert later.keys.endswith(page.keys[-6:])


@pytest.mark.parametrize(
    "broken",
    [
        Page("", 0, "pear fig", b"\x05\0\x05"),
        Page("", 0, "fig pear", b"\x05"),
        Page("moss", 0, "fig", b"\x05"),
        Page("fig", 2, "fig", b"\x05"),
        Page("", 0, "quay", b"\x05"),
    ],
)
def test_a_page_whose_entries_are_not_where_they_belong_is_not_sound(broken: Page) -> None:
    assert not broken.is_sound(("quay", 1))
    assert Page("fig", 1, "fig moss", b"\x05\0\x05").is_sound(("quay", 1))


def test_fresh_records_are_read_with_what_is_folded() -> None:
    [page] = changed([], {FIRST_PAGE.start: {"fig": {2: 1, 9: 2}, "moss": {2: 1}}})
    lines = " moss fig x2:fig x4:fig \n figs \n pear fig x2:pear "
    fresh = (None, None, lines, b"".join(key.to_bytes(8) for key in (5, 12, 1 << 50)))
    terms = dict.fromkeys(["fig", "moss", "pear", "plum"])
    assert read(terms, [page, fresh]) == {
        "fig": {2: 1, 5: 3, 9: 2, 1 << 50: 1},
        "moss": {2: 1, 5: 1},
        "pear": {1 << 50: 2},
        "plum": {},
    }
    assert counts(terms, [page, fresh]) == {"fig": 4, "moss": 2, "pear": 1}
