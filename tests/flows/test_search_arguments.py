"""Every argument of search_memory, through a client in either era and a server in a process of its own."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any, Final

import anyio
import pytest
from mcp import Client
from mcp.types import CallToolResult

from tests.flows.harness import assert_states, text_of
from tests.server.web import Web, web

pytestmark = pytest.mark.anyio

WRONG_IMPORTANCES: Final[tuple[Any, ...]] = (1.01, -0.1, "much", "nan", "1e400", True, [], {}, 10**400)
NOW = "2026-05-20T12:00:00Z"
GARDEN = "The apple tree in the garden bears no apples."
PIE = "An apple pie needs six apples, peeled."
PRICE = "Apple prices: up by six percent."
CELLAR = "The apples are stored in the cellar."
SHOPPING = "Perhaps buy apples."
TALK: tuple[dict[str, Any], ...] = (
    {
        "role": "user",
        "text": GARDEN,
        "name": "Ann",
        "created_at": "2026-03-15T09:00:00Z",
        "details": {"tags": ["garden"]},
    },
    {
        "role": "user",
        "text": PIE,
        "name": "Ben",
        "created_at": "2026-05-06T09:00:00Z",
        "details": {"tags": ["kitchen"]},
    },
    {"role": "assistant", "text": PRICE, "created_at": "2026-05-18T09:00:00Z", "origin": "tool"},
)


class Asker:
    """A client whose searches are for apples unless said otherwise."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def call(self, tool: str, **arguments: Any) -> CallToolResult:
        result = await self._client.call_tool(tool, arguments)
        assert isinstance(result, CallToolResult)
        return result

    async def page(self, query: str = "apples", **arguments: Any) -> tuple[dict[str, Any], str]:
        """The structured content of a search, and its text, which states the same."""
        result = await self.call("search_memory", query=query, **arguments)
        assert not result.is_error, text_of(result)
        assert result.structured_content is not None
        assert_states(text_of(result), result.structured_content)
        return result.structured_content, text_of(result)

    async def said(self, query: str = "apples", **arguments: Any) -> set[str]:
        """The texts of the messages that are found."""
        page, _ = await self.page(query, **{"types": ["message"], "now": NOW} | arguments)
        return {hit["text"] for hit in page["hits"]}

    async def noted(self, **arguments: Any) -> set[str]:
        """The texts of the notes that are found."""
        return await self.said(**{"types": ["document"]} | arguments)

    async def refusal(self, **arguments: Any) -> str:
        result = await self.call("search_memory", **{"query": "apples"} | arguments)
        assert result.is_error, text_of(result)
        return text_of(result)


@asynccontextmanager
async def connected(serving: Web, era: str) -> AsyncIterator[Asker]:
    async with Client(serving.url, mode=era) as client:
        yield Asker(client)


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    """A server that remembers three messages and two notes about apples."""

    async def remember(one: Web) -> None:
        async with connected(one, "legacy") as asker:
            for tool, arguments in (
                ("record_messages", {"session_id": "talk", "messages": list(TALK)}),
                ("remember", {"type": "note", "text": CELLAR, "fields": {"importance_score": 0.7}}),
                ("remember", {"type": "note", "text": SHOPPING, "fields": {"importance": "low"}}),
            ):
                result = await asker.call(tool, **arguments)
                assert not result.is_error, text_of(result)

    with web("http", tmp_path_factory.mktemp("arguments") / "memory.db") as one:
        anyio.run(remember, one)
        yield one


@pytest.fixture
async def asker(serving: Web, era: str) -> AsyncIterator[Asker]:
    async with connected(serving, era) as one:
        yield one


@pytest.mark.parametrize(
    ("since", "found"),
    [
        ("last March", {GARDEN, PIE, PRICE}),
        ("two weeks ago", {PIE, PRICE}),
        ("May 2026", {PIE, PRICE}),
        ("7d", {PRICE}),
        ("yesterday", set()),
        ("2026-05-06T09:00:00Z", {PIE, PRICE}),
        ("2026-05-06T09:00:00.001Z", {PRICE}),
    ],
)
async def test_since_is_from_the_first_moment_of_what_it_names(asker: Asker, since: str, found: set[str]) -> None:
    assert await asker.said(since=since) == found


@pytest.mark.parametrize(
    ("until", "found"),
    [
        ("last March", {GARDEN}),
        ("two weeks ago", {GARDEN, PIE}),
        ("Monday", {GARDEN, PIE, PRICE}),
        ("7d", {GARDEN, PIE}),
        ("2026-05-06", {GARDEN, PIE}),
        ("2026-05-05", {GARDEN}),
        ("2025", set()),
    ],
)
async def test_until_is_to_the_last_moment_of_what_it_names(asker: Asker, until: str, found: set[str]) -> None:
    assert await asker.said(until=until) == found


async def test_words_of_time_count_from_now(asker: Asker) -> None:
    assert await asker.said(since="yesterday", until="yesterday", now="2026-05-19") == {PRICE}
    assert await asker.said(since="last month", until="last month", now="2026-04-01") == {GARDEN}


async def test_names_are_of_speakers_in_any_case_and_several_admit_any_of_them(asker: Asker) -> None:
    assert await asker.said(names=["ann"]) == {GARDEN}
    assert await asker.said(names=["Ann", "Ben"]) == {GARDEN, PIE}
    assert await asker.said(names=["An"]) == set()


async def test_tags_in_any_case_admit_what_has_one_of_them(asker: Asker) -> None:
    assert await asker.said(tags=["kitchen"]) == {PIE}
    assert await asker.said(tags=["kitchen", "garden"]) == {GARDEN, PIE}
    assert await asker.said(tags="GARDEN, kitchen") == {GARDEN, PIE}


async def test_origins_say_whose_words_are_meant(asker: Asker) -> None:
    assert await asker.said(origins=["tool"]) == {PRICE}
    assert await asker.said(origins=["user"]) == {GARDEN, PIE}
    assert await asker.said(origins=["document", "import"]) == set()


@pytest.mark.parametrize(
    ("least", "found"),
    [
        (0, {CELLAR, SHOPPING}), (0.2, {CELLAR, SHOPPING}), (0.21, {CELLAR}), (0.7, {CELLAR}), ("0.7", {CELLAR}),
        (0.71, set()), (1, set()), ("low", {CELLAR, SHOPPING}), ("medium", {CELLAR}), ("high", {CELLAR}),
        ("critical", set()), (None, {CELLAR, SHOPPING}),
    ],
)  # fmt: skip
async def test_the_least_importance_is_a_score_or_the_level_that_begins_there(
    asker: Asker, least: Any, found: set[str]
) -> None:
    assert await asker.noted(min_importance=least) == found


async def test_every_filter_narrows_what_the_others_leave(asker: Asker) -> None:
    assert await asker.said(since="last March", origins=["user"], tags=["garden", "kitchen"], names=["Ben"]) == {PIE}
    assert await asker.said(since="last March", origins=["tool"], names=["Ben"]) == set()


async def test_a_filter_may_be_null_or_without_entries(asker: Asker) -> None:
    nothing: dict[str, Any] = dict.fromkeys(["names", "tags", "origins", "roles", "since", "until", "cursor"])
    assert await asker.said(**nothing) == {GARDEN, PIE, PRICE}
    assert await asker.said(names=[], tags=[], origins=[], roles=[]) == {GARDEN, PIE, PRICE}


async def test_a_query_may_hold_an_exact_phrase_and_leave_words_out(asker: Asker) -> None:
    assert await asker.said('apple "six apples"') == {PIE}
    assert await asker.said("apple -garden") == {PIE, PRICE}
    assert await asker.said('apple -"six percent" -garden') == {PIE}


async def test_explain_says_why_each_hit_is_there_and_what_makes_its_score(asker: Asker) -> None:
    page, text = await asker.page(explain=True)
    assert len(page["hits"]) == 5
    assert text.count("\n  because: ") == 5
    for hit in page["hits"]:
        assert hit["parts"]
        assert set(hit["parts"]) <= {"words", "meaning", "nearby", "time", "speaker", "assistant"}


async def test_without_explain_no_hit_says_why(asker: Asker) -> None:
    page, text = await asker.page()
    assert len(page["hits"]) == 5
    assert not any({"parts", "why"} & hit.keys() for hit in page["hits"])
    assert "because" not in text


async def test_the_next_page_counts_from_the_same_moment_as_the_first(asker: Asker) -> None:
    first, _ = await asker.page(since="1d", k=1)
    second, _ = await asker.page(since="1d", k=1, cursor=first["next_cursor"])
    assert {hit["text"] for page in (first, second) for hit in page["hits"]} == {CELLAR, SHOPPING}
    assert "next_cursor" not in second


async def test_a_cursor_of_another_search_is_refused(asker: Asker) -> None:
    cursor = (await asker.page(since="1d", k=1))[0]["next_cursor"]
    for arguments in (
        {"since": "2d"},
        {"names": ["Ann"]},
        {"tags": ["x"]},
        {"min_importance": 0.1},
        {"also": ["pears"]},
    ):
        assert "cursor belongs to another search" in await asker.refusal(**arguments, cursor=cursor)
    for spoilt in (f"{cursor}0", f"@{cursor}", cursor.partition("@")[2], "@0", "0-@1"):
        assert "cursor belongs to another search" in await asker.refusal(since="1d", cursor=spoilt)


async def test_a_cursor_may_say_any_moment_and_is_as_good(asker: Asker) -> None:
    place, _, _ = (await asker.page(k=1))[0]["next_cursor"].partition("@")
    for moment in ("", "@0", "@-999999999999999", "@999999999999999"):
        assert len((await asker.page(k=1, cursor=place + moment))[0]["hits"]) == 1


async def test_what_is_said_several_times_is_one_hit_that_names_the_others(asker: Asker) -> None:
    twice = [{"role": "user", "text": "The plum cake is burnt."}] * 2
    result = await asker.call("record_messages", messages=twice)
    assert result.structured_content is not None
    [hit] = (await asker.page("plum cake", session_id=result.structured_content["session_id"]))[0]["hits"]
    assert sorted([hit["record_id"], *hit["same"]]) == result.structured_content["message_ids"]


async def test_an_empty_page_says_what_to_try(asker: Asker) -> None:
    page, text = await asker.page("zeppelin", also=["airship"])
    assert page["hits"] == []
    assert page["note"].endswith("Try other words for it, a name or a date.")
    assert text.startswith("0 hits. ")
    page, _ = await asker.page(
        also=["apple trees"], names=["Eve"], since="7d", session_id="talk", min_importance="high"
    )
    assert page["note"].endswith("Try without names or min_importance or since or session_id.")


async def test_what_nobody_spoke_of_finds_what_is_nearest_and_nothing_if_nothing_is(asker: Asker) -> None:
    page, text = await asker.page("What is the salary?")
    assert page["hits"] == []
    assert page["note"].startswith('nothing matches this query; not found: "salary"')
    assert text.startswith("0 hits. ")
    assert await asker.said("What is Ben's salary?") == {PIE}
    assert await asker.said("What did Ben say?") == {PIE}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"since": "soon"}, "since='soon' is not a time that can be read; write ISO 8601 like 2026-03-04"),
        ({"until": "2026-02-30"}, "or words like yesterday, last March"),
        ({"since": "x" * 101}, "since is longer than 100 characters"),
        ({"since": "today", "until": "yesterday"}, "since is later than until; swap them"),
        ({"now": "soon"}, "now='soon' is not a time that can be read"),
        ({"names": {"Ann": 1}}, "names must be a list"),
        ({"tags": ["x"] * 21}, "tags has 21 items; send at most 20"),
        ({"tags": [7]}, "tags[0] must be a string, not 7"),
        ({"origins": ["web"]}, "origins[0] must be 'user', 'assistant', 'tool', 'document' or 'import', not 'web'"),
        ({"trust": ["user"]}, "unknown argument 'trust'"),
        ({"explain": "perhaps"}, "explain must be true or false, not 'perhaps'"),
        *(
            ({"min_importance": wrong}, "min_importance should be a number from 0 to 1, or low, medium, high, critical")
            for wrong in WRONG_IMPORTANCES
        ),
    ],
)
async def test_a_wrong_argument_is_refused_in_words_that_say_what_to_send(
    asker: Asker, arguments: dict[str, Any], words: str
) -> None:
    refusal = await asker.refusal(**arguments)
    assert refusal.startswith("invalid_input: ")
    assert words in refusal
