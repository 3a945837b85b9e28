"""While the memory is paused, and in an excluded folder, no words come in, whatever tool or verb brings them."""

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final

import pytest
from mcp import Client

from kalito_mcp.domain.access import Permission
from kalito_mcp.domain.archive import ArchiveEntry
from kalito_mcp.domain.digest import Digest
from kalito_mcp.domain.erasing import ForgetRequest
from kalito_mcp.domain.imports import FileRead
from kalito_mcp.domain.records import CreatePinRequest, CreateSummaryRequest, NewMessage, Origin, Role
from kalito_mcp.domain.spaces import Role as SpaceRole
from kalito_mcp.errors import Conflict
from kalito_mcp.memory import Memory
from kalito_mcp.memory.noting import Noting
from kalito_mcp.memory.part import Part
from kalito_mcp.memory.sharing import Sharing
from kalito_mcp.runtime.database_address import LocalFiles
from kalito_mcp.server.build import build_server
from kalito_mcp.switch import FOR_EVER, Switch, write_switch
from kalito_mcp.wiring import open_memory
from tests.empty_database import lay_empty_database
from tests.flows.harness import Harness

pytestmark = pytest.mark.anyio
WORD: Final = "zanzibar"
TEXT: Final = f"We fly to {WORD}."
FILE: Final = "/memories/trip.md"

TAKES_WORDS: Final[Mapping[str, Sequence[Mapping[str, Any]]]] = {
    "record_messages": [
        {"session_id": "s", "messages": [{"role": "user", "text": TEXT}]},
        {"session_id": WORD, "messages": [{"role": "user", "text": "Hello."}]},
    ],
    "create_pin": [{"session_id": "s", "content": TEXT}],
    "summarize_session": [
        {"session_id": "s"},
        {"session_id": "s", "summary": TEXT},
        {"session_id": "s", "open": [TEXT]},
        {"session_id": "s", "start_message_id": "msg_1", "end_message_id": "msg_2", "summary": TEXT},
    ],
    "record_feedback": [{"target_id": "msg_2", "label": "up", "note": TEXT}],
    "finalize_session": [{"session_id": "s", "checkpoint_name": WORD}, {"session_id": "s", "dry_run": True}],
    "remember": [{"type": "note", "text": TEXT}],
    "update_memory": [{"record_id": "msg_1", "changes": {"text": TEXT}, "expected_revision": 1}],
    "memory": [
        {"command": "create", "path": "/memories/other.md", "file_text": TEXT},
        {"command": "str_replace", "path": FILE, "old_str": "Oslo", "new_str": WORD},
        {"command": "insert", "path": FILE, "insert_line": 0, "insert_text": TEXT},
    ],
}
"""Calls that are refused."""
GOES_ON: Final[Mapping[str, Sequence[Mapping[str, Any]]]] = {
    "build_context": [{"session_id": "s", "query": TEXT}],
    "search_memory": [{"query": f"Oslo {WORD}"}],
    "memory_history": [{"record_id": "msg_1"}],
    "list_tasks": [{}],
    "forget": [{"record_ids": ["msg_1"]}, {"record_ids": ["msg_2"], "purge": True, "confirmed": True}],
    "restore": [{"record_id": "msg_1"}],
    "memory": [
        {"command": "view", "path": FILE},
        {"command": "rename", "old_path": FILE, "new_path": "/memories/trips.md"},
        {"command": "delete", "path": "/memories/trips.md"},
    ],
    "hook_event": [{"host": "claude-code", "event": "UserPromptSubmit", "session_id": "s", "prompt": TEXT}],
}
"""Calls that are done: they look, hide, erase, bring back and move. A hook gets no error, and nothing is kept."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A repository."""
    (tmp_path / "shop" / ".git").mkdir(parents=True)
    return tmp_path / "shop"


@asynccontextmanager
async def remembering(tmp_path: Path, folder: Path) -> AsyncIterator[tuple[Harness, Memory]]:
    """A server with all its tools over a memory of this folder, which remembers a conversation, its open point and a
    file."""

    @asynccontextmanager
    async def opens() -> AsyncIterator[Memory]:
        async with open_memory(lay_empty_database(tmp_path / "memory.db")) as memory:
            yield await memory.in_project(str(folder))

    server = build_server(opens, has_memory_tool=True, has_hooks=True)
    async with Client(server) as client:
        h = Harness(client, server)
        turns = [{"role": "user", "text": "We fly to Oslo."}, {"role": "assistant", "text": "Noted."}]
        await h.text("record_messages", session_id="s", messages=turns)
        await h.text("memory", command="create", path=FILE, file_text="To Oslo.")
        memory = await server.opened.memory()
        await memory.keep_digest("s", Digest(open=("The hotel must be booked.",)))
        await memory.record_feedback("msg_2", "up")
        await h.settled()
        yield h, memory


def written_below(folder: Path, word: str) -> list[str]:
    """The files that have the word in their bytes or in their name."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [str(path) for path in files if word in path.name or word.encode() in path.read_bytes().lower()]


@pytest.mark.parametrize("is_paused", [True, False], ids=["paused", "excluded"])
async def test_each_tool_refuses_new_words_or_keeps_none(tmp_path: Path, folder: Path, *, is_paused: bool) -> None:
    async with remembering(tmp_path, folder) as (h, _):
        # Whoever adds a tool says here what it does while the memory is paused.
        assert {tool.name for tool in (await h.client.list_tools()).tools} == TAKES_WORDS.keys() | GOES_ON.keys()
        write_switch(
            LocalFiles(tmp_path / "memory.db").switch,
            Switch(FOR_EVER) if is_paused else Switch(excluded=(str(folder),)),
        )
        for tool, calls in TAKES_WORDS.items():
            for call in calls:
                refused = await h.refusal(tool, **call)
                assert ("kalito-mcp resume" if is_paused else "kalito-mcp exclude --remove") in refused, (tool, call)
        for tool, calls in GOES_ON.items():
            for call in calls:
                await h.text(tool, **call, **({"cwd": str(folder)} if tool == "hook_event" else {}))
        await h.settled()
        assert not written_below(tmp_path, WORD)
    assert not written_below(tmp_path, WORD)


Verb = Callable[[Memory], Awaitable[object]]


async def _revoked(memory: Memory) -> object:
    return await memory.access.revoke_token((await memory.access.tokens())[0].id)


async def _decided(memory: Memory, decide: Callable[[str], Awaitable[object]]) -> object:
    [point] = await memory.conversations.timeline.open_points(limit=9)
    return await decide(point.record_id)


async def _closed(memory: Memory) -> object:
    [point] = await memory.conversations.timeline.open_points(limit=9)
    return await memory.conversations.timeline.close([point.record_id])


async def _joined(memory: Memory, then: Callable[[], Awaitable[object]] | None = None, user: str = "ann") -> None:
    with suppress(Conflict):
        await memory.spaces.create("team")
    await memory.spaces.set_member("team", user, SpaceRole.WRITER)
    if then is not None:
        await then()


REFUSED: Final[Mapping[str, Verb]] = {
    "record_messages": lambda memory: memory.record_messages("s", [NewMessage(Role.USER, TEXT)]),
    "create_pin": lambda memory: memory.create_pin(CreatePinRequest("s", TEXT)),
    "conversations.summarize": lambda memory: memory.conversations.summarize("s"),
    "create_summary": lambda memory: memory.create_summary(CreateSummaryRequest("s", "msg_1", "msg_2", summary=TEXT)),
    "conversations.adopt_summary": lambda memory: memory.conversations.adopt_summary("s", TEXT),
    "keep_digest": lambda memory: memory.keep_digest("s", Digest(open=(TEXT,))),
    "record_feedback": lambda memory: memory.record_feedback("msg_2", "up", TEXT),
    "finalize_session": lambda memory: memory.finalize_session("s"),
    "remember": lambda memory: memory.remember("note", {"text": TEXT}),
    "update_memory": lambda memory: memory.update_memory("msg_1", {"text": TEXT}, expected_revision=1),
    "files.write": lambda memory: memory.files.write(FILE, lambda _tree, _text: TEXT),
    "imports.import_document": lambda memory: memory.imports.import_document(
        {"text": TEXT}, origin=Origin.IMPORT, created_at=1
    ),
    "archive.restore": lambda memory: memory.archive.restore([ArchiveEntry("records", {"text": TEXT})]),
    "imports.keep_file_read": lambda memory: memory.imports.keep_file_read(FileRead("codex", WORD, 1, 1, 1, "")),
    "spaces.share": lambda memory: _joined(memory, lambda: memory.spaces.share("msg_1", "team"), user="local"),
}
GOES_ON_TOO: Final[Mapping[str, Verb]] = {
    "people.erase": lambda memory: _person_erased(memory, "ann"),
    "spaces.create": lambda memory: memory.spaces.create("guild"),
    "spaces.set_member": _joined,
    "spaces.remove_member": lambda memory: _joined(memory, lambda: memory.spaces.remove_member("team", "ann")),
    "spaces.remove": lambda memory: _joined(memory, lambda: memory.spaces.remove("team")),
    "records.keep": lambda memory: _decided(memory, memory.records.keep),
    "records.keep_both": lambda memory: _decided(memory, lambda pin: memory.records.keep_both(pin, "msg_1")),
    "records.replace": lambda memory: _decided(memory, lambda pin: memory.records.replace(pin, "msg_1")),
    "conversations.withdraw_feedback": lambda memory: memory.conversations.withdraw_feedback("msg_2", "up"),
    "timeline.close": _closed,
    "conversations.score": lambda memory: memory.conversations.score("s"),
    "conversations.move": lambda memory: memory.conversations.move("s", None),
    "files.rename": lambda memory: memory.files.rename(lambda _: {FILE: "/memories/trips.md"}),
    "files.delete": lambda memory: memory.files.delete(lambda _: ["/memories/trips.md"]),
    "forget": lambda memory: memory.forget("msg_1"),
    "restore": lambda memory: memory.restore("msg_1"),
    "records.revert": lambda memory: memory.records.revert("msg_1", 1),
    "records.forget_previewed": lambda memory: _previewed(memory, is_purge=False),
    "records.purge_previewed": lambda memory: _previewed(memory, is_purge=True),
    "purge": lambda memory: memory.purge(["msg_2"]),
    "access.log": lambda memory: memory.access.log("access.log"),
    "settled": lambda memory: memory.settled(),
    "access.create_token": lambda memory: memory.access.create_token(Permission.READ, name="later"),
    "access.principal_of": lambda memory: memory.access.principal_of("kal_unknown"),
    "access.revoke_token": _revoked,
}
READS: Final = frozenset(
    "access.audit access.audit_count access.check_audit access.derived_key access.ends_of access.tokens "
    "access.why_refused build_context changes.revision changes.versions conversations.agents conversations.around "
    "conversations.begun_before conversations.get conversations.graph_overview conversations.is_empty "
    "conversations.messages conversations.recent conversations.similar_name "
    "conversations.stats conversations.titles conversations.totals conversations.transcript "
    "files.look for_question given.asked given.get given.recent given.records given.tokens_by_day given.version "
    "given.with_record hooks.conversation_of hooks.inject hooks.inject_known hooks.seen_parts hooks.unanswered "
    "hooks.warm_up imports.check_not_taken_in imports.files_read imports.project_of_document imports.sessions_at "
    "imports.sessions_holding imports.sources "
    "in_project in_project_of past_answers people.all projects.all projects.named projects.sizes records.all "
    "records.as_of records.completions records.derived_from records.derived_from_all records.diff "
    "records.disagreements records.get records.get_all records.history records.inbox records.page "
    "records.preview_forgetting records.profile records.proposed records.statements "
    "records.tasks records.vectors records.version "
    "search_memory spaces.all spaces.fixed spaces.members spaces.mine spaces.with_members spaces.writable "
    "changes.listen conversations.schema timeline.clients timeline.heard timeline.messages_by_day timeline.newest "
    "timeline.open_points timeline.session timeline.sessions timeline.turns".split()
)
MOVES_PROJECTS: Final = frozenset({"records.move", "projects.rename", "projects.move_all"})
SWITCHES: Final = frozenset({"projects.exclude", "projects.include", "projects.pause", "projects.resume"})


async def _person_erased(memory: Memory, name: str) -> None:
    await memory.access.create_token(Permission.READ, owner=name)
    await memory.people.erase(name)


async def _previewed(memory: Memory, *, is_purge: bool) -> None:
    request = ForgetRequest("Oslo", None, is_purge=is_purge)
    token = (await memory.records.preview_forgetting(request)).token
    assert token is not None
    await (memory.records.purge_previewed if is_purge else memory.records.forget_previewed)(request, token)


def verbs_of_all_parts() -> set[str]:
    """Such as `forget` and `records.history`."""
    parts = [one for one in Part.__subclasses__() if one not in (Memory, Noting, Sharing)]
    classes = {"": Memory, **{f"{one.__name__.lower()}.": one for one in parts}}
    return {
        f"{part}{name}"
        for part, one in classes.items()
        for name, _ in inspect.getmembers(one, inspect.iscoroutinefunction)
        if not name.startswith("_")
    }


async def test_each_verb_refuses_new_words_while_paused(tmp_path: Path, folder: Path) -> None:
    # Whoever adds a verb says here what it does while the memory is paused.
    assert verbs_of_all_parts() == REFUSED.keys() | GOES_ON_TOO.keys() | READS | MOVES_PROJECTS | SWITCHES
    async with remembering(tmp_path, folder) as (_, memory):
        write_switch(LocalFiles(tmp_path / "memory.db").switch, Switch(FOR_EVER))
        for name, verb in REFUSED.items():
            with pytest.raises(Conflict, match="kalito-mcp resume"):
                await verb(memory)
                pytest.fail(f"{name} is not refused")
        for verb in GOES_ON_TOO.values():
            await verb(memory)
        assert not written_below(tmp_path, WORD)


async def test_records_and_projects_are_moved_and_renamed_while_paused(tmp_path: Path, folder: Path) -> None:
    async with remembering(tmp_path, folder) as (_, memory):
        [note] = await memory.remember("note", {"text": "The shop has bees."})
        write_switch(LocalFiles(tmp_path / "memory.db").switch, Switch(FOR_EVER))
        assert await memory.projects.rename(str(folder), "bees") == "bees"
        [moved] = await memory.records.move(note.id, None)
        assert moved.project is None


async def test_the_managers_of_the_specification_take_no_words_while_paused(tmp_path: Path, folder: Path) -> None:
    async with remembering(tmp_path, folder) as (_, memory):
        write_switch(LocalFiles(tmp_path / "memory.db").switch, Switch(FOR_EVER))
        with pytest.raises(Conflict, match="paused"):
            await memory.manager.create_semantic_pin(CreatePinRequest("s", TEXT))
        with pytest.raises(Conflict, match="paused"):
            await memory.orchestrator().upsert_query("s", TEXT)
        assert not written_below(tmp_path, WORD)


async def test_what_was_owed_before_a_pause_is_done_meanwhile(tmp_path: Path) -> None:
    database = lay_empty_database(tmp_path / "memory.db")
    async with open_memory(database) as memory:
        await memory.record_messages("s", [NewMessage(Role.USER, "Remember: my cat is called Mina.")])
        write_switch(LocalFiles(database).switch, Switch(FOR_EVER))
        await memory.settled()
        assert (await memory.conversations.stats("s")).total_pins == 1
