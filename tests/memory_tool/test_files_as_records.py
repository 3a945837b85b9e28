"""A file of the memory tool is a record: found, kept in versions, undone, forgotten and erased like any other."""

from pathlib import Path
from typing import Any

import pytest

from kalito_mcp import (
    Conflict,
    Editor,
    EditorType,
    InvalidInput,
    Memory,
    MemoryRecord,
    MemoryTool,
    RecordErased,
    RecordNotFound,
    SearchRequest,
    Settings,
    open_memory,
)
from kalito_mcp.runtime.database_address import LocalFiles
from kalito_mcp.switch import FOR_EVER, Switch, write_switch

pytestmark = pytest.mark.anyio
PATH = "/memories/guests.md"
GUESTS = "Guests of the regatta in Trondheim:\n- Ines Marquez is allergic to nuts\n"
EMPTY = "0B\t/memories"


async def file_at(memory: Memory, path: str = PATH) -> MemoryRecord:
    _, found = await memory.files.look(path)
    assert found is not None
    return found


async def found(memory: Memory, query: str) -> list[str]:
    await memory.settled()
    return [hit.text for hit in (await memory.search_memory(SearchRequest(query))).hits]


async def test_a_search_and_a_context_find_a_file(memory: Memory, tool: MemoryTool) -> None:
    await tool.create(PATH, GUESTS)
    assert await found(memory, "who is allergic to nuts?") == [GUESTS]
    assert "allergic to nuts" in (await memory.build_context(query="who is allergic to nuts?")).text
    await tool.str_replace(PATH, "nuts", "strawberries")
    assert await found(memory, "allergic to strawberries") == [GUESTS.replace("nuts", "strawberries")]
    assert not any("nuts" in text for text in await found(memory, "nuts"))
    await tool.delete(PATH)
    assert await found(memory, "who is allergic to strawberries?") == []


async def test_every_change_is_an_edit_that_can_be_undone(memory: Memory) -> None:
    tool = MemoryTool(memory, editor=Editor(EditorType.AGENT, "claude-code"))
    await tool.create(PATH, GUESTS)
    await tool.str_replace(PATH, "nuts", "shellfish")
    await tool.insert(PATH, 2, "- Bo Larsen eats anything")
    await tool.rename(PATH, "/memories/trip/guests.md")
    record = await file_at(memory, "/memories/trip/guests.md")
    edits = await memory.records.history(record.id)
    assert [(one["edit_type"], one["editor_id"]) for one in edits] == [
        ("create", "claude-code"),
        *[("update", "claude-code")] * 3,
    ]
    assert (await memory.records.version(record.id, 1)).text == GUESTS
    await memory.records.revert(record.id, 1)
    assert (await file_at(memory)).text == GUESTS
    assert (await tool.view("/memories")).endswith(f"\t{PATH}")


async def test_a_file_is_also_named_by_its_path(memory: Memory, tool: MemoryTool) -> None:
    await tool.create(PATH, GUESTS)
    await tool.str_replace(PATH, "nuts", "eggs")
    await tool.delete(PATH)
    assert [one["edit_type"] for one in await memory.records.history(PATH)] == ["create", "update", "delete"]
    await memory.restore(PATH)
    assert "eggs" in await tool.view(PATH)
    await memory.records.revert(PATH, 1)
    assert (await memory.records.get(PATH)).text == GUESTS
    with pytest.raises(RecordNotFound, match=r"no file '/memories/other\.md'"):
        await memory.records.get("/memories/other.md")


async def test_a_deleted_directory_is_restored_file_by_file(memory: Memory, tool: MemoryTool) -> None:
    for name in ("a", "b"):
        await tool.create(f"/memories/trip/{name}.md", f"{name}: {GUESTS}")
    await tool.delete("/memories/trip")
    assert (await tool.view("/memories")).endswith(EMPTY)
    for name in ("a", "b"):
        await memory.restore(f"/memories/trip/{name}.md")
    assert (await tool.view("/memories/trip")).count("\n") == 3


async def test_a_deleted_file_keeps_its_versions_when_its_path_is_taken(memory: Memory, tool: MemoryTool) -> None:
    await tool.create(PATH, GUESTS)
    first = await file_at(memory)
    await tool.delete(PATH)
    await tool.create(PATH, "Guests: nobody so far")
    await tool.create("/memories/other.md", "Other things")
    await memory.restore(first.id)
    assert (await file_at(memory)).text == "Guests: nobody so far"
    assert (await file_at(memory, f"{PATH}.{first.id}")).text == GUESTS
    await tool.delete(PATH)
    await tool.rename("/memories/other.md", PATH)
    assert (await file_at(memory)).text == "Other things"


async def test_words_of_a_deleted_file_may_be_written_again_elsewhere(tool: MemoryTool) -> None:
    await tool.create(PATH, GUESTS)
    await tool.delete(PATH)
    await tool.create("/memories/all.md", f"# All notes\n\n{GUESTS}")
    assert "Ines Marquez" in await tool.view("/memories/all.md")


async def test_words_that_were_forgotten_are_not_written_again(memory: Memory, tool: MemoryTool) -> None:
    await tool.create(PATH, GUESTS)
    await memory.forget(PATH)
    assert (await tool.view("/memories")).endswith(EMPTY)
    with pytest.raises(Conflict, match="forgotten"):
        await tool.create(PATH, GUESTS)
    await tool.create("/memories/all.md", "All notes\n")
    with pytest.raises(Conflict, match="forgotten"):
        await tool.insert("/memories/all.md", 1, GUESTS)
    assert "Ines" not in await tool.view("/memories/all.md")
    await memory.restore(PATH)
    assert "Ines" in await tool.view(PATH)


async def test_an_erased_file_is_in_no_list_and_on_no_disk(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    async with open_memory(folder / "memory.db") as memory:
        tool = MemoryTool(memory)
        await tool.create(PATH, GUESTS)
        await tool.str_replace(PATH, "nuts", "eggs")
        record = await file_at(memory)
        report = await memory.purge([PATH])
        assert (report.erased, report.remaining) == ((record.id,), {})
        assert (await tool.view("/memories")).endswith(EMPTY)
        with pytest.raises(RecordErased):
            await memory.records.get(record.id)
        with pytest.raises(Conflict):
            await tool.create(PATH, GUESTS)
        await memory.settled()
    held = [file.name for file in folder.rglob("*") if file.is_file() and b"Marquez" in file.read_bytes()]
    assert held == []


async def test_each_project_has_its_own_files_and_personal_ones_are_of_none(memory: Memory, tmp_path: Path) -> None:
    tools: dict[Any, MemoryTool] = {
        name: MemoryTool(await memory.in_project(name)) for name in ("shop", "blog", "personal", None)
    }
    await tools["personal"].create("/memories/me.md", "I like tea with Ines")
    assert (await tools["shop"].view("/memories")).endswith(EMPTY)
    await tools["shop"].create(PATH, f"shop {GUESTS}")
    await tools["blog"].create(PATH, f"blog {GUESTS}")
    assert "shop" in await tools["shop"].view(PATH)
    assert "blog" in await tools["blog"].view(PATH)
    for name in ("shop", "blog"):
        assert "me.md" not in await tools[name].view("/memories")
    for name in ("personal", None):
        assert (await tools[name].view("/memories")).count("\n") == 2
        assert "tea" in await tools[name].view("/memories/me.md")
    shop = await memory.in_project("shop")
    texts = await found(shop, "Ines")
    assert any("shop" in one for one in texts) and any("tea" in one for one in texts)
    assert not any("blog" in one for one in texts)
    assert (await shop.records.get(PATH)).text == f"shop {GUESTS}"
    with pytest.raises(InvalidInput, match="several projects; name one of them by its id"):
        await memory.records.get(PATH)


async def test_other_documents_are_no_files(memory: Memory, tool: MemoryTool) -> None:
    await memory.remember("document", {"text": GUESTS, "source": PATH})
    await memory.remember("note", {"text": "Ines likes tea."})
    assert (await tool.view("/memories")).endswith(EMPTY)
    await tool.create(PATH, "Another text of the same path")
    assert (await memory.records.get(PATH)).text == "Another text of the same path"
    for kind in ("document", "note"):
        with pytest.raises(InvalidInput, match="belongs to a file in /memories"):
            await memory.remember(kind, {"text": GUESTS, "source": f"memory-file:{PATH}"})


async def test_a_person_edits_a_file_like_any_record(memory: Memory, tool: MemoryTool) -> None:
    await tool.create(PATH, GUESTS)
    record = await file_at(memory)
    editor = Editor(EditorType.HUMAN)
    await memory.update_memory(record.id, {"text": "Nobody comes."}, expected_revision=1, editor=editor)
    assert (await tool.view(PATH)).endswith("     1\tNobody comes.")


async def test_a_secret_is_removed_and_that_is_said(memory: Memory, tool: MemoryTool) -> None:
    token = "ghp_" + "".join(chr(ord("A") + place * 7 % 26) + str(place % 10) for place in range(18))
    done = await tool.create(PATH, f"token {token} of the shop")
    assert done == f"File created successfully at: {PATH}\nRemoved and not stored: github_token"
    assert token not in (await file_at(memory)).text
    assert "github_token" in await tool.insert(PATH, 0, f"again {token}")
    assert token not in await tool.view(PATH)


async def test_a_paused_memory_takes_no_words_and_still_deletes(tmp_path: Path) -> None:
    database = tmp_path / "memory.db"
    async with open_memory(database) as memory:
        tool = MemoryTool(memory)
        await tool.create(PATH, GUESTS)
        write_switch(LocalFiles(database).switch, Switch(paused_until=FOR_EVER))
        with pytest.raises(Conflict, match="paused"):
            await tool.create("/memories/b.md", GUESTS)
        with pytest.raises(Conflict, match="paused"):
            await tool.str_replace(PATH, "nuts", "eggs")
        await tool.delete(PATH)
        assert (await tool.view("/memories")).endswith(EMPTY)


async def test_no_owner_reaches_another_s_files(tmp_path: Path) -> None:
    database = tmp_path / "memory.db"
    async with open_memory(database) as ours, open_memory(database, Settings(owner="bo")) as theirs:
        await MemoryTool(ours).create(PATH, GUESTS)
        assert (await MemoryTool(theirs).view("/memories")).endswith(EMPTY)
        with pytest.raises(RecordNotFound):
            await theirs.records.history(PATH)
        await MemoryTool(theirs).create(PATH, "Theirs.")
        await MemoryTool(theirs).delete("/memories/guests.md")
        assert "Ines" in await MemoryTool(ours).view(PATH)
