"""A fact of the person or of a project needs no conversation, and the same words are kept once."""

from pathlib import Path

import pytest

from kalito_mcp import CreatePinRequest
from kalito_mcp.config.settings import Settings
from kalito_mcp.domain.records import Reach
from kalito_mcp.domain.scope import PERSONAL
from kalito_mcp.errors import InvalidInput
from kalito_mcp.wiring import open_memory
from tests.flows.harness import said, served

pytestmark = pytest.mark.anyio
GHENT = "The user lives in Ghent."


async def test_a_fact_of_the_person_is_pinned_without_a_session(database: Path, era: str) -> None:
    async with served(database, era, project="kite") as h:
        made = await h.facts("create_pin", content="The bell rings at six.", scope="person")
        assert "session_id" not in made["pin"]
        assert made["pin"]["scope"] == "person"
    async with served(database, era, project=PERSONAL) as h:
        assert (await h.facts("create_pin", content=GHENT))["pin"]["scope"] == "person"
    async with served(database, era, project="boat") as h:
        text = await h.text("build_context")
        assert "The bell rings at six." in text
        assert GHENT in text


@pytest.mark.usefixtures("meaning_installed")
async def test_what_is_plainly_the_person_s_leaves_the_project_where_it_is_pinned(database: Path, era: str) -> None:
    at_home = "I live in Ghent with my husband and our two children."
    async with served(database, era, project="kite") as h:
        assert (await h.facts("create_pin", content=at_home))["pin"]["scope"] == "person"
        assert (await h.facts("create_pin", content="We decided to use SQLite."))["pin"]["scope"] == "project"
    async with served(database, era, project="boat") as h:
        text = await h.text("build_context")
        assert at_home in text
        assert "SQLite" not in text


async def test_a_fact_of_a_project_is_pinned_without_a_session(database: Path, era: str) -> None:
    async with served(database, era, project="kite") as h:
        assert (await h.facts("create_pin", content="We fly on Sundays."))["pin"]["scope"] == "project"
        assert "We fly on Sundays." in await h.text("build_context")
    async with served(database, era, project="boat") as h:
        assert "Sundays" not in await h.text("build_context")


async def test_a_fact_of_a_conversation_needs_one_and_a_projects_a_project(database: Path, era: str) -> None:
    async with served(database, era, project=PERSONAL) as h:
        for arguments in ({"scope": "session"}, {"pin_type": "code"}):
            told = await h.refusal("create_pin", content="The bell rings at six.", **arguments)
            assert told.startswith("invalid_input: session_id is missing: ")
            assert "scope='person'" in told
        assert "needs a project" in await h.refusal("create_pin", content="We fly on Sundays.", scope="project")


async def test_a_fact_is_pinned_without_a_session_by_the_library(database: Path) -> None:
    async with open_memory(database, Settings()) as memory:
        pin = await memory.create_pin(CreatePinRequest(content=GHENT))
        assert (pin.reach, pin.session_id) == (Reach.PERSON, None)
        assert [one.record.text for one in (await memory.records.profile()).lines] == [GHENT]
        with pytest.raises(InvalidInput, match="session_id is missing"):
            await memory.create_pin(CreatePinRequest(content="The bell rings at six.", scope="session"))


async def test_a_fact_without_a_session_is_a_pin_wherever_pins_are_looked_for(database: Path, era: str) -> None:
    async with served(database, era) as h:
        made = (await h.facts("create_pin", content=GHENT))["pin"]["id"]
        await h.facts("remember", type="note", text="Ghent has 35 towers.")
        await h.facts("remember", type="document", text="Ghent has canals.", fields={"source": "ghent.md"})
        for types, count in ((["pin"], 1), (["note"], 2), (["pin", "note"], 2), (["document"], 3)):
            hits = (await h.facts("search_memory", query="Ghent", types=types))["hits"]
            assert len(hits) == count
            assert made in [hit["record_id"] for hit in hits]
        async with open_memory(database) as memory:
            assert (await memory.conversations.totals())["pins"] == 1


async def test_the_same_words_are_one_record_and_near_duplicates_stay_apart(database: Path, era: str) -> None:
    async with served(database, era) as h:
        first = await h.facts("remember", type="note", text="The shed code is heron.")
        again = await h.facts("remember", type="note", text="The shed code is heron.")
        assert (again["id"], again["known_already"], "known_already" in first) == (first["id"], True, False)
        assert f"Known already: note {first['id']}" in await h.text(
            "remember", type="note", text="The shed code is heron."
        )
        other = await h.facts("remember", type="note", text="The shed code is Heron!")
        assert other["id"] != first["id"]
        hits = (await h.facts("search_memory", query="the shed code", k=9))["hits"]
        assert len(hits) == 1 + len({first["id"], other["id"]} - {hits[0]["record_id"]}) - len(
            hits[0].get("same") or []
        )


async def test_the_same_words_elsewhere_are_another_record(database: Path, era: str) -> None:
    async with served(database, era) as h:
        words = {"type": "note", "text": "The shed code is heron."}
        notes = [
            await h.facts("remember", **words, **place) for place in ({}, {"project": "kite"}, {"project": "boat"})
        ]
        await h.facts("record_messages", session_id="s", messages=said("Hello."))
        notes.append(await h.facts("remember", **words, session_id="s"))
        notes.append(await h.facts("remember", type="thought", text=words["text"]))
        assert len({note["id"] for note in notes}) == len(notes)
        await h.facts("forget", record_ids=[notes[0]["id"]])
        assert "forgotten" in await h.refusal("remember", **words)


async def test_a_task_that_is_done_can_be_set_again(database: Path, era: str) -> None:
    async with served(database, era) as h:
        task = {"type": "task", "text": "Water the plants."}
        first = await h.facts("remember", **task)
        assert (await h.facts("remember", **task))["id"] == first["id"]
        dated = await h.facts("remember", **task, fields={"due_date": "2027-01-01"})
        assert dated["id"] != first["id"]
        await h.facts("update_memory", record_id=first["id"], changes={"status": "completed"}, expected_revision=1)
        assert (await h.facts("remember", **task))["id"] != first["id"]


async def test_the_same_pin_is_made_once_with_or_without_a_session(database: Path, era: str) -> None:
    async with served(database, era) as h:
        first = await h.facts("create_pin", session_id="november", content=GHENT)
        for place in ({"session_id": "november"}, {"session_id": "december"}, {}):
            again = await h.facts("create_pin", content=GHENT, **place)
            assert (again["pin"]["id"], again["known_already"]) == (first["pin"]["id"], True)
        for place in ("s", "t"):
            made = await h.facts("create_pin", session_id=place, content="The bell rings at six.", scope="session")
            assert "known_already" not in made
        again = await h.facts("create_pin", session_id="t", content="The bell rings at six.", scope="session")
        assert again["pin"]["id"] == made["pin"]["id"]
