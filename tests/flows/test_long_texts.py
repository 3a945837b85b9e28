"""Long texts are read in threads: the event loop, and with it every other call, goes on meanwhile."""

import threading
from collections.abc import Callable
from functools import partial, wraps
from importlib import import_module
from pathlib import Path
from typing import Any

import anyio
import anyio.from_thread
import anyio.to_thread
import pytest

from kalito_mcp import Memory, open_memory
from kalito_mcp.domain.records import MessageWithImportance, NewMessage, RecordType, Repetition, Role
from kalito_mcp.domain.scope import Scope
from kalito_mcp.kinds.judged import Sentence
from kalito_mcp.kinds.own import Own
from kalito_mcp.pins.automatic import pinnable
from kalito_mcp.runtime.long_texts import LONG_CHARS
from kalito_mcp.text.repetition import keys_to_forget

_LONG = "I moved to Porto and I like tea. " * (LONG_CHARS // 30)
_LONG_NOTE = "Ann keeps three bees in Oslo. " * (LONG_CHARS // 25)
_READ_FOR_CHANGES = {
    "keys_of": ("editing.plans", "editing.forgotten_notes"),
    "keys_to_forget": ("editing.plans", "editing.forgotten_notes"),
    "canonical_key": ("editing.plans", "editing.cascade", "graph.indexed_graph"),
    "index_text": ("editing.plans", "storage.record_changes"),
}
_READ_FOR_NOTE = (2 + 2) + (1 + 1) + (1 + 1) + (1 + 2 * 2)
"""Long texts that are read to edit, forget, restore and purge it."""

_READ_FOR_GRAPH = 2
"""More of them, for a message that is edited and restored."""

_READERS = (
    "kalito_mcp.records.recorder.cleaned",
    "kalito_mcp.records.recorder.index_text",
    "kalito_mcp.records.repetitions.keys_of",
    "kalito_mcp.editing.forgotten_notes.keys_of",
    "kalito_mcp.editing.plans.keys_of",
    "kalito_mcp.editing.plans.keys_to_forget",
    "kalito_mcp.editing.plans.canonical_key",
    "kalito_mcp.editing.plans.index_text",
    "kalito_mcp.editing.editor.cleaned",
    "kalito_mcp.storage.record_changes.index_text",
    "kalito_mcp.pins.collector.pinnable",
    "kalito_mcp.pins.collector.found_pins",
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
        await memory.records.diff(note.id, 1, 2)
        await memory.build_context("a", query="where did I move")
        await memory.purge([long, note.id])
    assert ran == set(_READERS)
    assert on_loop == []


@pytest.mark.anyio
@pytest.mark.parametrize(
    "reader", ["kalito_mcp.records.repetitions.keys_of", "kalito_mcp.graph.indexed_graph.canonical_key"]
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

    async def record_and_close(memory: Memory) -> None:
        await memory.record_messages("a", [NewMessage(Role.USER, _LONG)])
        await memory.finalize_session("a")

    monkeypatch.setattr(reader, read_slowly)
    async with open_memory(tmp_path / "memory.db") as memory:
        [first] = (await memory.record_messages("a", [NewMessage(Role.USER, "My badge is XYZ-99-1 here.")])).message_ids
        await memory.forget(first)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(record_and_close, memory)
            assert await anyio.to_thread.run_sync(begun.wait, 30)
            await memory.record_messages("b", [NewMessage(Role.USER, "I like tea.")])
            other_wrote.set()


@pytest.mark.anyio
async def test_others_can_write_whenever_a_long_text_is_read_for_a_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_count = 0
    async with open_memory(tmp_path / "memory.db") as memory:

        async def write() -> None:
            with anyio.fail_after(20):
                await memory.record_messages("b", [NewMessage(Role.USER, "Water is wet.")])

        def watched(read: Callable[..., Any]) -> Callable[..., Any]:
            @wraps(read)
            def run(text: str, *more: Any) -> Any:
                nonlocal read_count
                if len(text) > LONG_CHARS:
                    read_count += 1
                    anyio.from_thread.run(write)
                return read(text, *more)

            return run

        async def change(record_id: str, text: str) -> None:
            await memory.update_memory(record_id, {"text": f"{text} And coffee."}, expected_revision=1)
            await memory.forget(record_id)
            await memory.restore(record_id)
            await memory.purge([record_id])

        [first] = (await memory.record_messages("a", [NewMessage(Role.USER, "My badge is XYZ-99-1 here.")])).message_ids
        await memory.forget(first)
        [long] = (await memory.record_messages("a", [NewMessage(Role.USER, _LONG)])).message_ids
        [note] = await memory.remember(RecordType.THOUGHT, {"text": _LONG_NOTE})
        await memory.settled()
        for function, modules in _READ_FOR_CHANGES.items():
            reading = watched(getattr(import_module(f"kalito_mcp.{modules[0]}"), function))
            for module in modules:
                monkeypatch.setattr(f"kalito_mcp.{module}.{function}", reading)
        await change(note.id, _LONG_NOTE)
        await change(long, _LONG)
        assert read_count == 2 * _READ_FOR_NOTE + _READ_FOR_GRAPH


@pytest.mark.anyio
async def test_a_long_text_that_was_changed_meanwhile_is_forgotten_as_it_is_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_memory(tmp_path / "memory.db") as memory:
        [note] = await memory.remember(RecordType.THOUGHT, {"text": f"My badge is XYZ-99-1 here. {_LONG}"})
        new = {"text": f"My account is ABC-123-45 there. {_LONG}"}
        has_changed = False

        def read(text: str, kind: RecordType) -> frozenset[str]:
            nonlocal has_changed
            if not has_changed:
                has_changed = True
                anyio.from_thread.run(partial(memory.update_memory, note.id, new, expected_revision=1))
            return keys_to_forget(text, kind)

        monkeypatch.setattr("kalito_mcp.editing.plans.keys_to_forget", read)
        await memory.forget(note.id)
        said = ("My badge is XYZ-99-1 here.", "My account is ABC-123-45 there.")
        again = await memory.record_messages("a", [NewMessage(Role.ASSISTANT, one) for one in said])
    assert again.ids_of(Repetition.HIDDEN) == again.message_ids[1:]


@pytest.mark.anyio
async def test_a_long_text_that_repeats_what_was_forgotten_is_hidden(tmp_path: Path) -> None:
    async with open_memory(tmp_path / "memory.db") as memory:
        [first] = (await memory.record_messages("a", [NewMessage(Role.USER, "My badge is XYZ-99-1 here.")])).message_ids
        await memory.forget(first)
        again = await memory.record_messages("a", [NewMessage(Role.ASSISTANT, f"Your badge is XYZ-99-1. {_LONG}")])
        assert again.ids_of(Repetition.HIDDEN) == []
        again = await memory.record_messages("a", [NewMessage(Role.ASSISTANT, f"My badge is XYZ-99-1 here. {_LONG}")])
        assert again.ids_of(Repetition.HIDDEN) == again.message_ids


@pytest.mark.anyio
@pytest.mark.parametrize("chars", [5_000, LONG_CHARS + 1])
async def test_others_can_write_while_a_message_that_changes_is_searched_for_pins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chars: int
) -> None:
    text, searched = ("Water is wet. " * chars)[:chars], list[str]()
    async with open_memory(tmp_path / "memory.db") as memory:

        async def write() -> None:
            with anyio.fail_after(20):
                await memory.record_messages("b", [NewMessage(Role.USER, "Water is wet.")])

        async def pins() -> list[str]:
            async with memory.place.store.view() as view:
                found = await view.records.list_records(Scope(), frozenset({RecordType.PIN}), limit=10)
            return [pin.text for pin in found]

        def find(message: MessageWithImportance, own: Own) -> list[Sentence]:
            if "Porto" in message.text:
                searched.append(message.text[:20])
                anyio.from_thread.run(write)
            return pinnable(message, own)

        said = [NewMessage(Role.USER, "Hello there."), NewMessage(Role.USER, text), NewMessage(Role.USER, "Bye.")]
        _, long, _ = (await memory.record_messages("a", said)).message_ids
        await memory.settled()
        monkeypatch.setattr("kalito_mcp.pins.collector.pinnable", find)
        await memory.update_memory(long, {"text": f"Never call Porto. {text}"}, expected_revision=1)
        assert await pins() == ["Never call Porto."]
        await memory.forget(long)
        assert await pins() == []
        await memory.restore(long)
        assert await pins() == ["Never call Porto."]
        assert searched == ["Never call Porto. Wa"] * 2
