"""Who asks outside of any project asks the whole memory. What nobody asked for stays personal."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kalito_mcp.config.settings import Settings
from kalito_mcp.domain.records import CreatePinRequest, NewMessage, Role
from kalito_mcp.domain.scope import LOCAL_OWNER, NO_LIMITS, PERSONAL, Limits
from kalito_mcp.domain.spaces import Role as SpaceRole
from kalito_mcp.wiring import open_memory
from tests.flows.harness import said, served

pytestmark = pytest.mark.anyio
QUERY = "How long is the string?"


@pytest.fixture
async def three_places(database: Path, era: str) -> AsyncIterator[Path]:
    """A database with what was said and pinned in `kite` and in `boat`, and outside any project."""
    for project, length in (("kite", "forty"), ("boat", "nine"), (PERSONAL, "two")):
        async with served(database, era, project=project) as h:
            text = f"The string is {length} metres long."
            await h.facts("record_messages", session_id=f"of {project}", messages=said(text))
            if project != PERSONAL:
                await h.facts("create_pin", session_id=f"of {project}", content=f"We decided on {length} knots.")
            await h.settled()
    yield database


async def test_a_search_outside_any_project_finds_everything_and_names_each_project(
    three_places: Path, era: str
) -> None:
    async with served(three_places, era, project=PERSONAL) as h:
        found = await h.facts("search_memory", query=QUERY)
        assert {(hit["session_id"], hit.get("project")) for hit in found["hits"]} == {
            ("of kite", "kite"), ("of boat", "boat"), ("of personal", None),
        }  # fmt: skip
        text = await h.text("build_context", query=QUERY)
        assert all(length in text for length in ("forty", "nine", "two"))
        assert ', project "kite":' in text
        assert ', project "boat":' in text


async def test_what_nobody_asked_for_stays_personal(three_places: Path, era: str) -> None:
    async with served(three_places, era, project=PERSONAL) as h:
        for asked in ({}, {"session_id": "of personal"}, {"query": "What is for dinner?"}):
            text = await h.text("build_context", **asked)
            assert not [one for one in ("forty", "nine", "knots") if one in text]


async def test_only_what_is_personal_is_found_by_who_says_so(three_places: Path, era: str) -> None:
    async with served(three_places, era, project=PERSONAL) as h:
        found = await h.facts("search_memory", query=QUERY, project=PERSONAL)
        assert {hit["session_id"] for hit in found["hits"]} == {"of personal"}


async def test_a_question_in_a_session_of_a_project_is_asked_in_that_project(three_places: Path, era: str) -> None:
    async with served(three_places, era, project=PERSONAL) as h:
        text = await h.text("build_context", query=QUERY, session_id="of kite")
        assert ("forty" in text, "nine" in text) == (True, False)
        assert "nine" in await h.text("build_context", query=QUERY, session_id="of kite", project="*")


async def test_what_limits_reach_does_not_grow(three_places: Path) -> None:
    async with open_memory(three_places, Settings()) as memory:
        limited = memory.of_owner("local", Limits(project="kite"))
        context = await (await limited.for_question()).build_context(query=QUERY)
        assert ("forty" in context.text, "nine" in context.text) == (True, False)


async def test_nothing_found_says_that_other_projects_were_not_asked_and_not_whether_they_have_it(
    three_places: Path, era: str
) -> None:
    async with served(three_places, era, project="kite") as h:
        notes = [(await h.facts("search_memory", query=query))["note"] for query in ("nine", "zeppelin")]
        assert notes[0].replace("nine", "zeppelin") == notes[1]
        assert notes[0].startswith('nothing matches this query; not found: "nine"; other projects were not searched')
        assert "other projects were not searched" in await h.text(
            "build_context", query="zeppelin", format="structured"
        )
    async with served(three_places, era, project=PERSONAL) as h:
        assert "searched" not in (await h.facts("search_memory", query="zeppelin"))["note"]
        assert "no project was searched" in (await h.facts("search_memory", query="nine", project=PERSONAL))["note"]


async def test_nothing_found_in_a_project_that_nobody_knows_names_those_there_are(three_places: Path, era: str) -> None:
    note = "there is no project 'zeppelin' yet, only 'boat' and 'kite'; other projects were not searched"
    async with served(three_places, era) as h:
        assert note in (await h.facts("search_memory", query="nine", project="zeppelin"))["note"]
        assert note in await h.text("build_context", query="nine", project="zeppelin", format="structured")
        for project in ("kite", "*", PERSONAL):
            assert "there is no" not in (await h.facts("search_memory", query="balloon", project=project))["note"]
        # The first context of a new project has nothing to say.
        for asked in ({}, {"query": "nine"}):
            text = await h.text("build_context", project="zeppelin", **asked)
            assert not [one for one in ("zeppelin", "kite", "boat") if one in text]


async def test_a_project_that_nobody_knows_is_told_nobody_what_is_beyond_their_limits(three_places: Path) -> None:
    async with open_memory(three_places, Settings()) as memory:
        await memory.record_messages("of work", [NewMessage(Role.USER, "We sail.")], agent_id="work")
        await memory.spaces.create("hangar", "airship")
        for of, note in ((Limits(agent="work"), None), (Limits(project="zeppelin"), None), (NO_LIMITS, "'zeppelin'")):
            there = await memory.of_owner(LOCAL_OWNER, of).in_project("zeppelin")
            found = await there.search_memory("nine")
            assert (f"no project {note}" in (found.note or "")) == (note is not None)
            assert "kite" not in (found.note or "") or of == NO_LIMITS
        there = await memory.in_project("airship")
        assert "no project 'airship'" in ((await there.search_memory("nine")).note or "")
        await memory.spaces.set_member("hangar", LOCAL_OWNER, SpaceRole.READER)
        assert "no project" not in ((await there.search_memory("nine")).note or "")


async def test_a_project_of_which_only_a_space_has_something_is_known(three_places: Path) -> None:
    async with open_memory(three_places, Settings()) as memory:
        await memory.spaces.create("hangar")
        for user, role in (("ann", SpaceRole.WRITER), (LOCAL_OWNER, SpaceRole.READER)):
            await memory.spaces.set_member("hangar", user, role)
        ann = await memory.of_owner("ann").in_project("airship")
        pin = await ann.create_pin(CreatePinRequest(content="It is grey.", scope="project"))
        await ann.spaces.share(pin.id)
        for project, is_known in (("airship", True), ("zeppelin", False)):
            there = await memory.in_project(project)
            assert ("no project" not in ((await there.search_memory("nine")).note or "")) is is_known
        limited = await memory.of_owner(LOCAL_OWNER, Limits(agent="default")).in_project("airship")
        assert "no project 'airship'" in ((await limited.search_memory("nine")).note or "")


async def test_a_project_with_the_last_part_of_another_is_told_the_whole_path(three_places: Path) -> None:
    async with open_memory(three_places, Settings()) as memory:
        there = await memory.in_project("/home/me/old/kite")
        await there.record_messages("old", [NewMessage(Role.USER, "It flies.")])
        found = await (await memory.in_project("/home/me/new/kite")).search_memory("zeppelin")
        assert "'/home/me/new/kite' yet, only '/home/me/old/kite', 'boat' and 'kite'" in (found.note or "")
