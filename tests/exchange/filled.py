"""A memory with something of everything that an archive must bring along."""

from pathlib import Path

from kalito_mcp import FinalizeOptions, Memory, NewMessage, Role, SearchRequest
from kalito_mcp.domain.findings import Verdict
from kalito_mcp.domain.records import CreatePinRequest, Reach, RecordType
from kalito_mcp.storage.sqlite.inspection import inspect
from tests.stored import talk

ERASED = "The vault code is heron seven."
FORGOTTEN = "My sister Ines lives in Bergen."


async def fill(memory: Memory) -> None:
    """Several agents and projects; pins, summaries, tasks, documents, thoughts, feedback, edits; a finalized session;
    forgotten, restored and erased records."""
    work = await memory.in_project("boats")
    await work.record_messages("build/1", talk(12), client="test")
    await memory.record_messages("home", [NewMessage(Role.USER, FORGOTTEN, name="Ann"), NewMessage(Role.USER, ERASED)])
    await memory.record_messages("home", talk(5, first=40))
    await memory.record_messages("away", [NewMessage(Role.USER, "Größe: 38 — ✓ \u2028 \x00 end")], agent_id="other")
    await memory.settled()
    await memory.create_pin(CreatePinRequest("home", "Prefers the window seat.", scope=Reach.PERSON))
    await memory.conversations.summarize("build/1")
    await memory.record_feedback("msg_2", "up", "that helped", session_id="build/1")
    [task] = await memory.remember(RecordType.TASK, {"text": "Book the ferry", "due_date": "2026-05-03"})
    edited = await memory.update_memory(task.id, {"text": "Book the night ferry"}, expected_revision=1)
    await memory.update_memory(task.id, {"status": "completed"}, expected_revision=edited.revision)
    await memory.records.revert(task.id, 2)
    [thought] = await memory.remember(RecordType.THOUGHT, {"text": "They like boats.", "caused_by": task.id})
    text = "\n\n".join(f"Chapter {n}. " + "The keel is made of oak and brass. " * 60 for n in range(6))
    parts = await work.remember(RecordType.DOCUMENT, {"text": text, "source": "docs/keel.md", "tags": ["wood"]})
    assert len(parts) > 1
    await memory.remember("note", {"text": "I am allergic to nuts.", "scope": "person"}, agent_id="other")
    await memory.forget("msg_25")
    await memory.forget(thought.id)
    await memory.restore(thought.id)
    await memory.purge(["msg_26"])
    await memory.finalize_session("build/1", FinalizeOptions(checkpoint=False))
    await memory.search_memory(SearchRequest("ferry"))
    await memory.settled()


def faults(database: Path) -> list[str]:
    """What a deep inspection finds."""
    return [f"{one.check}: {one.detail}" for one in inspect(database, is_deep=True) if one.verdict is Verdict.FAILED]
