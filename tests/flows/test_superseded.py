"""A record names those that it supersedes: they stay, labelled, and out of sight where only what holds is shown."""

from pathlib import Path

import pytest

from tests.flows.harness import said, served

pytestmark = pytest.mark.anyio


async def test_the_assistant_names_what_a_message_supersedes(tmp_path: Path, era: str) -> None:
    async with served(tmp_path / "memory.db", era) as h:
        [first] = (await h.facts("record_messages", session_id="s", messages=said("The blue mug is Petra's.")))[
            "message_ids"
        ]
        named = [{"role": "user", "text": "The blue mug went to Igor.", "details": {"supersedes": [first]}}]
        [second] = (await h.facts("record_messages", session_id="s", messages=named))["message_ids"]
        result = await h.call("search_memory", query="whose is the blue mug")
        assert result.structured_content is not None
        newer, older = sorted(result.structured_content["hits"], key=lambda one: one["record_id"] == first)
        assert ("superseded_by" in newer, older["superseded_by"]) == (False, second)
        text = await h.text("search_memory", query="whose is the blue mug")
        assert f"until {older['valid_until']}, superseded by {second}" in text
        context = await h.text("build_context", session_id="new", query="whose is the blue mug")
        assert f"now {second}, user" in next(line for line in context.splitlines() if "Petra's" in line)
        unknown = [{"role": "user", "text": "Mine.", "details": {"supersedes": ["msg_999"]}}]
        refused = await h.refusal("record_messages", session_id="s", messages=unknown)
        assert "msg_999" in refused


async def test_an_edit_that_names_an_unknown_record_is_refused(tmp_path: Path, era: str) -> None:
    async with served(tmp_path / "memory.db", era) as h:
        messages = said("The blue mug is Petra's.", "The blue mug went to Igor.")
        first, second = (await h.facts("record_messages", session_id="s", messages=messages))["message_ids"]
        refused = await h.refusal(
            "update_memory", record_id=second, expected_revision=1, changes={"supersedes": ["msg_999"]}
        )
        assert "msg_999" in refused
        await h.facts("update_memory", record_id=second, expected_revision=1, changes={"supersedes": [first]})
        # Neither later edits nor a restored record ask for a record again that was purged meanwhile.
        await h.facts("forget", record_ids=[first, second])
        back = await h.facts("restore", record_id=second)
        revision = back["revision"]
        await h.facts(
            "update_memory", record_id=second, expected_revision=revision, changes={"text": "The blue mug went to Ben."}
        )


async def test_a_record_that_is_forgotten_supersedes_nothing_until_it_is_restored(tmp_path: Path, era: str) -> None:
    async with served(tmp_path / "memory.db", era) as h:
        [first] = (await h.facts("record_messages", session_id="s", messages=said("The blue mug is Petra's.")))[
            "message_ids"
        ]
        named = [{"role": "user", "text": "Igor has it now.", "details": {"supersedes": [first]}}]
        [second] = (await h.facts("record_messages", session_id="s", messages=named))["message_ids"]

        async def superseding() -> str | None:
            [hit] = (await h.facts("search_memory", query="whose is the blue mug", k=1))["hits"]
            return hit.get("superseded_by")

        assert await superseding() == second
        await h.facts("forget", record_ids=[second])
        assert await superseding() is None
        await h.facts("restore", record_id=second)
        assert await superseding() == second
        await h.facts("forget", record_ids=[second], purge=True, confirmed=True)
        assert await superseding() is None


@pytest.mark.parametrize("scope", ["session", "person"])
async def test_a_pin_that_is_superseded_is_in_no_context_and_stays_readable(
    tmp_path: Path, era: str, scope: str
) -> None:
    async with served(tmp_path / "memory.db", era) as h:
        pin = (await h.facts("create_pin", session_id="s", content="The bell rings at six.", scope=scope))["pin"]["id"]
        assert "at six" in await h.text("build_context", session_id="s")
        fields = {"supersedes": [pin], "scope": "person"}
        await h.facts("remember", type="note", text="The bell rings at seven.", fields=fields)
        context = await h.text("build_context", session_id="s")
        assert ("at six" in context, "at seven" in context) == (False, True)
        assert "The bell rings at six." in await h.text("memory_history", record_id=pin, version=1)
