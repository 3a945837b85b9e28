"""Hooks report, and prompts get what matters: through a real client, a real socket and a real process."""

import itertools
import json
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from kalito_mcp import Memory
from kalito_mcp.capture import capturer
from kalito_mcp.capture.capturer import Capture
from kalito_mcp.capture.listener import Listener
from kalito_mcp.capture.spool import Spool
from kalito_mcp.config.settings import Settings
from kalito_mcp.contexts.injector import InjectionPolicy
from kalito_mcp.domain.given import OF_HOOKS
from kalito_mcp.domain.search import SearchFilters, SearchRequest
from kalito_mcp.domain.validation import LimitsPolicy
from kalito_mcp.errors import StorageBusy
from kalito_mcp.ports.storage_policy import StoragePolicy
from kalito_mcp.runtime.database_address import LocalFiles
from kalito_mcp.switch import FOR_EVER, Switch, write_switch
from tests.flows.harness import Harness, served
from tests.server.wire import clean_environment

pytestmark = pytest.mark.anyio
STAGING = "The staging database is at db.stage.example, port 6543."
ASKED = "Which port does the staging database have?"


async def told(
    h: Harness, event: str, session: str = "s1", *, is_late: bool = False, report_id: str | None = None, **payload: Any
) -> str:
    """What a hook of Claude Code prints into the prompt."""
    base = {"session_id": session, "cwd": "/home/ann/shop"}
    report = {"host": "claude-code", "event": event, "payload": base | payload, "at_ms": 1_700_000_000_000}
    answer = await h.server.capture.take(report | ({"id": report_id} if report_id else {}), is_late=is_late)
    if not answer:
        return ""
    output = json.loads(answer)["hookSpecificOutput"]
    assert output["hookEventName"] == event
    return str(output["additionalContext"])


async def messages(h: Harness, session: str) -> list[tuple[str, str]]:
    """Role and text of the messages of a session."""
    memory = await (await h.server.opened.memory()).in_project(None)
    parts = await memory.build_context(session, 100_000)
    return [(str(one.role), one.text) for one in parts.recent_messages]


async def test_a_conversation_is_recorded_and_recalled_in_the_next(database: Path, era: str) -> None:
    async with served(database, era) as h:
        assert await told(h, "UserPromptSubmit", prompt=STAGING, prompt_id="p1") == ""
        await told(h, "Stop", last_assistant_message="Noted.", prompt_id="p1")
        assert await messages(h, "s1") == [("user", STAGING), ("assistant", "Noted.")]
        await h.settled()
        context = await told(h, "UserPromptSubmit", "s2", prompt=ASKED, prompt_id="q1")
        assert "port 6543" in context
        assert context.startswith("<kalito-memory")
        # It still sees that.
        assert "6543" not in await told(h, "UserPromptSubmit", "s2", prompt=ASKED, prompt_id="q2")
        assert await told(h, "UserPromptSubmit", "s2", prompt="Thanks, great!", prompt_id="q3") == ""


async def test_a_reply_that_is_reported_twice_is_stored_once(database: Path, era: str) -> None:
    async with served(database, era) as h:
        for _ in range(2):
            await told(h, "UserPromptSubmit", prompt=STAGING, prompt_id="p1")
            await told(h, "Stop", last_assistant_message="Noted.", prompt_id="p1")
        await told(h, "Stop", last_assistant_message="And more.", prompt_id="p1")
        assert [text for _, text in await messages(h, "s1")] == [STAGING, "Noted.", "And more."]


async def test_what_was_compacted_away_is_offered_back(database: Path, era: str) -> None:
    async with served(database, era) as h:
        await told(h, "UserPromptSubmit", prompt=STAGING, prompt_id="p1")
        await told(h, "Stop", last_assistant_message="Noted.", prompt_id="p1")
        await h.settled()
        assert "6543" not in await told(h, "UserPromptSubmit", prompt=ASKED, prompt_id="p2")
        await told(h, "PreCompact", trigger="auto")
        await told(h, "PostCompact", compact_summary="The staging database was named.", trigger="auto")
        assert "6543" in await told(h, "UserPromptSubmit", prompt=ASKED, prompt_id="p3")
        memory = await (await h.server.opened.memory()).in_project(None)
        [summary] = (await memory.build_context("s1", 100_000)).summaries
        assert summary.summary == "The staging database was named."


async def test_what_a_hook_did_not_wait_for_is_in_the_next_prompt(database: Path, era: str) -> None:
    async with served(database, era) as h:
        await told(h, "UserPromptSubmit", prompt=STAGING, prompt_id="p1")
        await told(h, "Stop", last_assistant_message="Noted.", prompt_id="p1")
        await h.settled()
        first = {"prompt": ASKED, "prompt_id": "q1"}
        unread = await told(h, "UserPromptSubmit", "s2", **first)
        assert "6543" in unread
        await told(h, "UserPromptSubmit", "s2", is_late=True, **first)
        assert await messages(h, "s2") == [("user", ASKED)]
        memory = await (await h.server.opened.memory()).in_project(None)
        by_hooks = [one for one in await memory.given.recent(session_id="s2") if one.kind in OF_HOOKS]
        assert by_hooks == [], "nobody read it"
        assert (await memory.records.get("msg_1")).usage_count == 0
        assert await told(h, "UserPromptSubmit", "s2", prompt=ASKED, prompt_id="q2") == unread
        assert any(one.kind in OF_HOOKS for one in await memory.given.recent(session_id="s2"))
        assert (await memory.records.get("msg_1")).usage_count == 1
        assert "6543" not in await told(h, "UserPromptSubmit", "s2", prompt=ASKED, prompt_id="q3")


async def test_a_conversation_is_not_given_its_own_words_even_if_nobody_waited_for_its_first_answer(
    database: Path, era: str
) -> None:
    first = {"prompt": "My name is Ann, and I never eat nuts. I still have to call Bob.", "prompt_id": "p1"}
    async with served(database, era) as h:
        await told(h, "UserPromptSubmit", "s0", prompt=STAGING, prompt_id="p0")
        await told(
            h, "Stop", "s0", last_assistant_message="I have put that port into the settings file.", prompt_id="p0"
        )
        await h.settled()
        for is_late in (False, True):
            await told(h, "UserPromptSubmit", "s1", is_late=is_late, **first)
        await told(h, "Stop", "s1", last_assistant_message="I will not suggest nuts to you.", prompt_id="p1")
        await h.settled()
        begun = await told(h, "UserPromptSubmit", "s1", prompt="Good morning!", prompt_id="p2")
        assert "6543" in begun
        assert not any(own in begun for own in ("nuts", "Bob"))
        await told(h, "PreCompact", "s1", trigger="auto")
        await told(h, "PostCompact", "s1", trigger="auto", compact_summary="The user said hello.")
        assert "never eat nuts" in await told(h, "UserPromptSubmit", "s1", prompt="And now?", prompt_id="p3")


async def test_failures_are_found_by_their_error_and_their_command(database: Path, era: str) -> None:
    async with served(database, era) as h:
        await told(h, "UserPromptSubmit", prompt="Make the tests pass.", prompt_id="p1")
        failed = {"exit_code": 1, "stderr": "ModuleNotFoundError: No module named 'frobnicate'"}
        await told(h, "PostToolUse", tool_name="Bash", tool_input={"command": "pytest -q"}, tool_response=failed)
        await told(h, "PostToolUse", tool_name="Edit", tool_input={"file_path": "src/frob.py"}, tool_response={})
        await told(h, "PostToolUse", tool_name="Bash", tool_input={"command": "pytest -q"}, tool_response={})
        await told(h, "Stop", last_assistant_message="They pass.", prompt_id="p1")
        memory = await (await h.server.opened.memory()).in_project(None)
        for query in ("frobnicate", "pytest failed", "src/frob.py"):
            page = await memory.search_memory(SearchRequest(query, filters=SearchFilters()))
            assert "What worked then: the same, after changing src/frob.py" in page.hits[0].text, query


async def test_work_that_is_reported_twice_counts_once_and_waits_for_its_reply(database: Path, era: str) -> None:
    settings = Settings(storage=StoragePolicy(busy_timeout_s=0.05))
    async with served(database, era, settings=settings) as h:
        await told(h, "UserPromptSubmit", prompt="Make the tests pass.", prompt_id="p1")
        for is_late in (False, True):
            failure = {"tool_name": "Bash", "tool_input": {"command": "make"}, "error": "no rule"}
            await told(h, "PostToolUseFailure", is_late=is_late, report_id="t1", **failure)
        await h.settled()
        with closing(sqlite3.connect(database, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(StorageBusy):
                await told(h, "Stop", last_assistant_message="Done.", prompt_id="p1")
            other.execute("ROLLBACK")
        await told(h, "Stop", is_late=True, last_assistant_message="Done.", prompt_id="p1")
        assert await messages(h, "s1") == [
            ("user", "Make the tests pass."),
            ("system", "`make` failed: no rule"),
            ("assistant", "Done."),
        ]


async def test_a_conversation_stays_in_the_project_that_it_began_in(database: Path, era: str, tmp_path: Path) -> None:
    shop, web = tmp_path / "shop", tmp_path / "web"
    for folder in (shop, web):
        (folder / ".git").mkdir(parents=True)
    async with served(database, era) as h:
        await told(h, "UserPromptSubmit", prompt=STAGING, prompt_id="p1", cwd=str(shop))
        await told(h, "Stop", last_assistant_message="Noted.", prompt_id="p1", cwd=str(web))
        h.server.capture.forget()
        await told(h, "UserPromptSubmit", prompt="Look here.", prompt_id="p2", cwd=str(web))
        await told(h, "SessionEnd", reason="other", cwd=str(web))
        await told(h, "UserPromptSubmit", prompt="And on.", prompt_id="p3", cwd=str(web))
        memory = await h.server.opened.memory()
        in_shop = await memory.in_project(str(shop))
        assert {one.id: one.message_count for one in await in_shop.conversations.recent()} == {"s1": 3, "s1~2": 1}
        # Where nothing is remembered, nothing is, in whatever conversation.
        write_switch(LocalFiles(database).switch, Switch(None, (str(web),)))
        await told(h, "UserPromptSubmit", prompt="A secret.", prompt_id="p4", cwd=str(web))
        assert [text for _, text in await messages(h, "s1~2")] == ["And on."]


async def test_with_a_higher_least_score_less_is_put_in(database: Path, era: str) -> None:
    for min_score, is_put_in in ((0.0, True), (1.0, False)):
        injection = InjectionPolicy(min_score=min_score, known_tokens=0)
        async with served(database.with_name(f"{min_score}.db"), era, settings=Settings(injection=injection)) as h:
            await told(h, "UserPromptSubmit", prompt=STAGING, prompt_id="p1")
            await h.settled()
            assert ("port 6543" in await told(h, "UserPromptSubmit", "s2", prompt=ASKED, prompt_id="q1")) == is_put_in


async def test_a_question_that_was_asked_before_comes_with_its_answer_or_not_at_all(database: Path, era: str) -> None:
    asked = "What does exit code 137 mean?"
    async with served(database, era) as h:
        await told(h, "UserPromptSubmit", "s1", prompt=asked, prompt_id="p1")
        await told(h, "Stop", "s1", last_assistant_message="SIGKILL, mostly by the kernel for lack of memory.")
        await told(h, "UserPromptSubmit", "s2", prompt=asked, prompt_id="p2")
        await h.settled()
        context = await told(h, "UserPromptSubmit", "s3", prompt=asked, prompt_id="p3")
        assert "assistant: SIGKILL, mostly by the kernel" in context
        assert context.count(asked) == 1
    async with served(database.with_name("other.db"), era) as h:
        await told(h, "UserPromptSubmit", "s1", prompt=asked, prompt_id="p1")
        await h.settled()
        assert await told(h, "UserPromptSubmit", "s2", prompt=asked, prompt_id="p2") == ""


async def test_what_is_known_comes_first_and_once(database: Path, era: str) -> None:
    async with served(database, era) as h:
        await told(h, "UserPromptSubmit", prompt="My name is Ann, and I never eat nuts.", prompt_id="p1")
        await h.settled()
        known = await told(h, "SessionStart", "s2", source="startup")
        assert known.splitlines()[1].startswith("Known of the user and the project.")
        assert "never eat nuts" in known
        assert await told(h, "UserPromptSubmit", "s2", prompt="Do I eat nuts?", prompt_id="q1") == ""


async def test_what_is_known_comes_with_its_answer_if_it_is_said_again(database: Path, era: str) -> None:
    error = "error[E0502]: cannot borrow `self.valves` as mutable because it is also borrowed as immutable"
    async with served(database, era) as h:
        await told(h, "UserPromptSubmit", prompt=f"cargo says {error}", prompt_id="p1")
        await told(h, "Stop", last_assistant_message="Clone the ids before the loop.", prompt_id="p1")
        await h.facts("create_pin", session_id="s1", content=f"cargo says {error}")
        for number, later in enumerate(("Now pump water into the long bed.", "And into the round bed.")):
            await told(h, "UserPromptSubmit", prompt=later, prompt_id=f"later {number}")
            await told(h, "Stop", last_assistant_message=f"The pump runs for bed {number}.")
        begun = await told(h, "SessionStart", "s2", source="startup")
        assert error in begun
        assert "Clone the ids" not in begun
        again = error.replace("valves", "pumps")
        assert "Clone the ids" in await told(h, "UserPromptSubmit", "s2", prompt=again, prompt_id="q1")


async def test_a_session_that_ended_goes_on_under_another_name(database: Path, era: str) -> None:
    async with served(database, era) as h:
        await told(h, "UserPromptSubmit", prompt=STAGING, prompt_id="p1")
        await told(h, "SessionEnd", reason="other")
        assert (await h.stats("s1"))["state"] == "FINALIZED"
        await told(h, "UserPromptSubmit", prompt="I am back.", prompt_id="p2")
        assert await messages(h, "s1~2") == [("user", "I am back.")]
        h.server.capture.forget()
        await told(h, "UserPromptSubmit", prompt="Still here.", prompt_id="p3")
        assert await messages(h, "s1~2") == [("user", "I am back."), ("user", "Still here.")]


async def test_a_new_conversation_whose_name_begins_another_s_is_not_resumed(database: Path, era: str) -> None:
    async with served(database, era) as h:
        for name in ("c21", "c2"):
            await told(h, "UserPromptSubmit", "facts", prompt=STAGING, prompt_id=f"before {name}")
            await h.settled()
            assert "6543" in await told(h, "UserPromptSubmit", name, prompt=ASKED, prompt_id=name)


async def test_a_resumed_conversation_is_not_given_what_it_still_sees(database: Path, era: str) -> None:
    async with served(database, era) as h:
        await told(h, "UserPromptSubmit", "s1", prompt="My name is Ann, and I never eat nuts.", prompt_id="p1")
        await h.settled()
        assert "nuts" in await told(h, "UserPromptSubmit", "s2", prompt="Do I eat nuts?", prompt_id="q1")
        await told(h, "UserPromptSubmit", "s2", prompt=STAGING, prompt_id="q2")
        await told(h, "SessionEnd", "s2", reason="other")
        await h.settled()
        h.server.capture.forget()
        for number, asked in enumerate((ASKED, ASKED, "Do I eat nuts?")):
            assert await told(h, "UserPromptSubmit", "s2", prompt=asked, prompt_id=f"r{number}") == ""
        assert "port 6543" in await told(h, "UserPromptSubmit", "s3", prompt=ASKED, prompt_id="t1")
        await told(h, "PreCompact", "s2", trigger="auto")
        assert "port 6543" in await told(h, "UserPromptSubmit", "s2", prompt=ASKED, prompt_id="r3")


async def summaries(h: Harness, session: str) -> list[str]:
    memory = await (await h.server.opened.memory()).in_project(None)
    return [one.summary for one in (await memory.build_context(session, 100_000)).summaries]


async def test_servers_know_what_another_one_has_put_into_a_conversation(database: Path, era: str) -> None:
    folder = LocalFiles(database).conversations
    async with served(database, era) as one, served(database, era) as other:
        for h in (one, other):
            h.server.capture.share_in(folder)
        await told(one, "UserPromptSubmit", prompt=STAGING, prompt_id="p1")
        await one.settled()
        assert "6543" in await told(one, "UserPromptSubmit", "s2", prompt=ASKED, prompt_id="q1")
        assert await told(other, "UserPromptSubmit", "s2", prompt=ASKED, prompt_id="q2") == ""
        await told(one, "PreCompact", "s2", trigger="auto")
        other.server.capture.forget()
        assert "6543" in await told(other, "UserPromptSubmit", "s2", prompt=ASKED, prompt_id="q3")
        assert await told(one, "UserPromptSubmit", "s2", prompt=ASKED, prompt_id="q4") == ""
    assert all("6543" not in file.read_text() for file in folder.iterdir())
    for file in folder.iterdir():
        file.write_text("{")
    async with served(database, era) as h:
        h.server.capture.share_in(folder)
        await told(h, "UserPromptSubmit", "s2", prompt="And now?", prompt_id="q5")
        assert (await messages(h, "s2"))[-1] == ("user", "And now?")


async def test_the_summary_of_a_short_conversation_becomes_its_summary(database: Path, era: str) -> None:
    async with served(database, era) as h:
        await told(h, "UserPromptSubmit", prompt=STAGING, prompt_id="p1")
        for _ in range(2):
            await told(h, "PostCompact", trigger="auto", compact_summary="The port was named. ", report_id="c1")
        assert await summaries(h, "s1") == ["The port was named."]
        assert await messages(h, "s1") == [("user", STAGING)]


async def test_the_summary_of_a_long_conversation_is_kept_as_a_message(database: Path, era: str) -> None:
    async with served(database, era) as h:
        for number in range(31):
            await told(h, "UserPromptSubmit", prompt=f"Step {number} is to lay cable {number}.", prompt_id=f"p{number}")
        await h.settled()
        made = await summaries(h, "s1")
        assert made
        for _ in range(2):
            await told(h, "PostCompact", trigger="auto", compact_summary="All cables were named.", report_id="c1")
        assert await summaries(h, "s1") == made
        assert (await messages(h, "s1"))[-1] == ("system", "All cables were named.")


async def test_the_summary_of_a_conversation_that_was_resumed_to_be_compacted_is_kept(database: Path, era: str) -> None:
    async with served(database, era) as h:
        await told(h, "UserPromptSubmit", prompt=STAGING, prompt_id="p1")
        await told(h, "SessionEnd", reason="other")
        h.server.capture.forget()
        await told(h, "PreCompact", trigger="manual")
        for _ in range(2):
            await told(h, "PostCompact", trigger="manual", compact_summary="The port was named.", report_id="c1")
        assert await messages(h, "s1~2") == [("system", "The port was named.")]


async def test_while_paused_and_in_excluded_folders_nothing_is_written(database: Path, era: str) -> None:
    async with served(database, era) as h:
        write_switch(LocalFiles(database).switch, Switch(FOR_EVER))
        assert await told(h, "UserPromptSubmit", prompt=STAGING, prompt_id="p1") == ""
        refused = await h.refusal("record_messages", messages=[{"role": "user", "text": STAGING}], session_id="s1")
        assert "paused" in refused
        assert "paused" in await h.refusal("create_pin", content=STAGING, session_id="s1")
        write_switch(LocalFiles(database).switch, Switch(None, ("/home/ann/shop",)))
        await told(h, "UserPromptSubmit", prompt=STAGING, prompt_id="p2")
        await told(h, "UserPromptSubmit", prompt=STAGING, prompt_id="p3", cwd="/home/ann/shop/web")
        write_switch(LocalFiles(database).switch, Switch())
        await told(h, "UserPromptSubmit", prompt="Hello.", prompt_id="p4")
        assert await messages(h, "s1") == [("user", "Hello.")]


async def test_the_switch_is_read_as_paused_if_it_is_damaged(database: Path, era: str) -> None:
    async with served(database, era) as h:
        write_switch(LocalFiles(database).switch, Switch())
        LocalFiles(database).switch.write_text("{", encoding="utf-8")
        refused = await h.refusal("record_messages", messages=[{"role": "user", "text": "Hi"}], session_id="s1")
        assert "kalito-mcp resume" in refused


async def until(is_so: Callable[[], bool]) -> None:
    """Wait for something that another task or process does."""
    with anyio.fail_after(20):
        for _ in itertools.count():
            if is_so():
                return
            await anyio.sleep(0.01)


def spooled(database: Path) -> int:
    """How many events are not recorded yet."""
    return len(list(LocalFiles(database).spool.iterdir()))


@asynccontextmanager
async def listening(h: Harness, database: Path) -> AsyncIterator[None]:
    """The server listens to hooks that are commands."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(Listener(LocalFiles(database), h.server.capture.take).run)
        await until(lambda: any(LocalFiles(database).hooks.glob("server-*.json")))
        yield
        tasks.cancel_scope.cancel()


async def hook(
    database: Path, event: str, given: bytes, host: str = "claude-code"
) -> subprocess.CompletedProcess[bytes]:
    """`kalito-hook` in a process of its own."""
    command = [sys.executable, "-c", "from kalito_mcp.cli.hook import main; main()", host, event]
    environment = clean_environment(KALITO_DATABASE=str(database))
    return await anyio.run_process(command, input=given, env=environment, check=False)


def prompt(text: str, session: str = "s2") -> bytes:
    return json.dumps({"session_id": session, "cwd": "/home/ann/shop", "prompt": text}).encode()


async def test_a_hook_that_is_a_command_reaches_the_server(database: Path, era: str) -> None:
    async with served(database, era) as h:
        await told(h, "UserPromptSubmit", prompt=STAGING, prompt_id="p1")
        await h.settled()
        async with listening(h, database):
            done = await hook(database, "UserPromptSubmit", prompt(ASKED))
            if not LocalFiles(database).spool.exists():  # a busy machine may be too slow for it
                assert b"6543" in done.stdout
            assert done.returncode == 0
            await until(lambda: not LocalFiles(database).spool.exists() or spooled(database) == 0)
            assert await messages(h, "s2") == [("user", ASKED)]


async def test_what_no_server_takes_is_taken_in_later_and_once(database: Path, era: str) -> None:
    done = await hook(database, "UserPromptSubmit", prompt("The zebra is called Mo."))
    assert (done.returncode, done.stdout) == (0, b"")
    assert not database.exists()
    async with served(database, era) as h, listening(h, database):
        await until(lambda: spooled(database) == 0)
        assert await messages(h, "s2") == [("user", "The zebra is called Mo.")]


@pytest.mark.parametrize("given", [b"", b"{", b"[1]", b'{"session_id": 5}', b"\xff\xfe", b'{"prompt": "Hi"}'])
async def test_a_hook_never_fails_its_host(database: Path, given: bytes) -> None:
    done = await hook(database, "UserPromptSubmit", given)
    assert (done.returncode, done.stdout) == (0, b"")


async def test_while_paused_a_hook_leaves_nothing(database: Path) -> None:
    write_switch(LocalFiles(database).switch, Switch(FOR_EVER))
    done = await hook(database, "UserPromptSubmit", prompt("Hi"))
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert [file.name for file in LocalFiles(database).hooks.iterdir()] == ["switch.json"]


async def test_a_stranger_on_the_port_is_not_listened_to(database: Path, era: str) -> None:
    async with served(database, era) as h, listening(h, database):
        [place] = LocalFiles(database).hooks.glob("server-*.json")
        assert place.stat().st_mode & 0o077 == 0
        port = json.loads(place.read_text(encoding="utf-8"))["port"]
        event = {"host": "claude-code", "event": "UserPromptSubmit", "payload": json.loads(prompt("Hi"))}
        async with await anyio.connect_tcp("127.0.0.1", port) as stream:
            await stream.receive()  # the greeting
            await stream.send(b"guessed\n" + json.dumps(event).encode() + b"\n")
            with pytest.raises(anyio.EndOfStream):
                await stream.receive()
        memory = await (await h.server.opened.memory()).in_project(None)
        assert await memory.conversations.recent() == []


async def test_a_prompt_does_not_wait_for_a_database_that_is_busy(database: Path, era: str) -> None:
    settings = Settings(storage=StoragePolicy(busy_timeout_s=2.0))
    async with served(database, era, settings=settings) as h, anyio.create_task_group() as tasks:
        await told(h, "UserPromptSubmit", prompt="Hello.", prompt_id="p0")
        listener = Listener(LocalFiles(database), h.server.capture.take)
        h.server.capture.keep, h.server.capture.tasks = listener.keep, tasks
        await h.settled()
        with closing(sqlite3.connect(database, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            # It returns although the other one goes on writing.
            assert await told(h, "UserPromptSubmit", prompt=STAGING, prompt_id="p1") == ""
            assert spooled(database) == 1
            other.execute("ROLLBACK")
        tasks.start_soon(listener.run)
        await until(lambda: spooled(database) == 0)
        assert await messages(h, "s1") == [("user", "Hello."), ("user", STAGING)]
        tasks.cancel_scope.cancel()


async def test_the_first_prompt_of_a_server_waits_for_its_context_and_a_later_one_as_long_as_is_set(
    database: Path, era: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits: list[float] = []
    fail_after = anyio.fail_after

    def limited(delay: float) -> Any:
        limits.append(delay)
        return fail_after(delay)

    settings = Settings(injection=InjectionPolicy(timeout_s=1.5))
    async with served(database, era, settings=settings) as h:
        await told(h, "UserPromptSubmit", "s0", prompt=STAGING, prompt_id="p1")
        await h.settled()
        capture = Capture(h.server.opened.memory)
        monkeypatch.setattr(capturer.anyio, "fail_after", limited)
        for number in range(2):
            payload = {"session_id": f"s{number}", "cwd": "/home/ann/shop", "prompt": ASKED, "prompt_id": "q"}
            report = {"host": "claude-code", "event": "UserPromptSubmit", "payload": payload}
            await capture.take(report)
    assert limits == [2.0, 1.5]


async def test_an_event_that_can_never_be_recorded_keeps_no_other_waiting(database: Path, era: str) -> None:
    spool = Spool(LocalFiles(database).spool)
    for place, at_ms in ((1, 10**20), (2, 2)):
        event = {
            "host": "claude-code",
            "event": "UserPromptSubmit",
            "payload": json.loads(prompt("Hi")),
            "at_ms": at_ms,
        }
        spool.put(event, at_ms=place, event_id=str(place))
    async with served(database, era) as h, listening(h, database):
        await until(lambda: spool.count() == 0)
        await until(lambda: spooled(database) == 1)
        assert await messages(h, "s2") == [("user", "Hi")]
        assert [file.suffix for file in LocalFiles(database).spool.iterdir()] == [".broken"]


async def test_copilot_is_answered_in_its_own_words_and_its_reply_is_read_where_it_points(
    database: Path, era: str, tmp_path: Path
) -> None:
    transcript = tmp_path / "events.jsonl"
    base: dict[str, object] = {"sessionId": "c1", "cwd": "/home/ann/shop"}
    for event, more in (
        ("userPromptSubmitted", {"prompt": STAGING}),
        ("agentStop", {"transcriptPath": str(transcript), "timestamp": 5}),
    ):
        done = await hook(database, event, json.dumps(base | more).encode(), "copilot")
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    reply = {"type": "assistant.message", "data": {"content": "Noted."}}
    stop = {"type": "hook.start", "data": {"hookType": "agentStop", "input": {"timestamp": 5}}}
    transcript.write_text(f"{json.dumps(reply)}\n{json.dumps(stop)}\n")
    async with served(database, era) as h, listening(h, database):
        await until(lambda: spooled(database) == 0)
        assert await messages(h, "c1") == [("user", STAGING), ("assistant", "Noted.")]
        await h.settled()
        assert "6543" in await h.text("search_memory", query=ASKED)  # the first search loads what others find loaded
        payload = base | {"sessionId": "c2", "prompt": ASKED}
        report = {"host": "copilot", "event": "userPromptSubmitted", "payload": payload}
        answer = json.loads(await h.server.capture.take(report))
        assert list(answer) == ["additionalContext"]
        assert "port 6543" in answer["additionalContext"]


async def test_a_prompt_does_not_wait_for_a_memory_that_cannot_be_opened(
    database: Path, era: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(capturer, "_MOST_OPENING_S", 0.05)
    kept: list[Mapping[str, Any]] = []

    async def never() -> Memory:
        await anyio.sleep_forever()
        raise AssertionError

    capture = Capture(never)
    capture.keep = kept.append
    payload = {"session_id": "s2", "cwd": "/home/ann/shop", "prompt": "Hi", "prompt_id": "q1"}
    report = {"host": "claude-code", "event": "UserPromptSubmit", "payload": payload}
    assert await capture.take(report) == ""
    assert kept == [report]
    async with served(database, era) as h:
        for _ in range(2):
            await h.server.capture.take(kept[0], is_late=True)
        assert await messages(h, "s2") == [("user", "Hi")]


async def test_what_was_said_before_a_pause_is_taken_in_after_it(database: Path, era: str) -> None:
    await hook(database, "UserPromptSubmit", prompt("The zebra is called Mo."))
    write_switch(LocalFiles(database).switch, Switch(FOR_EVER))
    async with served(database, era) as h, listening(h, database):
        await anyio.lowlevel.checkpoint()  # the first look into the spool
        assert spooled(database) == 1
        write_switch(LocalFiles(database).switch, Switch())
        await until(lambda: spooled(database) == 0)
        assert await messages(h, "s2") == [("user", "The zebra is called Mo.")]


@pytest.mark.parametrize("folder", ["/home/ann/" + "deep/" * 100, "/home/ann/two\nlines", "/home/ann/shop"])
async def test_a_conversation_is_kept_whatever_its_folder_is_called(database: Path, era: str, folder: str) -> None:
    async with served(database, era) as h:
        await told(h, "UserPromptSubmit", prompt=STAGING, prompt_id="p1", cwd=folder)
        assert await messages(h, "s1") == [("user", STAGING)]
        await h.settled()
        memory = await h.server.opened.memory()
        [session] = await memory.conversations.recent()
        assert session.project is not None


async def test_a_text_that_is_too_long_or_no_unicode_is_kept_as_far_as_it_goes(database: Path, era: str) -> None:
    async with served(database, era, settings=Settings(limits=LimitsPolicy(max_text_bytes=100))) as h:
        await told(h, "UserPromptSubmit", prompt="Cafés " * 60, prompt_id="p1")
        await told(h, "UserPromptSubmit", prompt="An \ud800 odd \0 one.", prompt_id="p2")
        [(_, long), (_, odd)] = await messages(h, "s1")
        assert long.startswith("Cafés Cafés")
        assert long.endswith("… [the rest was too long to be kept]")
        assert 90 < len(long.encode()) <= 100
        assert odd == "An ? odd \ufffd one."


async def test_nothing_that_a_hook_sends_ends_the_server(database: Path, era: str) -> None:
    deep = "[" * 100_000
    async with served(database, era) as h, listening(h, database):
        await hook(
            database, "PostToolUse", b'{"session_id": "s1", "tool_name": "Bash", "source": [], "reason": {}}', "codex"
        )
        await hook(database, "Stop", f'{{"session_id": "s1", "last_assistant_message": {deep}'.encode(), "codex")
        [place] = LocalFiles(database).hooks.glob("server-*.json")
        server = json.loads(place.read_text())
        async with await anyio.connect_tcp("127.0.0.1", server["port"]) as stream:
            await stream.send(f"{server['token']}\n{deep}\n".encode())
            with pytest.raises(anyio.EndOfStream):
                while True:
                    await stream.receive()
        await hook(database, "UserPromptSubmit", prompt("The zebra is called Mo."))
        await until(lambda: not LocalFiles(database).spool.exists() or spooled(database) == 0)
        assert await messages(h, "s2") == [("user", "The zebra is called Mo.")]
