"""The commands answer in the words that models know from Anthropic's own tool over a file system."""

from typing import Any

import pytest

from kalito_mcp import InvalidInput, KalitoError, MemoryTool, TextTooLarge

pytestmark = pytest.mark.anyio
NOTES = "one\ntwo\nthree\n"


async def refusal(tool: MemoryTool, **sent: Any) -> str:
    with pytest.raises(KalitoError) as caught:
        await tool.call(sent)
    return str(caught.value)


async def test_an_empty_memory_is_an_empty_directory(tool: MemoryTool) -> None:
    assert await tool.call({"command": "view", "path": "/memories"}) == (
        "Here're the files and directories up to 2 levels deep in /memories, excluding hidden items:\n0B\t/memories"
    )


async def test_a_directory_is_listed_two_levels_deep_with_sizes_and_without_hidden_names(tool: MemoryTool) -> None:
    files = {
        "b.md": "x" * 1_536,
        "a/deep/er.md": "y" * 2_048,
        "a/f.md": "ü",
        ".hidden": "h",
        "a/.h/x.md": "h",
        "a.md": "!",
    }
    for name, text in files.items():
        await tool.create(f"/memories/{name}", text)
    head = "Here're the files and directories up to 2 levels deep in {}, excluding hidden items:\n"
    assert await tool.view("/memories") == head.format("/memories") + (
        "3.5K\t/memories\n"
        "2.0K\t/memories/a/\n"
        "2K\t/memories/a/deep/\n"
        "2B\t/memories/a/f.md\n"
        "1B\t/memories/a.md\n"
        "1.5K\t/memories/b.md"
    )
    assert await tool.view("/memories/a/deep") == head.format("/memories/a/deep") + (
        "2K\t/memories/a/deep\n2K\t/memories/a/deep/er.md"
    )


async def test_a_file_is_shown_with_numbers_in_a_column_of_six(tool: MemoryTool) -> None:
    assert await tool.create("/memories/n.md", NOTES) == "File created successfully at: /memories/n.md"
    head = "Here's the content of /memories/n.md with line numbers:\n"
    assert await tool.view("/memories/n.md") == head + "     1\tone\n     2\ttwo\n     3\tthree\n     4\t"
    assert await tool.view("/memories/n.md", [2, 3]) == head + "     2\ttwo\n     3\tthree"
    assert await tool.view("/memories/n.md", [3, -1]) == head + "     3\tthree\n     4\t"
    assert await tool.view("/memories/n.md", [0, 1]) == head + "     1\tone"
    assert await tool.view("/memories/n.md", [9, 12]) == head


async def test_what_does_not_exist_is_said_so(tool: MemoryTool) -> None:
    gone = "The path /memories/x.md does not exist. Please provide a valid path."
    assert await refusal(tool, command="view", path="/memories/x.md") == gone
    assert await refusal(tool, command="str_replace", path="/memories/x.md", old_str="a", new_str="b") == gone
    assert await refusal(tool, command="insert", path="/memories/x.md", insert_line=0, insert_text="b") == gone
    assert await refusal(tool, command="delete", path="/memories/x.md") == "The path /memories/x.md does not exist"
    assert (
        await refusal(tool, command="rename", old_path="/memories/x.md", new_path="/memories/y.md")
        == "The path /memories/x.md does not exist"
    )


async def test_create_overwrites_nothing(tool: MemoryTool) -> None:
    await tool.create("/memories/a/n.md", NOTES)
    for path in ("/memories/a/n.md", "/memories/a", "/memories"):
        assert await refusal(tool, command="create", path=path, file_text="x") == f"File {path} already exists"
    below = await refusal(tool, command="create", path="/memories/a/n.md/x.md", file_text="x")
    assert below.startswith("The path /memories/a/n.md is a file")
    assert "two" in await tool.view("/memories/a/n.md")


async def test_str_replace_shows_the_lines_around(tool: MemoryTool) -> None:
    await tool.create("/memories/n.md", "1\n2\n3\n4\n5\n6\n7")
    head = "The memory file has been edited. Here is the snippet showing the change (with line numbers):\n"
    assert await tool.str_replace("/memories/n.md", "4", "four") == head + (
        "     2\t2\n     3\t3\n     4\tfour\n     5\t5\n     6\t6"
    )
    assert await tool.str_replace("/memories/n.md", "1\n", "") == head + "     1\t2\n     2\t3\n     3\tfour"


async def test_str_replace_refuses_what_is_not_there_or_not_alone(tool: MemoryTool) -> None:
    await tool.create("/memories/n.md", "bee\nant\nbee bee\n")
    assert await refusal(tool, command="str_replace", path="/memories/n.md", old_str="wasp", new_str="x") == (
        "No replacement was performed, old_str `wasp` did not appear verbatim in /memories/n.md."
    )
    assert await refusal(tool, command="str_replace", path="/memories/n.md", old_str="bee", new_str="x") == (
        "No replacement was performed. Multiple occurrences of old_str `bee` in lines: 1, 3, 3. "
        "Please ensure it is unique"
    )
    assert "old_str is empty" in await refusal(tool, command="str_replace", path="/memories/n.md", old_str="")
    assert "bee\n     2\tant\n     3\tbee bee\n" in await tool.view("/memories/n.md")


async def test_insert_puts_lines_after_a_line_and_ends_the_file_with_a_line_feed(tool: MemoryTool) -> None:
    await tool.create("/memories/n.md", "one\nthree")
    done = "The file /memories/n.md has been edited."
    assert await tool.insert("/memories/n.md", 1, "two\n\n") == done
    assert await tool.insert("/memories/n.md", 0, "zero") == done
    assert await tool.insert("/memories/n.md", 4, "four") == done
    assert (await tool.view("/memories/n.md")).endswith(
        "     1\tzero\n     2\tone\n     3\ttwo\n     4\tthree\n     5\tfour\n     6\t"
    )
    for line in (-1, 6):
        assert await refusal(tool, command="insert", path="/memories/n.md", insert_line=line, insert_text="x") == (
            f"Invalid `insert_line` parameter: {line}. It should be within the range [0, 5]."
        )


async def test_directories_cannot_be_edited(tool: MemoryTool) -> None:
    await tool.create("/memories/a/n.md", NOTES)
    not_a_file = "The path /memories/a is not a file."
    assert await refusal(tool, command="str_replace", path="/memories/a", old_str="one", new_str="x") == not_a_file
    assert await refusal(tool, command="insert", path="/memories/a", insert_line=0, insert_text="x") == not_a_file


async def test_delete_takes_a_file_or_a_directory_but_not_the_root(tool: MemoryTool) -> None:
    for name in ("a/1.md", "a/b/2.md", "ab.md", "c.md"):
        await tool.create(f"/memories/{name}", NOTES)
    assert await tool.delete("/memories/c.md") == "Successfully deleted /memories/c.md"
    assert await tool.delete("/memories/a/") == "Successfully deleted /memories/a/"
    assert (await tool.view("/memories")).split("\t")[1:] == ["/memories\n14B", "/memories/ab.md"]
    assert await refusal(tool, command="delete", path="/memories/") == "Cannot delete the /memories directory itself"


async def test_rename_moves_a_file_or_a_directory_to_a_free_path(tool: MemoryTool) -> None:
    await tool.create("/memories/a/1.md", NOTES)
    await tool.create("/memories/a/b/2.md", "second")
    assert await tool.rename("/memories/a", "/memories/new/a") == "Successfully renamed /memories/a to /memories/new/a"
    assert await tool.rename("/memories/new/a/1.md", "/memories/1.md") == (
        "Successfully renamed /memories/new/a/1.md to /memories/1.md"
    )
    assert "second" in await tool.view("/memories/new/a/b/2.md")
    assert "three" in await tool.view("/memories/1.md")

    async def refused(old: str, new: str) -> str:
        return await refusal(tool, command="rename", old_path=old, new_path=new)

    assert await refused("/memories/1.md", "/memories/new") == "The destination /memories/new already exists"
    assert await refused("/memories/1.md", "/memories/1.md") == "The destination /memories/1.md already exists"
    assert await refused("/memories", "/memories/x") == "Cannot rename the /memories directory itself"
    assert await refused("/memories/new", "/memories/new/x") == "Cannot move /memories/new into itself"
    assert (await refused("/memories/new", "/memories/1.md/x")).startswith("The path /memories/1.md is a file")


async def test_a_text_comes_back_as_it_was_written(tool: MemoryTool) -> None:
    for place, text in enumerate(
        (
            "no line feed",
            "\n\n  leading and trailing \n\n",
            "tabs\tand\r\nreturns\r\n",
            "Ünïcödé 日本語 עברית 👩‍👩‍👧 e\u0301\n",
            "null\x00and\x1b[0m\n",
        )
    ):
        await tool.create(f"/memories/{place}.md", text)
        numbered = (await tool.view(f"/memories/{place}.md")).partition("\n")[2]
        assert "\n".join(line.partition("\t")[2] for line in numbered.split("\n")) == text


async def test_a_path_in_another_unicode_form_is_the_same_file(tool: MemoryTool) -> None:
    await tool.create("/memories/cafe\u0301 日本.md", NOTES)
    assert "three" in await tool.view("/memories//caf\u00e9 日本.md")


async def test_a_path_elsewhere_or_without_a_plain_name_is_refused(tool: MemoryTool) -> None:
    escaping = "/../etc/passwd|/a/../../x|/a/../b|/./a|/..|/%2e%2e/x|/%252e%252e%252fx|/..%2fx|/..\\x|/a\\b|/%2e%2e%5cx"
    elsewhere = "/etc/passwd|/memoriesx/a|memories/a|../memories/a|C:\\memories\\a|//memories/a|/MEMORIES/a|"
    odd = ("/a\x00b", "/a\nb", "/a\u202eb", "/ a", "/" + "a" * 191, "/" + "a/" * 100_000)
    for path in (*elsewhere.split("|"), *(f"/memories{one}" for one in (*escaping.split("|"), *odd))):
        for sent in (
            {"command": "create", "path": path, "file_text": "x"},
            {"command": "view", "path": path},
            {"command": "delete", "path": path},
            {"command": "rename", "old_path": "/memories/a.md", "new_path": path},
            {"command": "rename", "old_path": path, "new_path": "/memories/b.md"},
        ):
            with pytest.raises(InvalidInput):
                await tool.call(sent)
    assert (await tool.view("/memories")).endswith("\n0B\t/memories")


async def test_the_words_of_a_refused_path(tool: MemoryTool) -> None:
    assert await refusal(tool, command="view", path="/etc/passwd") == "Path must start with /memories, got: /etc/passwd"
    assert await refusal(tool, command="view", path="/memories/../x") == (
        "Path /memories/../x would escape /memories directory"
    )


async def test_a_file_is_neither_blank_nor_too_large(tool: MemoryTool) -> None:
    for text in ("", " \n\t"):
        assert "empty" in (said := await refusal(tool, command="create", path="/memories/a.md", file_text=text)) or (
            "blank" in said
        )
    await tool.create("/memories/a.md", "x" * 524_288)
    with pytest.raises(TextTooLarge, match="send it in parts"):
        await tool.insert("/memories/a.md", 0, "one more")
    with pytest.raises(TextTooLarge):
        await tool.create("/memories/b.md", "ü" * 262_145)
    assert "blank" in await refusal(
        tool, command="str_replace", path="/memories/a.md", old_str="x" * 524_288, new_str=" "
    )
    assert await tool.view("/memories") == (
        "Here're the files and directories up to 2 levels deep in /memories, excluding hidden items:\n"
        "512K\t/memories\n512K\t/memories/a.md"
    )


async def test_a_wrong_call_is_told_what_to_send(tool: MemoryTool) -> None:
    await tool.create("/memories/n.md", NOTES)
    insert = {"command": "insert", "path": "/memories/n.md", "insert_text": "x"}
    for sent, said in (
        ({"command": "veiw", "path": "/memories"}, "did you mean 'view'?"),
        ({}, "unknown command"),
        ({"command": "view"}, "view needs path; send it"),
        ({"command": "create", "path": "/memories/a", "file_text": None}, "create needs file_text; send it"),
        ({"command": "view", "path": 5}, "path must be a string, not 5"),
        ({"command": "view", "path": "/memories/n.md", "view_range": ["1", 2]}, "view_range must be two whole numbers"),
        ({**insert, "insert_line": "1"}, "a whole number"),
        ({**insert, "insert_line": True}, "a whole number"),
    ):
        assert said in await refusal(tool, **sent), sent


async def test_arguments_of_other_commands_are_ignored(tool: MemoryTool) -> None:
    sent = {"command": "create", "path": "/memories/a.md", "file_text": "x", "old_str": "y", "view_range": [1, 2]}
    assert await tool.call(sent) == "File created successfully at: /memories/a.md"
