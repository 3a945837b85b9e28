"""Every input gets a correct answer or a refusal that names the field and says what to do. Nothing is lost."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from kalito_mcp.config.settings import Settings
from kalito_mcp.domain.validation import LimitsPolicy
from kalito_mcp.retrieval.policy import SearchPolicy
from kalito_mcp.safety.escaping import visible
from tests.flows.harness import Harness, said, served, text_of

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def keeping(database: Path, era: str) -> AsyncIterator[Harness]:
    """A server with some records. After the block they must be the same, also once reopened."""
    async with served(database, era) as h:
        await h.facts("record_messages", session_id="kept", messages=said("The spare key hangs in the shed.", "Good."))
        await h.facts("create_pin", session_id="kept", content="Prefers the window seat.", client_key="pin")
        await h.settled()
        before = await remembered(h)
        yield h
        assert await remembered(h) == before
    async with served(database, era) as h:
        assert await remembered(h) == before


async def remembered(h: Harness) -> Any:
    context = await h.facts("build_context", session_id="kept", format="structured")
    for of_others in ("latest_messages", "total_tokens"):  # the block may begin other conversations
        del context[of_others]
    found = await h.facts("search_memory", query="spare key shed", session_id="kept")
    return context, found, await h.stats("kept")


async def texts(h: Harness, session_id: str) -> list[str]:
    # A text in the form of a host's reminder counts as untrusted.
    context = await h.facts(
        "build_context", session_id=session_id, format="structured", max_tokens=9_000_000, include=["untrusted"]
    )
    return [message["text"] for message in context["recent_messages"]]


TEXTS = (
    "a\0b", "\0", "🧑‍🚀👩‍👩‍👧‍👦🇧🇷", "שלום \u202eעולם\u202c", "e\u0301 and \u00e9", "\u200b", "\ufeff\ufffe", "\t\r\n ",
    "\U0010ffff", "<system-reminder>", "x" * 524_288, "é" * 262_144, "NULL'; DROP TABLE records;--",
)  # fmt: skip


async def test_a_text_is_kept_as_it_was_sent_and_comes_back_with_all_of_it_to_be_seen(tmp_path: Path, era: str) -> None:
    async with keeping(tmp_path / "memory.db", era) as h:
        for place, text in enumerate(TEXTS):
            messages = [{"role": "user", "text": text, "client_key": "k"}]
            first = await h.facts("record_messages", session_id=f"s{place}", messages=messages)
            assert (first["recorded"], first["total_messages"]) == (1, 1)
            assert await texts(h, f"s{place}") == [visible(text)]
            kept = await (await h.server.opened.memory()).records.get(first["message_ids"][0])
            assert kept.text == text
            again = await h.facts("record_messages", session_id=f"s{place}", messages=messages)
            assert (again["recorded"], again["message_ids"]) == (0, first["message_ids"])


WRONG_MESSAGES: tuple[tuple[dict[str, Any], str], ...] = (
    ({"text": ""}, "messages[1].text is empty"),
    ({"text": "x" * 1_048_576}, "messages[1]: text has 1,048,576 bytes and the limit is 524,288"),
    ({"text": "é" * 262_145}, "messages[1]: text has 524,290 bytes and the limit is 524,288"),
    ({"text": None}, "messages[1].text is missing"),
    ({"role": "robot"}, "messages[1].role must be 'user', 'assistant' or 'system'"),
    ({"name": "a\nb"}, "messages[1]: name contains control characters"),
    ({"client_key": "\0"}, "messages[1]: client_key contains control characters"),
    ({"client_key": "x" * 201}, "messages[1].client_key is longer than 200 characters"),
    ({"token_usage": -1}, "messages[1].token_usage must be at least 0"),
    ({"created_at": "0000-01-01T00:00:00Z"}, "messages[1].created_at='0000-01-01T00:00:00Z' is not"),
    ({"created_at": "10000-01-01"}, "messages[1].created_at='10000-01-01' is not"),
    ({"created_at": "2026-02-30"}, "messages[1].created_at='2026-02-30' is not"),
)


async def test_one_bad_message_refuses_the_batch_by_its_place(tmp_path: Path, era: str) -> None:
    async with keeping(tmp_path / "memory.db", era) as h:
        for message, refusal in WRONG_MESSAGES:
            batch = [{"role": "user", "text": "good"}, {"role": "user", "text": "x"} | message]
            for session_id in ("kept", "fresh"):
                answer = await h.refusal("record_messages", session_id=session_id, messages=batch)
                assert refusal in answer
        assert "no session 'fresh'" in await h.refusal("build_context", session_id="fresh")


async def test_times_from_year_1_to_9999_are_accepted_and_never_decide_the_order(tmp_path: Path, era: str) -> None:
    moments = ["2099-01-01", "0001-01-01", "9999-12-31T23:59:59.999Z", "2020-02-29T12:00:00+05:30", "1969-07-20T20:17Z"]
    async with keeping(tmp_path / "memory.db", era) as h:
        batch = [{"role": "user", "text": f"said {moment}", "created_at": moment} for moment in moments]
        await h.facts("record_messages", session_id="s", messages=[*batch, {"role": "user", "text": "said now"}])
        assert await texts(h, "s") == [*(f"said {moment}" for moment in moments), "said now"]
        stats = await h.stats("s")
        assert (stats["oldest_message"], stats["newest_message"]) == (
            "0001-01-01T00:00:00.000Z",
            "9999-12-31T23:59:59.999Z",
        )
        assert len((await h.facts("search_memory", query="said", session_id="s"))["hits"]) == 6
        assert "0001-01-01" in await h.text("build_context", session_id="s")
        await h.facts("finalize_session", session_id="s")


async def test_a_moment_outside_the_years_1_to_9999_in_utc_is_refused(tmp_path: Path, era: str) -> None:
    async with keeping(tmp_path / "memory.db", era) as h:
        for moment in ("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"):
            batch = [{"role": "user", "text": "x", "created_at": moment}]
            assert "created_at=" in await h.refusal("record_messages", session_id="kept", messages=batch)


async def test_the_same_batch_twice_is_stored_twice_without_keys_and_once_with_them(tmp_path: Path, era: str) -> None:
    async with keeping(tmp_path / "memory.db", era) as h:
        for keyed, total in ((False, 6), (True, 3)):
            batch: list[dict[str, Any]] = [{"role": "user", "text": f"line {n}"} for n in range(3)]
            if keyed:
                batch = [message | {"client_key": f"k{n}"} for n, message in enumerate(batch)]
            for _ in range(2):
                facts = await h.facts("record_messages", session_id=f"keyed {keyed}", messages=batch)
            assert facts["total_messages"] == total


async def test_one_key_twice_in_a_batch_is_one_message(tmp_path: Path, era: str) -> None:
    async with keeping(tmp_path / "memory.db", era) as h:
        batch = [{"role": "user", "text": "x", "client_key": "k"}] * 2
        facts = await h.facts("record_messages", session_id="s", messages=batch)
        assert (facts["recorded"], facts["duplicates"], facts["message_ids"]) == (1, 1, ["msg_4"] * 2)


@pytest.mark.campaign
async def test_ten_thousand_messages_are_taken_in_one_call_and_one_more_is_not(tmp_path: Path, era: str) -> None:
    batch = [{"role": "user", "text": f"entry {n} of the ledger"} for n in range(10_000)]
    async with keeping(tmp_path / "memory.db", era) as h:
        refusal = await h.refusal("record_messages", session_id="s", messages=[*batch, batch[0]])
        assert "10,001 messages in one call; the limit is 10,000: send fewer" in refusal
        result = await h.call("record_messages", session_id="s", messages=batch)
        assert result.structured_content is not None
        assert result.structured_content["recorded"] == len(set(result.structured_content["message_ids"])) == 10_000
        hits = (await h.facts("search_memory", query="entry 9999 of the ledger", k=1))["hits"]
        assert hits[0]["text"] == "entry 9999 of the ledger"


@pytest.mark.campaign
async def test_a_limit_that_is_set_higher_is_higher_in_the_tools(tmp_path: Path, era: str) -> None:
    wide = Settings(
        limits=LimitsPolicy(max_text_bytes=600_000, max_messages=10_001),
        search=SearchPolicy(max_k=120),
    )
    batch = [{"role": "user", "text": f"entry {n} of the ledger"} for n in range(10_001)]
    async with served(tmp_path / "memory.db", era, settings=wide, default_session="s") as h:
        await h.call("record_messages", messages=batch)
        assert (await h.stats("s"))["total_messages"] == 10_001
        assert len((await h.facts("search_memory", query="entry of the ledger", k=120))["hits"]) == 120
        await h.text("build_context", query="ledger " * 10_000)
        for length, refusal in ((600_000, None), (600_001, "content has 600,001 bytes and the limit is 600,000")):
            answer = text_of(await h.call("create_pin", content="x" * length))
            assert refusal in answer if refusal else answer.startswith("Pinned")
        assert (await h.call("summarize_session", summary="x" * 600_000)).is_error is False
        refusal = await h.refusal("remember", type="document", text="x" * 16_777_217, fields={"source": "a"})
        assert "the limit is 16,777,216" in refusal


async def test_a_k_out_of_range_is_refused_with_its_range(tmp_path: Path, era: str) -> None:
    async with keeping(tmp_path / "memory.db", era) as h:
        refusals = {0: "k must be at least 1", 101: "k must be at most 100, not 101", 10**30: "k must be at most 100"}
        for k, refusal in refusals.items():
            assert refusal in await h.refusal("search_memory", query="x", k=k)


async def test_a_budget_out_of_range_is_refused_with_its_range(tmp_path: Path, era: str) -> None:
    async with keeping(tmp_path / "memory.db", era) as h:
        for budget in (0, -5, 10**7 + 1, 10**12):
            bound = "least 1" if budget < 1 else "most 10000000"
            refusal = await h.refusal("build_context", session_id="kept", max_tokens=budget)
            assert f"max_tokens must be at {bound}, not {budget}" in refusal


async def test_a_budget_too_small_says_the_least_and_that_one_is_enough(tmp_path: Path, era: str) -> None:
    async with keeping(tmp_path / "memory.db", era) as h:
        refusal = await h.refusal("build_context", session_id="kept", max_tokens=1)
        assert refusal.startswith("budget_too_small: max_tokens=1 cannot hold")
        least = int(refusal.rpartition("at least ")[2].split()[0])
        for budget in (least, least + 1, least + 50):
            assert await h.text("build_context", session_id="kept", max_tokens=budget)
        for budget in (3 * least, 10 * least):
            facts = await h.facts("build_context", session_id="kept", max_tokens=budget, format="structured")
            assert facts["total_tokens"] <= budget


QUERIES = (
    "multi-agent", '"', '"unbalanced', "*", "shed*", "NEAR(", "NEAR(a b, 3)", "col:shed", "text:shed", "' OR 1=1--",
    "%", "_", "^shed", "{a b}:c", "(", ")", "AND", "OR NOT", "a AND", "-shed", "+shed", "shed; DROP TABLE records",
    "\\", "/", "\0", "a\0b", "🧑‍🚀", "\u202e", "shed " * 800, "?", ":x", "@x", "$x",
)  # fmt: skip


async def test_no_query_is_read_as_a_language(tmp_path: Path, era: str) -> None:
    async with keeping(tmp_path / "memory.db", era) as h:
        for query in QUERIES:
            hits = {hit["text"] for hit in (await h.facts("search_memory", query=query))["hits"]}
            assert ("The spare key hangs in the shed." in hits) == ("shed" in query), query
            await h.text("build_context", session_id="kept", query=query)


async def test_a_query_of_only_stop_words_looks_for_them(tmp_path: Path, era: str) -> None:
    async with keeping(tmp_path / "memory.db", era) as h:
        await h.facts("record_messages", session_id="s", messages=said("To be or not to be"))
        hits = (await h.facts("search_memory", query="to be or not"))["hits"]
        assert hits[0]["text"] == "To be or not to be"


async def test_a_query_of_white_space_is_refused(tmp_path: Path, era: str) -> None:
    async with keeping(tmp_path / "memory.db", era) as h:
        assert "query is empty; say in a few words what to look for" in await h.refusal("search_memory", query=" \n")


async def test_a_cursor_of_no_search_is_refused(tmp_path: Path, era: str) -> None:
    async with keeping(tmp_path / "memory.db", era) as h:
        for cursor in ("x", "10-00000000", "-1-ab", "9" * 40, "1e3-aaaaaaaa", "١-00000000"):
            refusal = await h.refusal("search_memory", query="shed", cursor=cursor)
            assert "cursor belongs to another search" in refusal


async def test_a_wrong_moment_of_a_search_is_refused(tmp_path: Path, era: str) -> None:
    async with keeping(tmp_path / "memory.db", era) as h:
        for arguments, refusal in (
            ({"since": "soon"}, "since='soon' is not a time that can be read"),
            ({"until": "-5d"}, "until='-5d' is not"),
            ({"now": "soon"}, "now='soon' is not"),
            ({"since": "04/03/2026"}, "since='04/03/2026' may be 2026-04-03 or 2026-03-04"),
            ({"since": "2026-01-02", "until": "2026-01-01"}, "since is later than until; swap them"),
        ):
            assert refusal in await h.refusal("search_memory", query="shed", **arguments)


async def test_an_unknown_session_is_refused_and_not_opened(tmp_path: Path, era: str) -> None:
    async with keeping(tmp_path / "memory.db", era) as h:
        for tool in ("build_context", "summarize_session", "finalize_session"):
            for session_id, hint in (
                ("nobody", "search all sessions"),
                ("KEPT", "did you mean 'kept'?"),
                ("kept ", "did you mean 'kept'?"),
                ("' OR 1=1--", "search all sessions"),
            ):
                refusal = await h.refusal(tool, session_id=session_id)
                assert refusal.startswith("session_not_found: no session ")
                assert hint in refusal
        assert [one["session_id"] for one in (await h.resource("memory://sessions"))["sessions"]] == ["kept"]


async def test_a_finalized_session_takes_nothing_more_and_keeps_what_it_has(tmp_path: Path, era: str) -> None:
    async with keeping(tmp_path / "memory.db", era) as h:
        await h.facts("record_messages", session_id="done", messages=said("The well is 40 m deep.", "Noted."))
        await h.facts("finalize_session", session_id="done")
        before, shown = await h.stats("done"), await h.text("build_context", session_id="done")
        for tool, arguments in (
            ("create_pin", {"content": "more"}),
            ("summarize_session", {"start_message_id": "msg_4", "end_message_id": "msg_5", "summary": "more"}),
            ("summarize_session", {"summary": "more"}),
        ):
            refusal = await h.refusal(tool, session_id="done", **arguments)
            assert refusal == (
                "session_finalized: session 'done' is FINALIZED and takes no more records; go on under a new session_id"
            )
        assert await h.stats("done") == before
        assert await h.text("build_context", session_id="done") == shown


WRONG_RANGES: tuple[tuple[str | None, str | None, str], ...] = (
    ("msg_6", "msg_4", "invalid_input: start_message_id comes after end_message_id; swap them"),
    ("msg_5", "msg_6", "summary_range_conflict: "),
    ("msg_1", "msg_4", "record_not_found: start_message_id='msg_1' is not a message of session 's'"),
    ("msg_4", "msg_2", "record_not_found: end_message_id='msg_2' is not a message of session 's'"),
    ("msg_4", "msg_999", "record_not_found: end_message_id='msg_999' is not a message of session 's'"),
    ("msg_4", None, "invalid_input: send start_message_id and end_message_id together, or neither"),
    (None, "msg_4", "invalid_input: send start_message_id and end_message_id together, or neither"),
    ("first", "msg_4", "invalid_input: start_message_id='first' is not a message id"),
    ("msg_-4", "msg_4", "invalid_input: start_message_id='msg_-4' is not a message id"),
    ("9" * 39, "msg_4", f"invalid_input: start_message_id='{'9' * 39}' is not a message id"),
)


async def test_a_wrong_range_is_not_summarised(tmp_path: Path, era: str) -> None:
    async with keeping(tmp_path / "memory.db", era) as h:
        await h.facts("record_messages", session_id="s", messages=said("one", "two", "three"))
        for start, end, refusal in WRONG_RANGES:
            answer = await h.refusal("summarize_session", session_id="s", start_message_id=start, end_message_id=end)
            assert answer.startswith(refusal)
        assert (await h.stats("s"))["total_summaries"] == 0


WRONG_PINS: tuple[tuple[dict[str, Any], str], ...] = (
    ({"content": ""}, "content is empty"),
    ({"content": "x" * 524_289}, "content has 524,289 bytes and the limit is 524,288"),
    ({"content": "x", "source_message_id": "msg_999"}, "source_message_id='msg_999' is not a message of session"),
    ({"content": "x", "source_message_id": "x"}, "source_message_id='x' is not a message id"),
    ({"content": "x", "pin_type": "note"}, "pin_type must be 'manual', 'auto', 'code', 'concept' or 'system'"),
    ({"content": "x", "importance_score": "0,5"}, "importance_score must be a number"),
)


async def test_a_wrong_pin_is_refused(tmp_path: Path, era: str) -> None:
    async with keeping(tmp_path / "memory.db", era) as h:
        for arguments, refusal in WRONG_PINS:
            assert refusal in await h.refusal("create_pin", session_id="kept", **arguments)


async def test_an_importance_is_clamped(tmp_path: Path, era: str) -> None:
    async with keeping(tmp_path / "memory.db", era) as h:
        for given, stored in ((-1, 0.0), (0, 0.0), (0.25, 0.25), (7, 1.0), (1e300, 1.0)):
            facts = await h.facts(
                "create_pin", session_id="s", scope="session", content=f"x {given}", importance_score=given
            )
            assert facts["pin"]["importance_score"] == stored


async def test_every_tool_refuses_an_invalid_name(tmp_path: Path, era: str) -> None:
    calls: dict[str, dict[str, Any]] = {
        "record_messages": {"messages": said("x")},
        "build_context": {},
        "create_pin": {"content": "x"},
        "summarize_session": {},
        "finalize_session": {},
    }
    async with keeping(tmp_path / "memory.db", era) as h:
        for tool, arguments in calls.items():
            for session_id in ("\0", "a\nb", " ", "x" * 201):
                refusal = await h.refusal(tool, session_id=session_id, **arguments)
                assert refusal.startswith("invalid_input: session_id ")


async def test_a_session_of_another_agent_is_refused_and_named(tmp_path: Path, era: str) -> None:
    async with keeping(tmp_path / "memory.db", era) as h:
        refusal = await h.refusal("record_messages", session_id="kept", agent_id="other", messages=said("x"))
        assert "session 'kept' belongs to agent 'default', not 'other'" in refusal


async def test_a_wrong_session_hides_no_other_fault(tmp_path: Path, era: str) -> None:
    async with keeping(tmp_path / "memory.db", era) as h:
        said_of_both = await h.refusal("search_memory", query="bees", k="x", session_id="a\nb")
        assert "k must be a whole number" in said_of_both
        assert "session_id contains control characters" in said_of_both
