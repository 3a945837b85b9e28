"""Each tool through a client of either era: its answer in both forms, and the effect of a retry."""

import re
from pathlib import Path

import pytest

from tests.flows.harness import said, served, text_of

pytestmark = pytest.mark.anyio


async def test_record_messages_says_where_the_messages_are(database: Path, era: str) -> None:
    async with served(database, era) as h:
        facts = await h.facts("record_messages", session_id="trip", messages=said("We fly to Oslo.", "On May 3."))
        assert facts == {
            "session_id": "trip",
            "recorded": 2,
            "duplicates": 0,
            "message_ids": ["msg_1", "msg_2"],
            "total_messages": 2,
        }


async def test_a_session_id_is_minted_where_none_is_given_and_is_never_the_same(database: Path, era: str) -> None:
    async with served(database, era) as h:
        one = await h.facts("record_messages", messages=said("a"))
        other = await h.facts("record_messages", messages=said("a"))
        assert one["session_id"].startswith("session_")
        assert len(one["session_id"]) == len("session_") + 16
        assert one["session_id"] != other["session_id"]
        assert (await h.stats(one["session_id"]))["total_messages"] == 1


@pytest.mark.parametrize("given", [{}, {"session_id": ""}, {"session_id": None}])
async def test_the_hosts_session_stands_in_for_one_that_is_not_given(
    database: Path, era: str, given: dict[str, str | None]
) -> None:
    async with served(database, era, default_session="host session") as h:
        assert (await h.facts("record_messages", messages=said("tea"), **given))["session_id"] == "host session"
        assert "tea" in await h.text("build_context", **given)
        assert (await h.facts("create_pin", content="Likes tea.", **given))["pin"]["session_id"] == "host session"
        assert (await h.facts("summarize_session", **given))["session_id"] == "host session"
        assert "tea" in await h.prompt()
        assert (await h.facts("finalize_session", **given))["session_id"] == "host session"


@pytest.mark.parametrize("tool", ["summarize_session", "finalize_session"])
async def test_without_any_session_a_tool_says_where_to_take_it_from(database: Path, era: str, tool: str) -> None:
    async with served(database, era) as h:
        assert await h.refusal(tool) == (
            "invalid_input: session_id is missing; send the one that record_messages returned"
        )


async def test_the_first_turn_of_a_conversation_needs_no_session(database: Path, era: str) -> None:
    async with served(database, era) as h:
        await h.facts("record_messages", session_id="s", messages=said("The code of the shed is 4711."))
        assert "4711" in await h.text("build_context", query="What is the code of the shed?")
        assert "of session" not in await h.text("build_context", query="What is the code of the shed?")
        assert "4711" not in await h.text("build_context")
        found = await h.facts("build_context", query="the shed", format="structured")
        assert found["session_id"] is None
        assert {one["session_id"] for one in found["relevant_messages"]} == {"s"}


async def test_a_context_is_that_of_the_agent(database: Path, era: str) -> None:
    async with served(database, era) as h:
        await h.facts(
            "record_messages", session_id="w", agent_id="work", messages=said("The code of the shed is 4711.")
        )
        assert "4711" in await h.text("build_context", agent_id="work", query="the code of the shed")
        assert "4711" not in await h.text("build_context", query="the code of the shed")
        assert "4711" in await h.text("build_context", session_id="w", agent_id="work")
        assert "no session 'w'" in await h.refusal("build_context", session_id="w", agent_id="home")


async def test_messages_that_the_host_still_sees_are_left_out(database: Path, era: str) -> None:
    async with served(database, era) as h:
        talk = said(*(f"Turn {number}: the shed is blue." for number in range(12)))
        await h.facts("record_messages", session_id="s", messages=talk)
        await h.facts("record_messages", session_id="t", messages=said("The shed was red."))
        text = await h.text("build_context", session_id="s", seen_messages=5, query="What colour was the shed?")
        assert "Turn 6:" in text
        assert not any(f"Turn {number}:" in text for number in range(7, 12))
        assert "The shed was red." in text
        everything = await h.text("build_context", session_id="s", seen_messages=99, query="colour of the shed")
        assert "The shed was red." in everything
        assert "Turn" not in everything


async def test_build_context_returns_only_text_by_default(database: Path, era: str) -> None:
    async with served(database, era) as h:
        await h.facts("record_messages", session_id="s", messages=said("The code is 4711."))
        result = await h.call("build_context", session_id="s")
        assert result.structured_content is None
        assert "The code is 4711." in text_of(result)


async def test_build_context_gives_both_forms_when_they_are_asked_for(database: Path, era: str) -> None:
    async with served(database, era) as h:
        await h.facts("record_messages", session_id="s", messages=said("The code is 4711."))
        await h.facts("create_pin", session_id="s", content="Prefers short answers.")
        facts = await h.facts("build_context", session_id="s", format="structured", max_tokens=500)
        assert [message["text"] for message in facts["recent_messages"]] == ["The code is 4711."]
        assert [pin["content"] for pin in facts["semantic_pins"]] == ["Prefers short answers."]
        assert facts["total_tokens"] <= facts["max_tokens"] == 500


async def test_a_pending_input_is_left_out_of_the_context(database: Path, era: str) -> None:
    async with served(database, era) as h:
        await h.facts("record_messages", session_id="s", messages=said("an old line", "the newest line"))
        assert "the newest line" in await h.text("build_context", session_id="s")
        shown = await h.text("build_context", session_id="s", pending_input=True)
        assert "an old line" in shown
        assert "the newest line" not in shown


async def test_a_query_brings_an_older_message_of_another_session_into_the_context(database: Path, era: str) -> None:
    async with served(database, era) as h:
        await h.facts("record_messages", session_id="before", messages=said("The ferry to Bergen leaves at noon."))
        await h.facts("record_messages", session_id="now", messages=said("Hello again."))
        assert "Bergen" not in await h.text("build_context", session_id="now")
        assert "noon" in await h.text("build_context", session_id="now", query="When does the Bergen ferry leave?")


async def test_search_memory_finds_across_sessions_with_ids_dates_and_scores(database: Path, era: str) -> None:
    async with served(database, era) as h:
        await h.facts("record_messages", session_id="a", messages=said("The cat is called Momo."))
        await h.facts("record_messages", session_id="b", messages=said("Momo ate the plant.", "Nothing else."))
        facts = await h.facts("search_memory", query="Momo", k=5)
        assert [(hit["session_id"], hit["record_id"]) for hit in facts["hits"]] == [("b", "msg_2"), ("a", "msg_1")]
        assert all(0 < hit["score"] <= 1 for hit in facts["hits"])
        only = await h.facts("search_memory", query="Momo", session_id="a")
        assert [hit["record_id"] for hit in only["hits"]] == ["msg_1"]


async def test_an_empty_session_id_searches_everywhere(database: Path, era: str) -> None:
    async with served(database, era) as h:
        await h.facts("record_messages", session_id="a", messages=said("The cat is called Momo."))
        assert len((await h.facts("search_memory", query="Momo", session_id="", agent_id=""))["hits"]) == 1


async def test_the_cursor_walks_through_all_hits_once(database: Path, era: str) -> None:
    async with served(database, era) as h:
        await h.facts("record_messages", session_id="a", messages=said(*(f"apple number {n}" for n in range(7))))
        seen, cursor = [], None
        while True:
            page = await h.facts("search_memory", query="apple", k=3, cursor=cursor)
            seen += [hit["record_id"] for hit in page["hits"]]
            cursor = page.get("next_cursor")
            if cursor is None:
                break
        assert sorted(seen) == sorted(f"msg_{n}" for n in range(1, 8))


async def test_filters_narrow_a_search(database: Path, era: str) -> None:
    async with served(database, era) as h:
        messages = [
            {"role": "user", "text": "apple of March", "created_at": "2026-03-01T12:00:00Z"},
            {"role": "assistant", "text": "apple of May", "created_at": "2026-05-01T12:00:00Z"},
        ]
        await h.facts("record_messages", session_id="a", messages=messages)
        await h.facts("create_pin", session_id="a", content="apple of the eye")

        async def found(**filters: object) -> set[str]:
            return {hit["text"] for hit in (await h.facts("search_memory", query="apple", **filters))["hits"]}

        assert await found(types=["message"], until="2026-03-01") == {"apple of March"}
        assert await found(types=["pin"]) == {"apple of the eye"}
        assert await found(roles=["assistant"]) == {"apple of May"}
        assert await found(types=["message"], since="7d", now="2026-05-02") == {"apple of May"}


async def test_create_pin_gives_the_pin_and_its_source(database: Path, era: str) -> None:
    async with served(database, era) as h:
        await h.facts("record_messages", session_id="s", messages=said("I am allergic to nuts."))
        facts = await h.facts(
            "create_pin", session_id="s", content="Allergic to nuts.", source_message_id="1", importance_score=0.0
        )
        pin = facts["pin"]
        assert (pin["source_message_id"], pin["importance_score"], pin["pin_type"]) == ("msg_1", 0.0, "manual")


async def test_summarize_session_stores_the_callers_words(database: Path, era: str) -> None:
    async with served(database, era) as h:
        await h.facts("record_messages", session_id="s", messages=said("one", "two", "three"))
        facts = await h.facts("summarize_session", session_id="s", summary="They counted to three.")
        assert facts["summaries_made"] == 1
        [summary] = facts["summaries"]
        assert (summary["summary"], summary["method"]) == ("They counted to three.", "caller")
        assert (summary["first_message"], summary["last_message"]) == (1, 3)
        assert (await h.facts("summarize_session", session_id="s"))["summaries"] == []


async def test_summarize_session_takes_a_range(database: Path, era: str) -> None:
    async with served(database, era) as h:
        await h.facts("record_messages", session_id="s", messages=said("one", "two", "three"))
        facts = await h.facts("summarize_session", session_id="s", start_message_id="1", end_message_id="msg_2")
        assert (facts["summarized_messages"], facts["total_messages"]) == (2, 3)
        assert facts["summaries"][0]["method"] == "extractive"


async def test_of_a_long_backlog_only_the_last_summaries_are_shown(database: Path, era: str) -> None:
    async with served(database, era) as h:
        messages = said(*(f"We moved box {n} to shelf {n % 7}." for n in range(200)))
        await h.facts("record_messages", session_id="s", messages=messages)
        facts = await h.facts("finalize_session", session_id="s")
        assert facts["total_messages"] == 200
        assert facts["total_summaries"] > 10
        assert len(facts["summaries"]) <= 10


async def test_a_retried_message_is_stored_once_and_answered_the_same(database: Path, era: str) -> None:
    async with served(database, era) as h:
        first = await h.facts("record_messages", session_id="s", messages=said("a", "b"))
        again = await h.facts("record_messages", session_id="s", messages=said("a", "b"))
        assert again["message_ids"] == first["message_ids"]
        assert (again["recorded"], again["duplicates"], again["total_messages"]) == (0, 2, 2)
        partly = await h.facts("record_messages", session_id="s", messages=said("b", "c"))
        assert (partly["recorded"], partly["duplicates"], partly["total_messages"]) == (1, 1, 3)


async def test_a_client_key_with_other_words_is_refused_and_changes_nothing(database: Path, era: str) -> None:
    async with served(database, era) as h:
        await h.facts("record_messages", session_id="s", messages=[{"role": "user", "text": "a", "client_key": "k"}])
        before = await h.stats("s")
        changed = [{"role": "user", "text": "new"}, {"role": "user", "text": "b", "clientKey": "k"}]
        assert "client_key 'k' is already used" in await h.refusal("record_messages", session_id="s", messages=changed)
        assert await h.stats("s") == before


async def test_a_retried_pin_is_the_same_pin(database: Path, era: str) -> None:
    async with served(database, era) as h:
        first = await h.facts("create_pin", session_id="s", content="Likes tea.", client_key="k")
        assert await h.facts("create_pin", session_id="s", content="Likes tea.", client_key="k") == first
        assert (await h.stats("s"))["total_pins"] == 1


async def test_finalizing_again_changes_nothing(database: Path, era: str) -> None:
    async with served(database, era) as h:
        await h.facts("record_messages", session_id="s", messages=said("a", "b"))
        first = await h.facts("finalize_session", session_id="s")
        before = await h.stats("s")
        again = await h.facts("finalize_session", session_id="s")
        of_this_call = ("questions_merged", "questions_kept", "answers_kept", "snapshot")
        done = {name: value for name, value in first.items() if name not in of_this_call}
        assert again == done | {"summaries": [], "summaries_made": 0}
        assert await h.stats("s") == before


async def test_a_message_to_a_closed_conversation_begins_the_session_that_follows(database: Path, era: str) -> None:
    async with served(database, era) as h:
        await h.facts("record_messages", session_id="s", messages=said("We sail on Friday.", "Goodbye!"))
        closed = await h.text("finalize_session", session_id="s")
        assert "sleep" not in closed.lower() and "graph" not in closed
        for text in ("One more thing.", "And another."):
            later = await h.facts("record_messages", session_id="s", messages=said(text))
            assert (later["session_id"], later["continues"], later["recorded"]) == ("s~2", "s", 1)
        assert "continues" not in await h.facts("record_messages", session_id="s~2", messages=said("The last."))
        await h.facts("finalize_session", session_id="s~2")
        assert (await h.facts("record_messages", session_id="s", messages=said("Back.")))["session_id"] == "s~3"


async def test_a_hit_has_only_what_a_model_can_use(database: Path, era: str) -> None:
    async with served(database, era) as h:
        message = {
            "role": "user",
            "text": "The hut is at 1,850 m.",
            "client_key": "k",
            "created_at": "2026-03-02T10:15:09.123Z",
        }
        [record_id] = (await h.facts("record_messages", session_id="s", messages=[message]))["message_ids"]
        [hit] = (await h.facts("search_memory", query="hut"))["hits"]
        assert hit["created_at"] == "2026-03-02T10:15:09Z"
        assert hit["client_key"] == "k"  # the caller chose it, and knows its own record again by it
        assert "revision" not in hit
        changes = {"text": "The hut is at 1,950 m."}
        await h.facts("update_memory", record_id=record_id, changes=changes, expected_revision=1)
        [hit] = (await h.facts("search_memory", query="hut"))["hits"]
        assert hit["revision"] == 2


async def test_the_first_turn_of_a_conversation_is_given_what_others_said(tmp_path: Path, era: str) -> None:
    async with served(tmp_path / "memory.db", era) as h:
        await h.text("record_messages", session_id="before", messages=said("The winter tyres are in the cellar."))
        for arguments in ({"session_id": "new"}, {}):
            told = await h.text("build_context", query="Where are the winter tyres?", **arguments)
            assert '"before":\n- user: The winter tyres are in the cellar.' in told
            assert "cellar" in told
        assert [one["session_id"] for one in (await h.resource("memory://sessions"))["sessions"]] == ["before"]
        assert (await h.refusal("build_context", session_id="new")).startswith("session_not_found")


async def test_a_search_names_a_conversation_by_the_beginning_of_its_uuid_which_is_enough_to_read_it(
    tmp_path: Path, era: str
) -> None:
    uuid = "6513270e-269e-4d37-b2a7-4de452e6b438"
    async with served(tmp_path / "memory.db", era) as h:
        await h.text("record_messages", session_id=uuid, messages=said('Where are "the winter tyres"?'))
        found = await h.text("search_memory", query="winter tyres")
        assert """in session 6513270e "Where are "the winter tyres"?",""" in found
        [hit] = (await h.facts("search_memory", query="winter tyres", session_id="6513270e"))["hits"]
        assert (hit["session_id"], hit["session_title"]) == (uuid, 'Where are "the winter tyres"?')
        told = await h.text("build_context", query="Where are the winter tyres?", session_id="another")
        assert "winter tyres" in told
        assert "6513270e" not in told
        assert uuid not in found
        assert "winter tyres" in await h.text("build_context", session_id="6513270e")


async def test_a_text_that_is_valid_json_stays_a_text_in_every_tool(database: Path, era: str) -> None:
    async with served(database, era) as h:
        for tool in (await h.client.list_tools()).tools:
            for name, schema in tool.input_schema["properties"].items():
                if schema.get("type") != "string":
                    continue
                if (most := schema.get("maxLength", 0)) > 1_000_000:
                    continue
                for text in ('{"error": "ENOENT"}', "[7]", "null", f"[{'7,' * most}7]"):
                    answer = text_of(await h.call(tool.name, **{name: text}))
                    assert f"{name} must be a string" not in answer
                    if "enum" in schema:
                        assert re.search(rf"\b{name} must be .*, not '", answer)
                    if len(text) > most > 0:
                        assert f"{name} is longer than {most} characters" in answer


async def test_a_text_that_is_valid_json_is_stored_and_found_as_that_text(database: Path, era: str) -> None:
    async with served(database, era) as h:
        await h.facts("record_messages", session_id="null", messages=said('{"error": "ENOENT"}'))
        pins = [
            (await h.facts("create_pin", session_id="null", content="Likes tea.", client_key='["k"]'))["pin"]["id"]
            for _ in range(2)
        ]
        assert pins[0] == pins[1]
        assert "ENOENT" in await h.text("build_context", session_id="null", query='{"error": "ENOENT"}')
        made = await h.facts("summarize_session", session_id="null", summary='{"a": 1}')
        assert (made["session_id"], made["summaries"][0]["summary"]) == ("null", '{"a": 1}')
        assert (await h.facts("record_feedback", target_id="msg_1", label="up", note="[1]"))["label"] == "up"
