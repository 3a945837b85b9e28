"""Long texts are read in threads: the event loop, and with it every other call, goes on meanwhile."""

import threading
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from kalito_mcp import open_memory
from kalito_mcp.domain.records import NewMessage, RecordType, Repetition, Role
from kalito_mcp.long_texts import LONG_CHARS

_LONG = "I moved to Porto and I like tea. " * (LONG_CHARS // 30)
_READERS = (
    "kalito_mcp.records.recorder.cleaned",
    "kalito_mcp.records.recorder.index_text",
    "kalito_mcp.records.repetitions.keys_of",
    "kalito_mcp.editing.forgotten_notes.keys_of",
    "kalito_mcp.editing.forgotten_notes.keys_to_forget",
    "kalito_mcp.editing.editor.cleaned",
    "kalito_mcp.storage.sqlite.record_changes.keys_to_forget",
    "kalito_mcp.storage.sqlite.text_index.index_text",
    "kalito_mcp.editing.cascade.canonical_key",
    "kalito_mcp.pins.collector.find_pins",
    "kalito_mcp.records.historian.diff",
)


@pytest.mark.anyio
async def test_no_pass_over_a_long_text_runs_on_the_event_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on_loop: list[str] = []
    ran: set[str] = set()
    loop = threading.get_ident()

    def watched(name: str, read: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(read)
        def run(*given: Any, **named: Any) -> Any:
            ran.add(name)
            if threading.get_ident() == loop and len(str(given)) > LONG_CHARS:
                on_loop.append(name)
            return read(*given, **named)

        return run

    for name in _READERS:
        module, _, function = name.rpartition(".")
        read = getattr(__import__(module, fromlist=[function]), function)
        monkeypatch.setattr(name, watched(name, read))

    async with open_memory(tmp_path / "memory.db") as memory:
        await memory.record_messages("a", [NewMessage(Role.USER, "My account is ABC-123-45 there.")])
        [first] = (await memory.record_messages("a", [NewMessage(Role.USER, "My badge is XYZ-99-1 here.")])).message_ids
        await memory.forget(first)
        [long] = (await memory.record_messages("a", [NewMessage(Role.USER, _LONG)])).message_ids
        await memory.settled()
        note = (await memory.remember(RecordType.THOUGHT, {"text": _LONG}))[0]
        await memory.update_memory(note.id, {"text": f"{_LONG} And coffee."}, expected_revision=1)
        await memory.diff(note.id, 1, 2)
        await memory.build_context("a", query="where did I move")
        await memory.purge([long, note.id])
    assert ran == set(_READERS)
    assert on_loop == []


@pytest.mark.anyio
@pytest.mark.parametrize(
    "reader", ["kalito_mcp.records.repetitions.keys_of", "kalito_mcp.orchestrator.observer.canonical_key"]
)
async def test_others_can_write_while_a_long_text_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reader: str
) -> None:
    begun, other_wrote = threading.Event(), threading.Event()
    module, _, function = reader.rpartition(".")
    read = getattr(__import__(module, fromlist=[function]), function)

    def read_slowly(text: str) -> Any:
        if len(text) > LONG_CHARS:
            begun.set()
            assert other_wrote.wait(30)
        return read(text)

    monkeypatch.setattr(reader, read_slowly)
    async with open_memory(tmp_path / "memory.db") as memory:
        [first] = (await memory.record_messages("a", [NewMessage(Role.USER, "My badge is XYZ-99-1 here.")])).message_ids
        await memory.forget(first)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(memory.record_messages, "a", [NewMessage(Role.USER, _LONG)])
            assert await anyio.to_thread.run_sync(begun.wait, 30)
            await memory.record_messages("b", [NewMessage(Role.USER, "I like tea.")])
            other_wrote.set()


@pytest.mark.anyio
async def test_a_long_text_that_repeats_what_was_forgotten_is_hidden(tmp_path: Path) -> None:
    async with open_memory(tmp_path / "memory.db") as memory:
        [first] = (await memory.record_messages("a", [NewMessage(Role.USER, "My badge is XYZ-99-1 here.")])).message_ids
        await memory.forget(first)
        again = await memory.record_messages("a", [NewMessage(Role.ASSISTANT, f"Your badge is XYZ-99-1. {_LONG}")])
        assert again.ids_of(Repetition.HIDDEN) == []
        again = await memory.record_messages("a", [NewMessage(Role.ASSISTANT, f"My badge is XYZ-99-1 here. {_LONG}")])
        assert again.ids_of(Repetition.HIDDEN) == again.message_ids
