"""Projects as hosts see them: what is of one project is shown in no other unasked, and names its project when asked."""

import json
import os
import random
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final

import pytest
from mcp import Client, StdioServerParameters
from mcp.types import CallToolResult, TextResourceContents

from kalito_mcp import Conflict, open_memory
from kalito_mcp.config.settings import Settings
from kalito_mcp.projects import ProjectPolicy
from kalito_mcp.runtime.database_address import address_of
from tests.flows.harness import asked, said, served, text_of
from tests.server.wire import clean_environment

pytestmark = pytest.mark.anyio
OPERATIONS: Final = int(os.environ.get("MIXED_OPERATIONS", "300"))
"""`make campaigns` does 1,000."""
TOPICS: Final = ("deployment", "database", "invoice export", "login page", "backup", "release", "search index", "cache")
MARKS: Final = {"quokka": "one", "wombat": "two", "lemur": None}
"""A word that only one host writes, and the folder of its repository. The last works in none: it writes for all."""


class Host:
    """A host that works in one place, with a real server of its own."""

    def __init__(self, client: Client, mark: str, chance: random.Random) -> None:
        # Outside any project a question would reach all of them.
        self._place = {} if MARKS[mark] else {"project": "personal"}
        self._client = client
        self._chance = chance
        self.mark = mark
        self._count = 0

    def _words(self) -> str:
        self._count += 1
        topic, number = self._chance.choice(TOPICS), self._chance.randrange(100, 999)
        return f"We decided that the {topic} runs on port {number}, as {self.mark}{self._count} says."

    async def call(self, tool: str, **arguments: Any) -> str:
        """All that the host sees of the answer, in both forms."""
        result = await self._client.call_tool(tool, arguments)
        assert isinstance(result, CallToolResult)
        assert not result.is_error, text_of(result)
        return f"{text_of(result)}\n{json.dumps(result.structured_content)}"

    async def read(self, uri: str) -> str:
        [content] = (await self._client.read_resource(uri, cache_mode="bypass")).contents
        assert isinstance(content, TextResourceContents)
        return content.text

    async def _record(self, session: str) -> str:
        turns = asked((self._words(), self._words()))
        return await self.call("record_messages", session_id=session, messages=turns)

    async def operate(self) -> str:  # noqa: PLR0911 - one for each kind of call
        """Do something at random. Returns what the host saw."""
        session = f"{self.mark} {self._chance.randrange(5)}"
        topic = self._chance.choice(TOPICS)
        match self._chance.randrange(9):
            case 0 | 1:
                return await self._record(session)
            case 2:
                return await self.call("remember", type=self._chance.choice(["note", "task"]), text=self._words())
            case 3:
                await self._record(session)
                return await self.call("create_pin", session_id=session, content=self._words())
            case 4:
                return await self.call("build_context", query=f"Which port does the {topic} run on?", **self._place)
            case 5:
                await self._record(session)
                asked = {"session_id": session, "query": f"the {topic}", "max_tokens": 1_500}
                return await self.call("build_context", **asked, **self._place)
            case 6:
                return await self.call(
                    "search_memory", query=f"What did we decide on the {topic}?", k=20, **self._place
                )
            case 7:
                return await self.call("build_context") + await self.call("list_tasks")
            case _:
                return await self.call("search_memory", query="What did we talk about today?", k=20, **self._place)


def stdio(database: Path, folder: Path) -> StdioServerParameters:
    return StdioServerParameters(
        command=sys.executable,
        args=["-m", "kalito_mcp", "serve"],
        cwd=folder,
        env=clean_environment(KALITO_DATABASE=str(database), KALITO_PROJECT=""),
    )


@pytest.mark.campaign
async def test_two_hosts_in_two_repositories_and_one_outside_share_a_file_and_nothing_else(tmp_path: Path) -> None:
    chance = random.Random(14)
    async with AsyncExitStack() as stack:
        hosts = []
        for mark, name in MARKS.items():
            folder = tmp_path / (name or "outside")
            (folder / ".git" if name else folder).mkdir(parents=True)
            client = await stack.enter_async_context(Client(stdio(tmp_path / "memory.db", folder)))
            hosts.append(Host(client, mark, chance))
        for _ in range(OPERATIONS):
            host = chance.choice(hosts)
            seen = await host.operate()
            others = {mark for mark, name in MARKS.items() if name is not None} - {host.mark}
            assert not [mark for mark in others if mark in seen], (host.mark, seen)
        quokka, wombat, lemur = hosts
        for other in (wombat, lemur):
            found = await other.call("search_memory", query="What did we decide on the backup?", project="*", k=50)
            assert quokka.mark in found
            theirs = [line for line in found.splitlines() if quokka.mark in line and ", score " in line]
            assert theirs
            assert all(f"of project {tmp_path.resolve() / 'one'}" in line for line in theirs)
        assert lemur.mark in await quokka.call("search_memory", query="What did we decide on the backup?", k=50)


@pytest.fixture
async def three_projects(database: Path, era: str) -> AsyncIterator[Path]:
    """A database with a session of the project `kite`, one of `boat`, and a personal one."""
    for project, text in (
        ("kite", "The kite's string is forty metres long."),
        ("boat", "The boat's string is nine metres long."),
        ("personal", "My own string is two metres long."),
    ):
        async with served(database, era, project=project) as h:
            await h.facts("record_messages", session_id=f"of {project}", messages=said(text))
            await h.settled()
    yield database


async def test_other_projects_are_found_only_when_asked_and_then_by_name(three_projects: Path, era: str) -> None:
    query = "How long is the string?"
    async with served(three_projects, era, project="kite") as h:
        own = await h.facts("search_memory", query=query)
        assert {hit["session_id"] for hit in own["hits"]} == {"of kite", "of personal"}
        assert not any(hit.get("project") for hit in own["hits"])
        everything = await h.facts("search_memory", query=query, project="*")
        assert {(hit["session_id"], hit.get("project")) for hit in everything["hits"]} == {
            ("of kite", "kite"), ("of boat", "boat"), ("of personal", None),
        }  # fmt: skip
        other = await h.facts("search_memory", query=query, project="boat")
        assert {hit["session_id"] for hit in other["hits"]} == {"of boat", "of personal"}
        assert "forty" in await h.text("build_context", query=query)
        assert "nine" not in await h.text("build_context", query=query)
        assert ', project "boat":' in await h.text("build_context", query=query, project="*")


@pytest.mark.usefixtures("meaning_installed")
async def test_what_the_person_is_comes_without_the_words_of_the_project_where_it_was_said(
    database: Path, era: str
) -> None:
    uuid, query = "6513270e-269e-4d37-b2a7-4de452e6b438", "Since when am I allergic to walnuts?"
    async with served(database, era, project="kite") as h:
        turns = said("Which string does the kite have?", "I have been allergic to walnuts since 2019.")
        await h.facts("record_messages", session_id=uuid, messages=turns)
        await h.settled()
        assert "Which string" in await h.text("search_memory", query=query)
    async with served(database, era, project="boat") as h:
        [hit] = (await h.facts("search_memory", query=query))["hits"]
        assert (hit["text"], hit["session_id"], hit.get("session_title")) == (
            "I have been allergic to walnuts since 2019.",
            uuid,
            None,
        )
        assert "Which string" not in await h.text("search_memory", query=query)
        [hit, *_] = (await h.facts("search_memory", query=query, project="kite"))["hits"]
        assert hit["session_title"] == "Which string does the kite have?"


async def test_a_session_of_another_project_is_not_entered_by_mistake(three_projects: Path, era: str) -> None:
    async with served(three_projects, era, project="kite") as h:
        told = await h.refusal("record_messages", session_id="of boat", messages=said("x"))
        assert told == (
            "invalid_input: session 'of boat' belongs to project 'boat'; send project='boat', or use another session_id"
        )
        assert "belongs to project 'boat'" in await h.refusal("build_context", session_id="of boat")
        assert "nine" in await h.text("build_context", session_id="of boat", project="boat")


async def test_a_mistyped_project_is_an_error_with_the_nearest_name(three_projects: Path, era: str) -> None:
    async with served(three_projects, era) as h:
        for tool, arguments in {
            "search_memory": {"query": "string"},
            "build_context": {},
            "record_messages": {"messages": said("x")},
            "remember": {"type": "note", "text": "x"},
        }.items():
            told = await h.refusal(tool, project="kiet", **arguments)
            assert told == "invalid_input: no project 'kiet'; did you mean 'kite'?"


async def test_of_two_projects_with_one_name_the_path_is_asked_for(database: Path, era: str, tmp_path: Path) -> None:
    for parent in ("a", "b"):
        (tmp_path / parent / "web").mkdir(parents=True)
        async with served(database, era, project=str(tmp_path / parent / "web")) as h:
            await h.facts("record_messages", session_id=parent, messages=said(f"The string of {parent}."))
    async with served(database, era) as h:
        told = await h.refusal("search_memory", query="string", project="web")
        assert "several projects are named 'web'" in told
        found = await h.facts("search_memory", query="string", project=str(tmp_path / "a" / "web"))
        assert [hit["session_id"] for hit in found["hits"]] == ["a"]


async def test_notes_are_of_the_project_and_can_be_made_personal_with_history(database: Path, era: str) -> None:
    async with served(database, era, project="kite") as h:
        note = await h.facts("remember", type="note", text="The string is kept in the blue box.")
        assert note["project"] == "kite"
        await h.facts("update_memory", record_id=note["record_ids"][0], changes={"project": None}, expected_revision=1)
        history = await h.facts("memory_history", record_id=note["record_ids"][0])
        assert "project" in json.dumps(history)
    async with served(database, era, project="boat") as h:
        assert "blue box" in await h.text("search_memory", query="Where is the string kept?")


async def test_two_projects_may_have_a_document_of_one_source(database: Path, era: str) -> None:
    for project in ("kite", "boat"):
        async with served(database, era, project=project) as h:
            source = {"source": "README.md"}
            await h.facts("remember", type="document", text=f"How the {project} is built.", fields=source)
    async with served(database, era, project="kite") as h:
        found = await h.facts("search_memory", query="How is it built?")
        assert [hit["text"] for hit in found["hits"]] == ["How the kite is built."]


async def test_nothing_is_remembered_in_an_ignored_project_and_all_can_be_read(database: Path, era: str) -> None:
    ignoring = Settings(database=address_of(database), projects=ProjectPolicy(ignored=("client",)))
    async with served(database, era, project="personal") as h:
        await h.facts("record_messages", session_id="s", messages=said("The string is red."))
    async with served(database, era, settings=ignoring, project="client") as h:
        for tool, arguments in {
            "record_messages": {"messages": said("secret plan")},
            "remember": {"type": "note", "text": "secret plan"},
        }.items():
            assert "nothing is remembered in client" in await h.refusal(tool, **arguments)
        assert "red" in await h.text("search_memory", query="Which colour has the string?")


async def test_projects_with_a_document_of_one_source_do_not_become_one(database: Path) -> None:
    async with open_memory(database) as memory:
        for project in ("old", "new"):
            await (await memory.in_project(project)).remember("document", {"text": project, "source": "a.txt"})
        with pytest.raises(Conflict, match="both projects have a document of one source; forget or move one of them"):
            await memory.projects.rename("old", "new")
        assert {name for name, _ in await memory.projects.all()} == {"old", "new"}
