"""Two processes edit the same records at random. The history is correct, and nothing is lost."""

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kalito_mcp.domain.memory_records import DELETED_AT, Editor, EditorType, MemoryRecord
from kalito_mcp.domain.records import CreatePinRequest, NewMessage, Role
from kalito_mcp.errors import Conflict, RevisionConflict
from kalito_mcp.memory import Memory
from kalito_mcp.wiring import open_memory
from tests.scripted import CountedIds, ScriptedClock

pytestmark = pytest.mark.anyio

WORDS = ("Oslo", "Bergen", "May 3", "a cabin", "the blue box", "Ines", "nuts")


class Witness:
    """What a record should be: every version's content, and when it came."""

    def __init__(self, record: MemoryRecord, at_ms: int) -> None:
        self.id = record.id
        self.versions: list[tuple[int, Mapping[str, Any]]] = [(at_ms, dict(record.content))]

    @property
    def revision(self) -> int:
        return len(self.versions)

    @property
    def content(self) -> Mapping[str, Any]:
        return self.versions[-1][1]

    def see(self, record: MemoryRecord, at_ms: int) -> None:
        if record.content != self.content:
            self.versions.append((at_ms, dict(record.content)))
        assert record.revision == self.revision


async def edit(memory: Memory, witness: Witness, clock: ScriptedClock, choice: random.Random, editor: Editor) -> None:
    """One edit at random: as often as not with a revision that is no longer the current one."""
    is_stale = choice.random() < 0.3 and witness.revision > 1
    expected = choice.randrange(1, witness.revision) if is_stale else witness.revision
    act = choice.choice(("text", "text", "tags", "importance", "forget", "restore", "revert"))
    before = dict(witness.content)
    try:
        if act == "forget":
            [record] = await memory.forget(witness.id, editor=editor)
        elif act == "restore":
            [record] = await memory.restore(witness.id, editor=editor)
        elif act == "revert":
            record = await memory.records.revert(witness.id, choice.randrange(1, witness.revision + 1), editor=editor)
        else:
            changes: dict[str, Any] = {
                "text": {"text": f"We go to {choice.choice(WORDS)} with {choice.choice(WORDS)}."},
                "tags": {"tags": choice.sample(WORDS, choice.randrange(3))},
                "importance": {
                    "importance_score": choice.choice((0.0, 0.3, 0.7, 1.0)),
                    "critical": choice.random() < 0.5,
                },
            }[act]
            record = await memory.update_memory(witness.id, changes, expected_revision=expected, editor=editor)
            assert not is_stale, "an edit of an older revision was taken"
    except RevisionConflict as error:
        assert is_stale
        assert error.current == witness.revision
    except Conflict as error:
        repeats = act == "text" and "was forgotten or erased" in str(error)
        assert repeats or DELETED_AT in before, "an edit of what is not forgotten was refused"
    else:
        witness.see(record, clock.now_ms())
    current = await memory.records.get(witness.id)
    assert (current.content, current.revision) == (witness.content, witness.revision)


async def check(memory: Memory, witness: Witness) -> None:
    """History, versions and as-of reads agree with what the witness saw."""
    record = await memory.records.get(witness.id)
    history = await memory.records.history(witness.id)
    assert [one["id"] for one in history] == [f"{witness.id}@{n + 1}" for n in range(witness.revision)]
    assert [one["current"] for one in history] == [False] * (witness.revision - 1) + [True]
    assert record.content == witness.content
    for number, (at_ms, content) in enumerate(witness.versions, 1):
        newest_then = max(n for n, (moment, _) in enumerate(witness.versions, 1) if moment <= at_ms)
        assert (await memory.records.as_of(witness.id, at_ms)).content == witness.versions[newest_then - 1][1]
        assert await memory.records.diff(witness.id, number, number) == []
        assert dict(content) == dict((await memory.records.version(witness.id, number)).content)


@given(seed=st.integers(0, 2**32))
async def test_history_replays_to_what_is_there_whoever_edits(
    seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    choice = random.Random(seed)
    path: Path = tmp_path_factory.mktemp("edits") / "memory.db"
    clock, ids = ScriptedClock(), CountedIds()
    async with open_memory(path, clock=clock, ids=ids) as one, open_memory(path, clock=clock, ids=ids) as other:
        await one.record_messages(
            "trip", [NewMessage(Role.USER, "We fly to Oslo on May 3.", created_at=clock.now_ms())]
        )
        pin = await one.create_pin(CreatePinRequest("trip", "Ines is allergic to nuts."))
        [task] = await one.remember("task", {"text": "Book the hotel"})
        await one.settled()
        witnesses = [Witness(await one.records.get(name), clock.now_ms()) for name in ("msg_1", pin.id, task.id)]
        for _ in range(25):
            clock.advance(choice.choice((0.0, 1.0, 3600.0)))
            memory, editor = choice.choice(
                ((one, Editor(EditorType.HUMAN)), (other, Editor(EditorType.AGENT, "claude-code")))
            )
            await edit(memory, choice.choice(witnesses), clock, choice, editor)
        for witness in witnesses:
            await check(choice.choice((one, other)), witness)
            numbers = range(1, witness.revision + 1)
            wanted = choice.choice(numbers)
            content = dict(witness.versions[wanted - 1][1])
            reverted = await one.records.revert(witness.id, wanted)
            assert dict(reverted.content) == content
