"""House, over HTTP: how much is where, projects that move and are left out, this machine, the log and the archive."""

import json
import re
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from kalito_mcp.cli.this_machine import ThisMachine
from kalito_mcp.config.settings import Settings
from kalito_mcp.domain.access import Permission
from kalito_mcp.domain.findings import Finding
from kalito_mcp.domain.imports import FileRead
from kalito_mcp.domain.records import NewMessage, Role
from kalito_mcp.domain.scope import Limits
from kalito_mcp.domain.spaces import Role as SpaceRole
from kalito_mcp.runtime.database_address import DatabaseAddress
from tests.sign_in.harness import Home, home
from tests.web.page.visitor import forms, visiting

pytestmark = pytest.mark.anyio
BOAT, KITE = "/home/ann/code/boat", "/home/ann/code/kite"


@pytest.fixture
async def at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Home]:
    """A memory with two projects, on a machine with Cursor in its home folder."""
    (tmp_path / "home" / ".cursor").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    machine = ThisMachine(Settings(database=DatabaseAddress(tmp_path / "memory.db")), None)
    async with home(tmp_path, machine=machine) as served:
        for project, session in ((BOAT, "sail"), (BOAT, "oars"), (KITE, "wind"), ("personal", "nuts")):
            place = await served.memory.in_project(project)
            await place.record_messages(session, [NewMessage(Role.USER, f"We talk of {session}.")])
        yield served


async def places(at: Home) -> dict[str, str | None]:
    return {one.id: one.project for one in await at.memory.conversations.recent()}


def row_of(text: str, project: str) -> str:
    """The row of a project in the table."""
    [found] = [row for row in re.findall(r"<tr.*?</tr>", text, re.DOTALL) if f">{project}<" in row]
    return found


async def test_it_shows_each_project_with_its_size_as_links(at: Home) -> None:
    async with visiting(at) as person:
        page = await person.get("/house")
    assert "4 sessions</a>" in page.text
    boat = row_of(page.text, BOAT)
    assert boat.count('href="/timeline?project=%2Fhome%2Fann%2Fcode%2Fboat">2</a>') == 2
    assert "personal" in row_of(page.text, "personal")
    assert 'aria-current="page">House' in page.text


async def test_the_tokens_that_were_given_are_bars_with_a_table(at: Home) -> None:
    async with visiting(at) as person:
        assert "Nothing was given" in (await person.get("/house")).text
        context = await at.memory.build_context("sail")
        page = await person.get("/house")
        assert '<rect class="given-context"' in page.text
        assert f"<td>{context.total_tokens:,}</td>" in page.text
        assert " style=" not in page.text


async def test_it_lists_the_spaces_with_role_and_members_and_a_record_says_where_it_is(at: Home) -> None:
    async with visiting(at) as person:
        assert 'id="spaces"' not in (await person.get("/house")).text
        for name, members in (("team", ("local", "b<b>en")), ("other", ("b<b>en",))):
            await at.memory.spaces.create(name)
            for user in members:
                await at.memory.spaces.set_member(name, user, SpaceRole.READER if user == "local" else SpaceRole.WRITER)
        ben = at.memory.of_owner("b<b>en")
        [note] = await ben.remember("note", {"text": "We sail on Sundays."})
        copy, _ = await ben.spaces.share(note.id, "team")
        page = await person.get("/house")
        spaces = page.text.partition('id="spaces"')[2].partition("</table>")[0]
        assert [*re.findall(r"<th scope=.row.>(?:<[^>]*>)*([^<]*)", spaces)] == ["team"]
        assert "b&lt;b&gt;en" in spaces
        assert "<td>reader</td>" in spaces
        shown = await person.get(f"/r/{copy.id}")
        assert '<dt>Shared in</dt><dd><a href="/house#spaces"><bdi>team</bdi></a></dd>' in shown.text
        [own] = await at.memory.remember("note", {"text": "We row on Mondays."})
        assert "Shared in" not in (await person.get(f"/r/{own.id}")).text


async def test_an_empty_memory_says_what_to_do_first(tmp_path: Path) -> None:
    async with home(tmp_path) as at, visiting(at) as person:
        page = await person.get("/house")
        assert "kalito-mcp install" in page.text
        assert "Nothing was imported" in page.text
        assert 'id="machine"' not in page.text, "without a machine nothing is said of it"


async def test_a_project_is_renamed_and_the_undo_gives_it_its_name_back(at: Home) -> None:
    async with visiting(at) as person:
        page = await person.act(await person.get("/house"), "rename_project", old=BOAT, new="ship")
        assert "Project renamed" in page.text
        assert set((await places(at)).values()) == {"ship", KITE, None}
        page = await person.undo(page)
        assert set((await places(at)).values()) == {BOAT, KITE, None}
        await person.undo(page)
        assert set((await places(at)).values()) == {"ship", KITE, None}


async def test_a_project_moves_into_another_and_the_undo_moves_exactly_that_back(at: Home) -> None:
    before = await places(at)
    async with visiting(at) as person:
        page = await person.act(await person.get("/house"), "rename_project", old=BOAT, new=KITE)
        assert "2 sessions moved" in page.text
        assert set((await places(at)).values()) == {KITE, None}
        page = await person.undo(page)
        assert "2 sessions moved back" in page.text
        assert await places(at) == before
        await person.undo(page)
        assert set((await places(at)).values()) == {KITE, None}


async def test_a_move_is_taken_back_by_its_owner_alone(at: Home) -> None:
    async with visiting(at) as person, visiting(at, owner="ben") as ben:
        page = await person.act(await person.get("/house"), "rename_project", old=BOAT, new=KITE)
        [bar] = [form for form in forms(page) if form.action == "/act/move_back"]
        [own] = [form for form in forms(await ben.get("/house")) if form.action == "/leave"]
        await ben.send("move_back", {**own.fields, "key": bar.fields["key"]}, 404)
        assert BOAT not in (await places(at)).values()


async def test_a_project_is_left_out_until_that_is_undone(at: Home) -> None:
    async with visiting(at) as person:
        page = await person.act(await person.get("/house"), "exclude_folder", folder=BOAT)
        assert "Nothing is remembered there" in page.text
        assert "Remember again" in row_of(page.text, BOAT)
        assert at.memory.projects.excluded() == (BOAT,)
        page = await person.undo(page)
        assert at.memory.projects.excluded() == ()
        assert "Leave out" in row_of(page.text, BOAT)
        actions = [one.said.action for one in await at.memory.access.audit()]
        assert actions[:2] == ["page include_folder", "page exclude_folder"]


async def test_this_machine_is_shown_with_its_assistants_backups_files_and_vectors(at: Home, tmp_path: Path) -> None:
    async with visiting(at) as person:
        page = await person.get("/house/machine")
    assert "kalito-mcp install cursor" in page.text
    assert f"{tmp_path / 'memory.db.backups'}</code>" in page.text
    assert "There is no backup yet" in page.text
    assert re.search(r"memory\.db</bdi>: [\d.]+ kB", page.text)
    assert "No vectors: search compares words only" in page.text


async def test_the_database_is_checked_on_demand(at: Home) -> None:
    async with visiting(at) as person:
        page = await person.get("/house/check")
    assert "structure: " in page.text
    assert "Yes: no check failed." in page.text


async def test_there_is_one_check_at_a_time(at: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    running: list[int] = []
    most: list[int] = []

    def check(machine: ThisMachine) -> list[Finding]:
        running.append(1)
        most.append(len(running))
        threading.Event().wait(0.05)
        running.pop()
        return []

    monkeypatch.setattr(ThisMachine, "check", check)
    async with visiting(at) as person, anyio.create_task_group() as tasks:
        for _ in range(5):
            tasks.start_soon(person.get, "/house/check")
    assert most == [1] * 5


async def test_the_log_comes_in_pages_with_links_to_what_changed(at: Home) -> None:
    async with visiting(at) as person:
        for number in range(60):
            await at.memory.access.log(f"act {number}")
        first = await person.get("/house/log")
        assert "act 59" in first.text
        [older] = re.findall(r'href="(/house/log\?before=\d+)"', first.text)
        rest = await person.get(older)
        assert "act 59" not in rest.text
        assert "make_link" in rest.text
        await person.act(await person.get("/house"), "rename_project", old=BOAT, new=KITE)
        assert '<a href="/s/sail">' in (await person.get("/house")).text


async def test_the_archive_is_a_file_that_is_logged(at: Home) -> None:
    async with visiting(at) as person:
        answer = await person.get("/house/export")
    assert answer.headers["content-disposition"] == 'attachment; filename="kalito-memory.jsonl"'
    assert "default-src 'self'" in answer.headers["content-security-policy"]
    assert sum("We talk of" in line for line in answer.text.splitlines() if json.loads(line)) == 4
    assert (await at.memory.access.audit())[0].said.action == "page /house/export"


async def test_an_import_that_runs_is_shown_while_it_runs(at: Home) -> None:
    await at.memory.imports.keep_file_read(FileRead("codex", "/t/a.jsonl", 10, 7, 2_500_000, "f"))
    async with visiting(at) as person:
        assert "An import is running" in (await person.get("/house")).text
        at.clock.advance(60)
        page = await person.get("/house")
    assert "An import is running" not in page.text
    assert "1 file, 2.5 MB" in page.text


@pytest.mark.parametrize("permission", [Permission.READ, Permission.WRITE])
async def test_who_is_no_admin_sees_sizes_and_nothing_of_the_machine(at: Home, permission: Permission) -> None:
    async with visiting(at, permission) as person:
        page = await person.get("/house")
        assert "4 sessions</a>" in page.text
        for hidden in ('id="machine"', "Audit log", "/house/export", "Leave out", "Tokens and browsers"):
            assert hidden not in page.text
        assert ("/act/rename_project" in page.text) is (permission is Permission.WRITE)
        for path in ("machine", "check", "log", "export"):
            await person.get(f"/house/{path}", 403)
        [own] = [form for form in forms(page) if form.action == "/leave"]
        await person.send("exclude_folder", {**own.fields, "folder": BOAT}, 403)
        if permission is Permission.READ:
            await person.send("rename_project", {**own.fields, "old": BOAT, "new": KITE}, 403)
    assert at.memory.projects.excluded() == ()


async def test_another_owner_sees_nothing_of_this_machine_and_only_their_own_tokens(at: Home) -> None:
    async with visiting(at), visiting(at, owner="ben") as ben:
        page = await ben.get("/house")
        assert 'id="machine"' not in page.text
        assert BOAT not in page.text
        tokens = [one for one in await at.memory.access.tokens() if one.revoked_at is None]
        assert [one.owner for one in tokens if one.id in page.text] == ["ben"]
        [own] = [form for form in forms(page) if form.action == "/leave"]
        await ben.send("exclude_folder", {**own.fields, "folder": BOAT}, 404)
        await ben.get("/house/machine", 404)
        await ben.get("/house/check", 404)


async def test_within_limits_only_what_is_within_is_counted(at: Home) -> None:
    made = await at.memory.access.create_token(Permission.ADMIN, limits=Limits(project=KITE))
    async with visiting(at) as person:
        person.http.cookies.clear()
        headers = {"origin": at.base}
        await person.http.post("/enter", data={"token": made.text}, headers=headers)
        page = await person.get("/house")
        assert BOAT not in page.text
        assert "2 sessions</a>" in page.text
        assert "/act/rename_project" not in page.text
        for path in ("machine", "check"):
            await person.get(f"/house/{path}", 404)
        for path in ("log", "export"):
            await person.get(f"/house/{path}", 403)


async def test_names_of_projects_are_only_words(at: Home) -> None:
    evil = "<script>alert(1)</script>\u202e"
    await (await at.memory.in_project(evil)).record_messages("evil", [NewMessage(Role.USER, "Hello.")])
    async with visiting(at) as person:
        page = await person.get("/house")
    assert "<script>alert" not in page.text
    assert "&lt;script&gt;alert" in page.text
