"""Erased words, whatever was made of them, and secrets that were never kept are in no file."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from kalito_mcp.domain.records import CreatePinRequest, NewMessage, Role
from kalito_mcp.memory import Memory
from kalito_mcp.wiring import open_memory
from tests.safety.synthetic_secrets import synthetic_secrets
from tests.scripted import START_MS

pytestmark = pytest.mark.anyio

CANARY: Final = "zanzibarquokka"


def holding(folder: Path, word: str) -> list[str]:
    """The files below the folder that hold the word, as raw bytes in any case."""
    paths = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return [path.name for path in paths if word.lower().encode() in path.read_bytes().lower()]


def spoken(*texts: str) -> list[NewMessage]:
    """A question and an answer after the other, a second apart."""
    return [
        NewMessage(Role.USER if place % 2 == 0 else Role.ASSISTANT, text, created_at=START_MS + place * 1000)
        for place, text in enumerate(texts)
    ]


TALK: Final = spoken(
    f"What did we call the boat? I decided on {CANARY}.",
    f"The boat is called {CANARY}, and lies in the harbour.",
    "Where is the harbour?",
    "Behind the market.",
    *(f"And what about the {thing}?" for thing in ("sails", "engine", "anchor", "paint", "papers", "mooring")),
)


async def remember_it(memory: Memory) -> list[str]:
    """The canary in every place that a record may leave it; the ids of the records that say it."""
    recorded = await memory.record_messages("trip", TALK)
    pin = await memory.create_pin(CreatePinRequest("trip", f"Boat: {CANARY}", source_message_id="msg_1"))
    parts = await memory.remember("document", {"text": f"# {CANARY}\n\nA boat.", "source": f"{CANARY}.md"})
    [task] = await memory.remember("task", {"text": f"Paint {CANARY}", "tags": [CANARY]})
    await memory.update_memory(task.id, {"text": "Paint the boat"}, expected_revision=1)
    await memory.settled()
    await memory.conversations.summarize("trip")
    await memory.record_feedback("msg_2", "up", f"Yes, {CANARY}!")
    await memory.finalize_session("trip")
    return [*recorded.message_ids[:2], pin.id, *(part.id for part in parts), task.id]


async def test_an_erased_word_is_in_no_file_also_after_a_restart_and_an_older_snapshot(tmp_path: Path) -> None:
    folder, kept_elsewhere = tmp_path / "data", tmp_path / "older.json"
    database = folder / "memory.db"
    async with open_memory(database) as memory:
        ids = await remember_it(memory)
        snapshots = folder / "memory.db.snapshots"
        [snapshot] = snapshots.glob("*.json")
        shutil.copy(snapshot, kept_elsewhere)
        assert CANARY in kept_elsewhere.read_text()
        report = await memory.purge(ids)
        assert report.remaining == {}
        assert holding(folder, CANARY) == []
    assert holding(folder, CANARY) == []

    async with open_memory(database) as memory:
        older = snapshots / "older.json"
        shutil.copy(kept_elsewhere, older)
        await memory.orchestrator().restore_snapshot("older")
        older.unlink()
        assert (await memory.record_messages("trip again", TALK)).new_count == len(TALK) - 2
        await memory.settled()
        await memory.finalize_session("trip again")
        assert holding(folder, CANARY) == []


async def test_no_secret_is_ever_on_the_disk(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = tmp_path / "data"
    caplog.set_level("DEBUG")
    made = list(synthetic_secrets(20))
    assert len(made) >= 300
    async with open_memory(folder / "memory.db") as memory:
        texts = [text for _, text, _ in made]
        for start in range(0, len(texts), 100):
            await memory.record_messages("s", spoken(*texts[start : start + 100]))
        for text in texts[::20]:
            await memory.create_pin(CreatePinRequest("s", text))
            await memory.remember("note", {"text": text, "title": text[:60].replace("\n", " ") or "none"})
        await memory.settled()
        await memory.finalize_session("s")
    raw = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert {path.suffix for path in raw} >= {".db", ".json"}
    raw[tmp_path / "log"] = caplog.text.encode()
    assert [(kind, path.name) for path, kind in _found(raw, made)] == []


def _found(raw: dict[Path, bytes], made: list[tuple[str, str, str]]) -> Iterator[tuple[Path, str]]:
    for path, content in raw.items():
        for kind, _, secret in made:
            if secret.encode() in content:
                yield path, kind
