"""The index says which records contain a term, however they were written, changed, removed and folded."""

import random
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from itertools import zip_longest
from typing import Any, Final

import pytest

from kalito_mcp.domain.scope import Scope
from kalito_mcp.storage.postgres import term_pages, text_index
from kalito_mcp.storage.postgres.database import PostgresStore
from kalito_mcp.storage.postgres.term_pages import FIRST_PAGE, Page, unpacked
from kalito_mcp.storage.postgres.text_index import COUNT_MARKS, marked_terms
from kalito_mcp.storage.postgres.text_rebuild import rebuild_terms
from kalito_mcp.text.analysis import index_text
from tests.campaign import first_of
from tests.index_reads import all_keys, keys_with
from tests.storage.postgres.laid_records import Writer

pytestmark = pytest.mark.anyio
OWNERS: Final = ("ann", "bob")
AGENT: Final = 7
WORDS: Final = ("ferry", "moss", "oslo", "pear", "plum", "fig", "quay", "harbour")
SELECT_PAGES: Final = """
SELECT term, first, terms, keys FROM term_pages WHERE owner_key = :owner ORDER BY term, first
"""
SELECT_FRESH: Final = "SELECT record_key, terms FROM fresh_terms WHERE owner_key = :owner"
SELECT_AGENTS: Final = "SELECT agent_key FROM fresh_terms WHERE owner_key = :owner"
UPDATE_RECORD_COUNT: Final = "UPDATE agents SET record_count = :records WHERE owner_key = :owner"
DELETE_FRESH: Final = "DELETE FROM fresh_terms WHERE owner_key = :owner"
UPDATE_SHAPES: Final = "UPDATE record_shapes SET word_count = 99 WHERE owner_key = :owner"


@pytest.fixture
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a test where pages are small and few records are folded at once."""
    monkeypatch.setattr(term_pages, "PAGE_BYTES", 24)
    monkeypatch.setattr(text_index, "FOLDED_AT_ONCE", 7)
    monkeypatch.setattr(text_index, "MANY_TERMS", 6)


class Model:
    """What the index of one owner should say: the texts of its records, by key."""

    def __init__(self, owner: str, choose: random.Random) -> None:
        self.owner, self._choose = owner, choose
        self.texts: dict[int, str] = {}
        self.removed: dict[int, str] = {}

    def text(self) -> str:
        return " ".join(self._choose.choices(WORDS, k=self._choose.randrange(8)))

    @property
    def postings(self) -> Mapping[str, list[int]]:
        found: dict[str, list[int]] = {}
        for key, text in sorted(self.texts.items()):
            for term in marked_terms(index_text(text)).split():
                found.setdefault(term, []).append(key)
        return found

    async def step(self, transaction: Any) -> None:
        """One change of the index, at random."""
        index, choose = transaction.text, self._choose
        match choose.randrange(7):
            case 0 | 1:
                after = max([*self.texts, *self.removed], default=0)
                added = {after + 1 + 3 * n: self.text() for n in range(choose.randrange(1, 9))}
                await index.add(self.owner, AGENT, indexed(added))
                self.texts |= added
            case 2:
                gone = some_of(self.texts, choose, 5)
                await index.remove(self.owner, AGENT, indexed(gone))
                self.texts = {key: text for key, text in self.texts.items() if key not in gone}
                self.removed |= gone
            case 3:
                changed = some_of(self.texts, choose, 3)
                await index.remove(self.owner, AGENT, indexed(changed))
                changed = {key: self.text() for key in changed}
                await index.add(self.owner, AGENT, indexed(changed))
                self.texts |= changed
            case 4:
                back = some_of(self.removed, choose, 3)
                await index.add(self.owner, AGENT, indexed(back))
                self.texts |= back
                self.removed = {key: text for key, text in self.removed.items() if key not in back}
            case _:
                await index.fold(self.owner, AGENT)

    async def check(self, transaction: Any) -> None:
        """The pages, and what is fresh, say together what the texts say."""
        found: dict[str, list[int]] = {}
        pages = [Page(*row) for row in await transaction.transaction.all(SELECT_PAGES, owner=self.owner)]
        ends = [page.start for page in pages[1:]]
        for page, end in zip_longest(pages, ends):
            assert page.is_sound(end), page
            assert page.terms or page == FIRST_PAGE, page
            for term, packed in page.postings.items():
                for key, times in unpacked(packed):
                    for mark in [*COUNT_MARKS.values()][:times]:
                        found.setdefault(f"{mark}{term}", []).append(key)
        for key, terms in await transaction.transaction.all(SELECT_FRESH, owner=self.owner):
            for term in terms.split():
                found.setdefault(term, []).append(key)
        assert {term: sorted(keys) for term, keys in found.items()} == self.postings


def indexed(texts: Mapping[int, str]) -> list[tuple[int, Any]]:
    return [(key, index_text(text)) for key, text in texts.items()]


def some_of(texts: Mapping[int, str], choose: random.Random, most: int) -> dict[int, str]:
    keys: Collection[int] = choose.sample(sorted(texts), min(len(texts), choose.randrange(most + 1)))
    return {key: texts[key] for key in keys}


@pytest.mark.usefixtures("small_pages")
@pytest.mark.parametrize("seed", first_of(range(6), 2))
async def test_pages_say_what_the_texts_say_whatever_was_changed_and_folded_between(
    store: PostgresStore, seed: int
) -> None:
    choose = random.Random(seed)
    models = [Model(owner, choose) for owner in OWNERS]
    for _ in range(60):
        async with store.transaction() as transaction:
            await choose.choice(models).step(transaction)
        for model in models:
            async with store.view() as view:
                await model.check(view)
    for model in models:
        async with store.transaction() as transaction:
            while await transaction.text.fold(model.owner, AGENT):
                pass
            await model.check(transaction)
            assert await transaction.transaction.all(SELECT_FRESH, owner=model.owner) == []


@asynccontextmanager
async def failing(store: PostgresStore) -> AsyncIterator[Any]:
    """A write that does not end well."""
    with pytest.raises(ZeroDivisionError):
        async with store.transaction() as transaction:
            yield transaction
            raise ZeroDivisionError


@pytest.mark.usefixtures("small_pages")
async def test_a_fold_that_ends_halfway_changes_nothing_and_is_done_later(store: PostgresStore) -> None:
    model = Model("ann", random.Random(3))
    model.texts = {key: model.text() for key in range(1, 30)}
    async with store.transaction() as transaction:
        await transaction.text.add("ann", AGENT, indexed(model.texts))
    async with failing(store) as transaction:
        assert await transaction.text.fold("ann", AGENT) == 7
    async with store.view() as view:
        await model.check(view)
        assert await view.transaction.all(SELECT_PAGES, owner="ann") == []
    for left in (7, 7, 7, 7, 1, 0):
        async with store.transaction() as transaction:
            assert await transaction.text.fold("ann", AGENT) == left
        async with store.view() as view:
            await model.check(view)


async def test_a_view_reads_the_same_terms_while_they_are_folded(store: PostgresStore) -> None:
    async with store.transaction() as transaction:
        keys = await Writer(transaction, "local", {}).say("ferry moss", "moss", "ferry ferry")
    async with store.view() as view:
        before = await keys_with(view, Scope(), "ferry")
        async with store.transaction() as transaction:
            agents = await transaction.transaction.all(SELECT_AGENTS, owner="local")
            [agent_key] = {key for [key] in agents}
            assert await transaction.text.fold("local", agent_key) == 3
        async with store.view() as newer:
            assert await keys_with(newer, Scope(), "ferry") == before == [keys[2], keys[0]]
        assert await keys_with(view, Scope(), "moss", "ferry") == keys[::-1]


async def test_an_agent_is_due_from_a_hundred_fresh_records_on(store: PostgresStore) -> None:
    for count, due in ((99, []), (1, [AGENT])):
        async with store.transaction() as transaction:
            known = len(await transaction.transaction.all(SELECT_FRESH, owner="ann"))
            await transaction.text.add("ann", AGENT, indexed({known + n + 1: "ferry" for n in range(count)}))
            await transaction.text.add("bob", AGENT + 1, indexed({known + 1: "ferry"}))
            assert await transaction.text.fold_due("ann") == due
            assert await transaction.text.fold_due("bob") == []


async def test_an_agent_with_many_records_is_due_later(store: PostgresStore) -> None:
    for owner, records, due in (("ann", 200, 100), ("bob", 800, 200), ("cleo", 10**6, 250)):
        async with store.transaction() as transaction:
            await Writer(transaction, owner, {}).say("ferry", scope=Scope(owner=owner, agent="default", session="trip"))
            await transaction.transaction.count_changed(UPDATE_RECORD_COUNT, owner=owner, records=records)
            [[agent_key]] = await transaction.transaction.all(SELECT_AGENTS, owner=owner)
            fresh = {10**9 + n: "ferry" for n in range(due - 1)}
            await transaction.text.add(owner, agent_key, indexed(dict(list(fresh.items())[1:])))
            assert await transaction.text.fold_due(owner) == []
            await transaction.text.add(owner, agent_key, indexed(dict(list(fresh.items())[:1])))
            assert await transaction.text.fold_due(owner) == [agent_key]


async def test_keys_that_are_far_apart_are_in_one_page(store: PostgresStore) -> None:
    texts = dict.fromkeys((1, 2, 1 << 31, (1 << 31) + 1, 1 << 40, (1 << 40) + 5), "ferry")
    async with store.transaction() as transaction:
        for key, text in texts.items():
            await transaction.text.add("ann", AGENT, indexed({key: text}))
            if key % 2:
                await transaction.text.fold("ann", AGENT)
        await transaction.text.fold("ann", AGENT)
        model = Model("ann", random.Random(0))
        model.texts = texts
        await model.check(transaction)


async def test_a_frequent_term_has_full_pages_of_bounded_size(store: PostgresStore) -> None:
    async with store.transaction() as transaction:
        await transaction.text.add("ann", AGENT, indexed(dict.fromkeys(range(1, 2_501), "ferry")))
        assert [await transaction.text.fold("ann", AGENT) for _ in range(3)] == [1_000, 1_000, 500]
        found = await transaction.transaction.all(SELECT_PAGES, owner="ann")
    sizes = [len(keys) for *_, keys in found]
    assert sum(sizes) < 2_520
    assert [900 < size <= term_pages.PAGE_BYTES for size in sizes] == [True, True, False]


async def test_a_rebuilt_index_says_what_the_records_say_and_is_read_anew(store: PostgresStore) -> None:
    texts: dict[int, tuple[str, str | None]] = {}
    async with store.transaction() as transaction:
        writer = Writer(transaction, "local", texts)
        keys = await writer.say("ferry moss", "moss", "pear", name="Ann")
        await writer.forget(keys[2])
        await Writer(transaction, "bob", {}).say("ferry", scope=Scope(owner="bob", agent="default", session="trip"))

    def read(index: Any) -> Any:
        found = index.places(["ferry", "moss", "ann", "pear", "lost"])
        listed = {term: all_keys(index)[places].tolist() for term, places in found.items()}
        return listed, index.records.word_counts[index.records.is_shown].tolist()

    async with store.transaction() as transaction:
        await transaction.transaction.count_changed(UPDATE_SHAPES, owner="local")
    async with store.view() as view:
        before = await view.search.in_index(Scope(), read)
    async with store.transaction() as transaction:
        await transaction.transaction.count_changed(DELETE_FRESH, owner="local")
        await transaction.text.add("local", AGENT, indexed({10**9: "lost"}))
        assert await rebuild_terms(transaction.transaction, "local") == 2
    async with store.view() as view:
        after = await view.search.in_index(Scope(), read)
        assert len(await keys_with(view, Scope(owner="bob"), "ferry")) == 1
    said = {"ferry": [keys[0]], "moss": keys[:2], "ann": keys[:2], "pear": [], "lost": []}
    assert before == (said, [99, 99])
    assert after == (said, [3, 2])


async def test_counts_of_a_term_come_with_its_marks(store: PostgresStore) -> None:
    assert marked_terms(index_text("pear pear fig")).split() == ["pear", "fig", f"{COUNT_MARKS[2]}pear"]
