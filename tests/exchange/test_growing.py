"""A transcript is imported while its host writes it, replaces it or cuts it short: each message once, and none lost."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from kalito_mcp.exchange.importer import Importer, found_in
from kalito_mcp.exchange.programs import SOURCES
from kalito_mcp.memory import Memory
from kalito_mcp.wiring import open_memory
from tests.exchange.files import SESSION, Transcript
from tests.server import prepared

pytestmark = pytest.mark.anyio
SOURCE = SOURCES["claude-code"]
WRITER = """
import os, random, sys
whole, place, chance = open(sys.argv[1], "rb").read(), 0, random.Random(7)
out = os.open(sys.argv[2], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
for _ in sys.stdin:
    place += os.write(out, whole[place : place + chance.randrange(1, 300)])
    print(place, flush=True)
"""


def writing(whole: Path, path: Path) -> subprocess.Popen[str]:
    """A process that writes a piece of the file for each line that it is told, and says how much there is then."""
    command = [sys.executable, "-c", WRITER, str(whole), str(path)]
    return prepared.start(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)


def talk(count: int, first: int = 0) -> Transcript:
    told = Transcript()
    for number in range(first, first + count):
        told.user(f"Where is boat {number}, and what is it called in Größe {number}?")
    return told


async def said(memory: Memory) -> list[str]:
    session = await memory.conversations.get(SESSION)
    assert session is not None
    return [turn.text async for turns in memory.conversations.turns(session) for turn in turns]


def texts(told: Transcript) -> list[str]:
    return [str(record["message"]["content"]) for record in told.records]


async def test_a_growing_transcript_is_read_up_to_its_last_whole_line(tmp_path: Path) -> None:
    told, path = talk(40), tmp_path / "live" / f"{SESSION}.jsonl"
    path.parent.mkdir()
    path.touch()
    imported = torn = 0
    async with open_memory(tmp_path / "memory.db") as memory:
        whole = told.write(tmp_path)
        with writing(whole, path) as writer:
            assert writer.stdin is not None
            assert writer.stdout is not None
            written = 0
            while written < whole.stat().st_size:
                writer.stdin.write("\n")
                # It writes while the import reads.
                report = await Importer(memory).run(found_in(SOURCE, [path]))
                assert report.present == 0
                assert set(report.skipped) <= {"torn last line"}
                imported += report.messages
                torn += report.skipped["torn last line"]
                written = int(writer.stdout.readline())
        assert imported
        assert torn
        report = await Importer(memory).run(found_in(SOURCE, [path]))
        assert imported + report.messages == 40
        assert await said(memory) == texts(told)


@pytest.mark.parametrize("is_longer", [True, False])
async def test_a_transcript_that_is_replaced_while_it_is_read_is_read_again(tmp_path: Path, is_longer: bool) -> None:
    path = talk(20).write(tmp_path)
    (tmp_path / "new").mkdir()
    other = Transcript()
    for number in range(40 if is_longer else 3):
        other.user(f"Another question, number {number}", uuid=f"new-{number}")
    new = other.write(tmp_path / "new")

    def replace(_done: int, messages: int) -> None:
        if messages and new.exists():
            new.replace(path)

    async with open_memory(tmp_path / "memory.db") as memory:
        await Importer(memory, progress=replace).run(found_in(SOURCE, [path]))
        assert not new.exists()
        await Importer(memory).run(found_in(SOURCE, [path]))
        assert await said(memory) == [*texts(talk(20)), *texts(other)]


async def test_a_transcript_that_was_cut_short_and_grew_again_is_read_from_its_beginning(tmp_path: Path) -> None:
    path = talk(10).write(tmp_path)
    whole = path.read_bytes()
    async with open_memory(tmp_path / "memory.db") as memory:
        await Importer(memory).run(found_in(SOURCE, [path]))
        path.write_bytes(whole[: len(whole) // 2])
        report = await Importer(memory).run(found_in(SOURCE, [path]))
        assert (report.messages, report.present) == (0, 5)
        assert report.skipped == {"torn last line": 1}
        line = whole.splitlines(keepends=True)[5]
        head = b"".join(whole.splitlines(keepends=True)[:5])
        added = json.dumps({**json.loads(line), "uuid": "new", "message": {"role": "user", "content": "And the tram?"}})
        path.write_bytes(head + line + added.encode() + b"\n")
        report = await Importer(memory).run(found_in(SOURCE, [path]))
        assert (report.messages, report.present) == (1, 1)
        assert (await said(memory))[-1] == "And the tram?"


async def test_a_transcript_that_goes_away_while_it_is_read_is_no_error(tmp_path: Path) -> None:
    path = talk(3).write(tmp_path)
    async with open_memory(tmp_path / "memory.db") as memory:
        report = await Importer(memory, progress=lambda _done, _messages: path.unlink(missing_ok=True)).run(
            found_in(SOURCE, [path])
        )
        assert report.messages == 3
        [file] = found_in(SOURCE, [talk(4).write(tmp_path)])
        path.unlink()
        assert (await Importer(memory).run([file])).unreadable == [str(path)]
