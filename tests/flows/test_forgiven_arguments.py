"""Any host and any model can call the tools: what it fills in, writes as a string or names otherwise is understood."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.flows.harness import served

pytestmark = pytest.mark.anyio

SAID: dict[str, Any] = {"role": "user", "text": "My dentist is Dr. Finch."}
EMPTY = ("", None)


@pytest.mark.parametrize("empty", EMPTY)
async def test_empty_optional_arguments_of_any_tool_count_as_left_out(database: Path, era: str, empty: Any) -> None:
    async with served(database, era) as h:
        filled = {
            **SAID,
            **dict.fromkeys(("name", "created_at", "model_id", "token_usage", "client_key", "origin"), empty),
        }
        await h.facts("record_messages", messages=[{**filled, "details": empty}], session_id="s", agent_id=empty)
        task = await h.facts(
            "remember", type="task", text="Call the dentist", fields={"due_date": empty, "tags": [empty]}
        )
        calls: dict[str, dict[str, Any]] = {
            "search_memory": {"query": "dentist"},
            "build_context": {"session_id": "s"},
            "create_pin": {"content": "The dentist is Dr. Finch.", "session_id": "s"},
            "summarize_session": {"session_id": "s"},
            "record_feedback": {"target_id": "msg_1", "label": "up"},
            "memory_history": {"record_id": "msg_1"},
            "list_tasks": {},
            "forget": {"record_ids": ["msg_1"]},
            "restore": {"record_id": "msg_1"},
            "finalize_session": {"session_id": "s", "dry_run": True},
        }
        for tool in (await h.client.list_tools()).tools:
            if tool.name in calls:
                needed = calls[tool.name]
                rest = {name: empty for name in tool.input_schema["properties"] if name not in needed}
                await h.text(tool.name, **needed, **rest)
        about = await h.facts("forget", record_ids=empty, about="dentist", identifier=empty, token=empty)
        assert about["count"] > 0
        changes = {"text": "Call Dr. Finch", "assigned_to": empty}
        await h.facts("update_memory", record_id=task["id"], changes=changes, expected_revision=1)


async def test_messages_may_be_json_strings_as_a_whole_or_each(database: Path, era: str) -> None:
    async with served(database, era) as h:
        for sent in (json.dumps([SAID]), [json.dumps(SAID)]):
            assert (await h.facts("record_messages", messages=sent, session_id="s"))["recorded"] == 1


async def test_limit_is_taken_for_k(database: Path, era: str) -> None:
    async with served(database, era) as h:
        await h.facts("record_messages", messages=[{**SAID, "text": f"Dentist number {n}."} for n in range(5)])
        assert len((await h.facts("search_memory", query="dentist number", limit=2))["hits"]) == 2


async def test_a_field_beside_fields_is_told_where_it_belongs(database: Path, era: str) -> None:
    async with served(database, era) as h:
        beside = await h.refusal("remember", type="task", text="Call", due_date="2026-04-01")
        assert beside == "invalid_input: unknown argument 'due_date'; put it into fields"
        thought = await h.refusal("remember", type="thought", text="Hm", message_type="reflection")
        assert thought == "invalid_input: unknown argument 'message_type'; put it into fields"
        change = await h.refusal(
            "update_memory", record_id="msg_1", status="completed", changes={}, expected_revision=1
        )
        assert "'status'; put it into changes" in change
        message = await h.refusal("record_messages", messages=[{**SAID, "tags": ["a"]}])
        assert message == "invalid_input: unknown key 'tags' in messages[0]; put it into details"
        inside = await h.refusal("remember", type="task", text="Call", fields={"metadata": {"priority": "high"}})
        assert "metadata cannot be set: there is no such object; send its fields where metadata is now" in inside


async def test_half_a_character_is_stored_and_searched(database: Path, era: str) -> None:
    async with served(database, era) as h:
        await h.facts("record_messages", messages=[{**SAID, "text": "cut here \ud83d and the pier is closed"}])
        [hit] = (await h.facts("search_memory", query="pier \ud83d"))["hits"]
        assert hit["text"] == "cut here \ufffd and the pier is closed"


async def test_an_empty_cursor_is_the_first_page(database: Path, era: str) -> None:
    async with served(database, era) as h:
        assert (await h.client.list_tools(cursor="")).tools
        assert (await h.client.list_resources(cursor="")).resources
