"""Markdown pages: what is in them, and that a folder is only changed where it is ours."""

import json
import os
import re
from collections.abc import AsyncIterator
from hashlib import sha256
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kalito_mcp import CreatePinRequest, Memory, NewMessage, Role
from kalito_mcp.domain.archive import Selection
from kalito_mcp.domain.records import Reach, RecordType
from kalito_mcp.domain.time import from_iso
from kalito_mcp.errors import Conflict, InvalidInput
from kalito_mcp.exchange.file_names import file_name
from kalito_mcp.exchange.markdown import Page, pages, shown_text
from kalito_mcp.exchange.markdown_folder import MANIFEST, FolderReport, write_folder
from tests.exchange.filled import ERASED, FORGOTTEN, fill
from tests.exchange.test_archive import ALL, opened

FIRST, SECOND, THIRD, FOURTH = (f"{n}513270e-269e-4d37-b2a7-4de452e6b438" for n in range(4))
UUID = re.compile("[0-9a-f]{8}-[0-9a-f]{4}-")
REFUSED = set('<>:"/\\|?*#^[]')


async def exported(memory: Memory, folder: Path, selection: Selection = ALL) -> FolderReport:
    return await write_folder(folder, pages(memory, selection))


def files(folder: Path) -> dict[str, str]:
    return {
        one.relative_to(folder).as_posix(): one.read_text(encoding="utf-8")
        for one in folder.rglob("*")
        if one.is_file() and one.name != MANIFEST
    }


async def of(*written: Page) -> AsyncIterator[Page]:
    for page in written:
        yield page


@pytest.mark.anyio
async def test_everything_that_is_not_forgotten_is_on_a_page(tmp_path: Path) -> None:
    async with opened(tmp_path / "memory.db") as memory:
        await fill(memory)
        await exported(memory, tmp_path / "vault")
    found = files(tmp_path / "vault")
    assert {"Index.md", "Tasks.md", "Notes.md", "Thoughts.md", "Profile.md"} < set(found)
    assert len([name for name in found if name.startswith("Sessions/")]) == 3
    [document] = [text for name, text in found.items() if name.startswith("Documents/")]
    assert all(f"Chapter {n}." in document for n in range(6))
    everything = "\n".join(found.values())
    for text in ("Prefers the window seat.", "allergic to nuts", "Book the night ferry", "Größe: 38", "Report 3 on"):
        assert text in everything
    for text in (FORGOTTEN, ERASED, "Ines", "heron"):
        assert text not in everything
    work = next(text for name, text in found.items() if 'session: "build/1"' in text)
    assert "## Summary of messages 1 to" in work
    assert 'project: "boats"' in work


@pytest.mark.anyio
async def test_the_page_of_a_conversation_begins_with_its_digest(tmp_path: Path) -> None:
    async with opened(tmp_path / "memory.db") as memory:
        said = [NewMessage(Role.USER, "We decided to take the night ferry. Good weather today.")]
        await memory.record_messages("trip", said)
        await memory.create_pin(CreatePinRequest("trip", "Ines comes along.", scope=Reach.SESSION))
        await memory.settled()
        await exported(memory, tmp_path / "vault")
    page = files(tmp_path / "vault")["Sessions/trip.md"]
    decided, pinned, messages = (page.index(f"## {one}\n") for one in ("Decided", "Pins", "Messages"))
    assert decided < page.index("- We decided to take the night ferry.\n") < pinned < messages
    assert pinned < page.index("- Ines comes along.\n") < messages
    assert "## Open" not in page


@pytest.mark.anyio
async def test_every_link_leads_to_a_page(tmp_path: Path) -> None:
    async with opened(tmp_path / "memory.db") as memory:
        await fill(memory)
        await memory.record_messages(
            "a [b] | c#d ^e", [NewMessage(Role.USER, "I live in Oslo. [[nowhere]] stays text")]
        )
        await memory.settled()
        await exported(memory, tmp_path / "vault")
    found = files(tmp_path / "vault")
    links = {
        link for name in ("Index.md", "Profile.md", "Tasks.md") for link in re.findall(r"\[\[([^|\]]+)", found[name])
    }
    assert len(links) > 6
    assert {f"{link}.md" for link in links} <= set(found)


@pytest.mark.anyio
async def test_a_second_run_writes_only_what_changed(tmp_path: Path) -> None:
    vault = tmp_path / "vault"
    async with opened(tmp_path / "memory.db") as memory:
        await memory.record_messages("one", [NewMessage(Role.USER, "First.")])
        await memory.record_messages("two", [NewMessage(Role.USER, "Second.")])
        await memory.settled()
        assert (await exported(memory, vault)).written == 3
        before = {path: path.stat().st_mtime_ns for path in vault.rglob("*.md")}
        again = await exported(memory, vault)
        assert (again.written, again.unchanged, again.removed) == (0, 3, 0)
        assert before == {path: path.stat().st_mtime_ns for path in vault.rglob("*.md")}
        await memory.record_messages("one", [NewMessage(Role.USER, "Third.")])
        await memory.settled()
        third = await exported(memory, vault)
        assert (third.written, third.unchanged) == (2, 1)  # its page, and the count in the index
        await memory.forget("msg_2")
        await memory.settled()
        assert (await exported(memory, vault)).removed == 1
    assert set(files(vault)) == {"Index.md", "Sessions/one.md"}


@pytest.mark.anyio
async def test_pages_are_named_by_title_and_a_later_conversation_renames_none(tmp_path: Path) -> None:
    vault = tmp_path / "vault"

    def told(text: str, day: str) -> list[NewMessage]:
        return [
            NewMessage(Role.USER, "/model opus", created_at=from_iso(f"2026-11-{day}T09:00:00Z")),
            NewMessage(Role.USER, text, created_at=from_iso(f"2026-11-{day}T09:01:00Z")),
        ]

    async with opened(tmp_path / "memory.db") as memory:
        await memory.record_messages(SECOND, told("Fix the poller: why does it hang?", "17"))
        await memory.record_messages(FIRST, told("Fix the poller: why does it hang?", "16"))
        await memory.record_messages(THIRD, told("fix the poller: WHY does it hang?", "17"))
        await memory.remember(RecordType.TASK, {"text": "Call Rute"}, session_id=SECOND)
        await memory.settled()
        await exported(memory, vault)
        before = files(vault)
        assert set(before) == {
            "Index.md",
            "Tasks.md",
            "Sessions/2026-11-16 Fix the poller- why does it hang.md",
            "Sessions/2026-11-17 Fix the poller- why does it hang.md",
            "Sessions/2026-11-17 fix the poller- WHY does it hang (2).md",
        }
        links = re.findall(r"\[\[Sessions/([^|\]]+)\|([^\]]+)", before["Index.md"])
        assert [one[0][:10] for one in links] == ["2026-11-16", "2026-11-17", "2026-11-17"]
        assert links[0][1] == "Fix the poller: why does it hang?"
        assert "2026-11-17 Fix the poller- why does it hang|" in before["Tasks.md"]
        page = before["Sessions/2026-11-16 Fix the poller- why does it hang.md"]
        assert "\n# Fix the poller: why does it hang?\n" in page
        assert f'session: "{FIRST}"' in page
        assert not [name for name in before if UUID.search(name)]
        assert not UUID.search(before["Index.md"] + before["Tasks.md"])
        await memory.record_messages(FOURTH, told("Fix the poller: why does it hang?", "17"))
        again = await exported(memory, vault)
        assert (again.written, again.removed) == (2, 0)  # the new page, and the index
        narrowed = await exported(memory, tmp_path / "one", Selection(session=THIRD))
        assert narrowed.written
    assert "Sessions/2026-11-17 fix the poller- WHY does it hang (2).md" in files(tmp_path / "one")
    assert "Sessions/2026-11-17 Fix the poller- why does it hang (3).md" in files(vault)


@pytest.mark.anyio
async def test_what_is_not_ours_is_neither_changed_nor_removed(tmp_path: Path) -> None:
    vault = tmp_path / "vault"
    (vault / "Sessions").mkdir(parents=True)
    (vault / "Sessions" / "mine.md").write_text("my own")
    (vault / "Index.md").write_text("my index")
    async with opened(tmp_path / "memory.db") as memory:
        await memory.record_messages("one", [NewMessage(Role.USER, "First.")])
        await memory.record_messages("two", [NewMessage(Role.USER, "Second.")])
        await memory.settled()
        assert (await exported(memory, vault)).left == ["Index.md"]
        (vault / "Sessions" / "one.md").write_text("I wrote here")
        (vault / "Sessions" / "two.md").write_text("and here")
        await memory.forget("msg_1")
        await memory.record_messages("two", [NewMessage(Role.USER, "Third.")])
        await memory.settled()
        assert (await exported(memory, vault)).left == ["Index.md", "Sessions/one.md", "Sessions/two.md"]
        # Taken away, it is made again.
        (vault / "Sessions" / "two.md").unlink()
        assert (await exported(memory, vault)).written == 1
    found = files(vault)
    assert found["Index.md"] == "my index"
    assert found["Sessions/mine.md"] == "my own"
    assert found["Sessions/one.md"] == "I wrote here"
    assert "Third." in found["Sessions/two.md"]


@pytest.mark.anyio
async def test_an_interrupted_run_is_finished_by_the_next(tmp_path: Path) -> None:
    vault = tmp_path / "vault"

    async def interrupted() -> AsyncIterator[Page]:
        yield Page("Sessions/a.md", "old a")
        yield Page("Sessions/b.md", "old b")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        await write_folder(vault, interrupted())
    with (vault / MANIFEST).open("a") as manifest:
        manifest.write('{"path": "Sessions/c.m')  # cut short
    report = await write_folder(vault, of(Page("Sessions/a.md", "new a")))
    assert (report.written, report.removed, report.left) == (1, 1, [])
    assert files(vault) == {"Sessions/a.md": "new a"}


@pytest.mark.anyio
async def test_a_list_of_files_cannot_name_files_elsewhere(tmp_path: Path) -> None:
    vault, outside = tmp_path / "vault", tmp_path / "outside.md"
    vault.mkdir()
    outside.write_text("not yours")
    digest = sha256(b"not yours").hexdigest()
    names = ("../outside.md", str(outside), "a/../../outside.md", "..\\outside.md", "C:outside.md")
    (vault / MANIFEST).write_text("".join(json.dumps({"path": name, "sha256": digest}) + "\n" for name in names))
    await write_folder(vault, of())
    assert outside.read_text() == "not yours"


@pytest.mark.anyio
async def test_a_folder_that_cannot_be_written_is_refused_with_a_sentence(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("x")
    with pytest.raises(Conflict, match="is a file"):
        await write_folder(file, of())
    with pytest.raises(InvalidInput, match="cannot write"):
        await write_folder(file / "below", of())


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("selection", "names"),
    [
        (Selection(session="home"), {"Sessions/home.md", "Index.md"}),
        (Selection(types=frozenset({RecordType.TASK})), {"Tasks.md", "Index.md"}),
        (Selection(agent="other"), {"Sessions/away.md", "Notes.md", "Profile.md", "Index.md"}),
        (Selection(until_ms=0), {"Index.md"}),
    ],
    ids=["session", "type", "agent", "until"],
)
async def test_a_filter_leaves_out_the_rest(tmp_path: Path, selection: Selection, names: set[str]) -> None:
    async with opened(tmp_path / "memory.db") as memory:
        await fill(memory)
        await exported(memory, tmp_path / "vault", selection)
    assert set(files(tmp_path / "vault")) == names


@given(st.text(max_size=300))
def test_a_name_is_one_that_every_system_takes(name: str) -> None:
    made = file_name(name)
    assert made
    assert not REFUSED & set(made)
    assert made == made.strip(" .")
    assert len(made.encode()) <= 140
    assert made.isprintable()
    assert file_name(name) == made


@given(st.lists(st.text(max_size=12), min_size=2, max_size=8, unique=True))
def test_different_names_stay_different_where_case_does_not_count(names: list[str]) -> None:
    assert len({file_name(name).casefold() for name in names}) == len(names)


@pytest.mark.parametrize("name", ["CON", "nul", "com1.txt", "Lpt9", "a.", "..", "", "trip/oslo", "A" * 400, "é" * 200])
def test_a_name_that_some_system_refuses_is_changed(name: str) -> None:
    made = file_name(name)
    assert made != name
    assert made.partition(".")[0].strip().casefold() not in {"con", "nul", "com1", "lpt9", ""}


@pytest.mark.parametrize("name", ["home", "2026-05-03", "session_0123abcd", "grün"])
def test_a_name_that_is_fine_stays(name: str) -> None:
    assert file_name(name) == name


def test_text_embeds_nothing_and_code_stays() -> None:
    image = "![x](https://example.org/pixel?q=secret) and <img src='https://example.org'> and ![[Other]]"
    shown = shown_text(image)
    assert not re.search(r"(?<!\\)!\[", shown)
    assert not re.search(r"(?<!\\)<img", shown)
    code = "```rust\nlet v = vec![1]; // <b>\n```"
    assert shown_text(code) == code
    assert shown_text("use `vec![1]` and a <= b") == "use `vec![1]` and a <= b"
    assert shown_text("```\nnever closed") == "```\nnever closed\n```"
    assert not re.search(r"(?<!\\)!\[", shown_text("``` x\n```\n![y](z)"))


def test_an_export_to_a_folder_of_a_stranger_follows_no_link(tmp_path: Path) -> None:
    """A file of ours that became a link is not as it was written."""
    if os.name != "posix":
        pytest.skip("links need rights there")
    vault, target = tmp_path / "vault", tmp_path / "target.md"

    async def run() -> None:
        await write_folder(vault, of(Page("Index.md", "ours")))
        target.write_text("theirs")
        (vault / "Index.md").unlink()
        (vault / "Index.md").symlink_to(target)
        report = await write_folder(vault, of(Page("Index.md", "new")))
        assert report.left == ["Index.md"]

    anyio.run(run)
    assert target.read_text() == "theirs"
