"""What every source of conversations has to stand, with the same checks: each message once, whole and in order."""

import shutil
from pathlib import Path

import pytest

from bench.format_samples import SAMPLES, Talk
from kalito_mcp.exchange.conversation import Conversation, Reading
from kalito_mcp.exchange.importer import Importer, Report, found_in
from kalito_mcp.exchange.programs import SOURCES
from kalito_mcp.memory import Memory
from kalito_mcp.wiring import open_memory

pytestmark = pytest.mark.anyio
TEXTS = [text for _, text in Talk().said]
NOTES = {"claude-mem", "server-memory", "basic-memory", "instructions", "mem0", "openmemory"}
WITHOUT_FOLDER = {"gemini", "cline", "roo", "vscode", "chatgpt", "claude-ai"}
"""Their folder stands in another file, or nowhere."""


def test_the_table_has_every_source() -> None:
    assert SAMPLES.keys() == SOURCES.keys()


async def imported(memory: Memory, name: str, path: Path) -> Report:
    return await Importer(memory).run(found_in(SOURCES[name], [path]))


async def said(memory: Memory) -> list[str]:
    sessions = await memory.conversations.recent(limit=100)
    return [
        turn.text for one in sessions async for turns in memory.conversations.turns(one) for turn in turns if turn.text
    ]


@pytest.mark.parametrize("name", sorted(SAMPLES.keys() - NOTES))
async def test_a_file_that_is_torn_grows_is_copied_and_read_again_gives_each_message_once(
    tmp_path: Path, name: str
) -> None:
    file, write = SAMPLES[name]
    path = tmp_path / "task" / file
    path.parent.mkdir()
    async with open_memory(tmp_path / "memory.db") as memory:
        write(path, Talk(Talk().said[:2]))
        whole = path.read_bytes()
        if not whole.startswith(b"SQLite"):  # a database is never cut short while it grows
            path.write_bytes(whole[:-20])
            await imported(memory, name, path)
            path.write_bytes(whole)
        await imported(memory, name, path)
        assert await said(memory) == TEXTS[:2]
        write(path, Talk())
        await imported(memory, name, path)
        assert await said(memory) == TEXTS
        copy = tmp_path / "task copy"
        shutil.copytree(path.parent, copy)
        for one in (path, copy / file):
            report = await imported(memory, name, one)
            assert report.messages == 0
        assert await said(memory) == TEXTS


@pytest.mark.parametrize("name", sorted(SAMPLES.keys() - NOTES))
async def test_a_folder_of_another_system_and_bytes_that_are_not_utf_8_are_kept(tmp_path: Path, name: str) -> None:
    file, write = SAMPLES[name]
    path = tmp_path / file
    write(path, Talk(folder="c:\\work\\kite"))
    if path.suffix != ".zip":
        path.write_bytes(path.read_bytes().replace(b"ferry", b"f\xffrry"))
    async with open_memory(tmp_path / "memory.db") as memory:
        await imported(memory, name, path)
        [session] = await memory.conversations.recent(limit=100)
        assert session.project == (None if name in WITHOUT_FOLDER else "C:\\work\\kite")
        found = await said(memory)
    assert found == [text if path.suffix == ".zip" else text.replace("ferry", "f\ufffdrry") for text in TEXTS]


def test_both_layouts_of_copilot_are_the_same_conversation(tmp_path: Path) -> None:
    _, write = SAMPLES["copilot"]
    (tmp_path / "session-state" / "c1").mkdir(parents=True)
    paths = [tmp_path / "session-state" / "c1.jsonl", tmp_path / "session-state" / "c1" / "events.jsonl"]
    for path in paths:
        write(path, Talk())
    (tmp_path / "session-state" / "c1" / "other.jsonl").touch()
    source = SOURCES["copilot"]
    assert list(source.within(tmp_path / "session-state")) == list(source.within(tmp_path)) == sorted(paths)
    read = [one for path in paths for one in source.read(Reading(path)) if isinstance(one, Conversation)]
    first, second = ((one.session_id, [turn.key for turn in one.turns]) for one in read)
    assert first == second


LONGER = "It leaves from pier 4, at noon."
"""It has other words, too: a text under the same id is the same message."""
WITHOUT_IDS = {"cline", "roo", "zed"}
"""Of answers, which then are the same only if they begin with the same words."""


@pytest.mark.parametrize(
    "name", ["chatgpt", "claude-ai", "cursor", "gemini", "opencode", "vscode", *sorted(WITHOUT_IDS)]
)
async def test_a_message_of_which_the_source_has_more_is_completed_as_an_edit(tmp_path: Path, name: str) -> None:
    file, write = SAMPLES[name]
    path = tmp_path / file
    longer = f"{TEXTS[1]} And then?" if name in WITHOUT_IDS else LONGER
    said_then = Talk().said
    said_later = tuple((role, longer if text == TEXTS[1] else text) for role, text in said_then)
    async with open_memory(tmp_path / "memory.db") as memory:
        write(path, Talk(said_then))
        await imported(memory, name, path)
        write(path, Talk(said_later))
        report = await imported(memory, name, path)
        assert (report.messages, report.completed) == (0, 1)
        assert await said(memory) == [text for _, text in said_later]
        await memory.records.revert("msg_2", 1)
        # A shorter one changes nothing, and what a person took back stays as it is.
        for talk in (Talk(said_then), Talk(said_later)):
            write(path, talk)
            assert (await imported(memory, name, path)).completed == 0
        assert await said(memory) == TEXTS
        await memory.update_memory("msg_2", {"text": "At pier 5."}, expected_revision=3)
        write(path, Talk((*said_later, ("user", "Thanks"), ("assistant", "Gladly."))))
        await imported(memory, name, path)
        assert await said(memory) == [TEXTS[0], "At pier 5.", *TEXTS[2:], "Thanks", "Gladly."]


async def test_what_a_person_edited_or_forgot_is_not_completed(tmp_path: Path) -> None:
    path = tmp_path / "conversations.json"
    _, write = SAMPLES["chatgpt"]
    async with open_memory(tmp_path / "memory.db") as memory:
        write(path, Talk())
        await imported(memory, "chatgpt", path)
        await memory.update_memory("msg_2", {"text": "At pier 5."}, expected_revision=1)
        await memory.forget("msg_4")
        write(path, Talk(tuple((role, f"{text}\nAnd more.") for role, text in Talk().said)))
        assert (await imported(memory, "chatgpt", path)).completed == 2
        texts = [f"{TEXTS[0]}\nAnd more.", "At pier 5.", f"{TEXTS[2]}\nAnd more.", TEXTS[3]]
        assert await said(memory) == texts
