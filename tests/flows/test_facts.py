"""A fact that changed, seen by an assistant: current first, the older one marked, and everything follows an edit."""

from pathlib import Path

import pytest

from tests.flows.harness import said, served

pytestmark = pytest.mark.anyio
MOVED = ("I live in Porto.", "The soup was good.", "I no longer live in Porto, I live in Graz.")


async def test_search_tells_the_current_one_first_and_marks_the_older(tmp_path: Path, era: str) -> None:
    async with served(tmp_path / "memory.db", era) as h:
        first, _, second = (await h.facts("record_messages", session_id="s", messages=said(*MOVED)))["message_ids"]
        result = await h.call("search_memory", query="Where do I live now?")
        assert result.structured_content is not None
        newer, older = result.structured_content["hits"][:2]
        assert (newer["record_id"], older["record_id"]) == (second, first)
        assert older["superseded_by"] == second
        assert older["outdated"][0]["text"] == "I live in Porto"
        text = await h.text("search_memory", query="Where do I live now?")
        assert f"until {older['valid_until']}, superseded by {second}" in text
        before = await h.facts("search_memory", query="Where did I live before?")
        assert before["hits"][0]["record_id"] == first


async def test_a_context_marks_what_is_no_longer_true(tmp_path: Path, era: str) -> None:
    async with served(tmp_path / "memory.db", era) as h:
        await h.facts("record_messages", session_id="old", messages=said(*MOVED))
        await h.facts("record_messages", session_id="new", messages=said("Good morning."))
        text = await h.text("build_context", session_id="new", query="Where do I live?")
        current, older = text.index("I live in Graz"), text.index("I live in Porto.")
        assert "until " in text[:older].splitlines()[-1]
        assert current >= 0


async def test_the_assistant_names_what_a_message_supersedes(tmp_path: Path, era: str) -> None:
    async with served(tmp_path / "memory.db", era) as h:
        [first] = (await h.facts("record_messages", session_id="s", messages=said("The blue mug is Petra's.")))[
            "message_ids"
        ]
        named = [{"role": "user", "text": "The blue mug went to Igor.", "details": {"supersedes": [first]}}]
        [second] = (await h.facts("record_messages", session_id="s", messages=named))["message_ids"]
        result = await h.call("search_memory", query="whose is the blue mug")
        assert result.structured_content is not None
        assert [one.get("superseded_by") for one in result.structured_content["hits"]] == [None, second]
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


async def test_what_is_forgotten_ends_nothing_any_more(tmp_path: Path, era: str) -> None:
    async with served(tmp_path / "memory.db", era) as h:
        ids = (await h.facts("record_messages", session_id="s", messages=said(*MOVED)))["message_ids"]
        await h.facts("forget", record_ids=[ids[2]])
        [hit, *_] = (await h.facts("search_memory", query="Where do I live?"))["hits"]
        assert hit["record_id"] == ids[0]
        assert "superseded_by" not in hit


async def test_a_purge_leaves_no_word_of_a_fact(tmp_path: Path, era: str) -> None:
    async with served(tmp_path / "memory.db", era) as h:
        said_once = said("I now live in Zanzibarquokka.")
        [only] = (await h.facts("record_messages", session_id="s", messages=said_once))["message_ids"]
        await h.settled()
        await h.facts("forget", record_ids=[only], purge=True, confirmed=True)
    for path in tmp_path.rglob("*"):
        assert not path.is_file() or b"zanzibarquokka" not in path.read_bytes().lower(), path.name
