"""The audit log: whatever a principal changes is in it, with ids and without words, and no line of it can be changed
unseen."""

import sqlite3
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import anyio
import pytest

from kalito_mcp.domain.access import HOST, Permission, Principal
from kalito_mcp.domain.archive import Selection
from kalito_mcp.domain.audit import MOST_IDS, AuditEntry, AuditHead, Change, Outcome
from kalito_mcp.domain.findings import Verdict
from kalito_mcp.domain.records import CreatePinRequest, NewMessage, Origin, Role
from kalito_mcp.domain.scope import Limits
from kalito_mcp.domain.search import SearchRequest
from kalito_mcp.errors import AccessDenied, RecordNotFound
from kalito_mcp.memory import Memory
from kalito_mcp.ports.store import WriteTransaction
from kalito_mcp.runtime.acting import acting_as
from kalito_mcp.storage.sqlite.audit import NOTICED
from kalito_mcp.storage.sqlite.inspection import inspect
from kalito_mcp.wiring import open_memory
from tests.empty_database import lay_empty_database
from tests.flows import test_paused
from tests.flows.test_paused import folder, remembering  # noqa: F401 - a fixture
from tests.scripted import START_MS, ScriptedClock

pytestmark = pytest.mark.anyio
ANN = Principal("tok_ann", "local", Permission.ADMIN, client="https://app.example.org")
SCHEMA_TABLES: Final = "SELECT name FROM pragma_table_list WHERE type = 'table'"
NOT_NOTICED: Final[Mapping[str, str]] = {
    "agents": "names and counters; a record or a session comes with it",
    "memory_edits": "with the record whose version it is",
    "tombstones": "with the record that was erased",
    "record_usage": "counts reads",
    "feedback": "counts; the graph that has the feedback is noticed",
    "graph_nodes": "with their graph: the ids are hashes of words",
    "graph_edges": "with their graph",
    "imports": "how far files were read; what was read from them is noticed",
    "shared_copies": "with the record of the space that is the copy",
    "given": "what was read; nothing is changed by it",
    "state_secret": "never changes",
    "oauth_clients": "programs that introduced themselves; they are let in by a grant, which is noticed",
    "oauth_requests": "what waits for a person's answer",
    "oauth_codes": "with their grant",
    "access_attempts": "counts",
    "identity": "never changes",
    "migrations": "the schema's own",
    "audit_log": "itself",
    "audit_head": "itself",
    "record_shapes": "derived",
    "record_changes": "derived",
    "text_rebuild": "derived",
    "superseded_records": "derived",
    "vector_indexes": "derived",
    "record_vectors": "derived",
    "vector_removals": "derived",
    "vector_debts": "derived",
    "vector_moves": "derived",
    "vector_leftovers": "derived",
    "unswept": "what is still to be cleaned of what was erased",
}
"""Tables whose rows the log does not name, and why."""


WHOLE: Final[Mapping[str, test_paused.Verb]] = {
    "imports.import_document": lambda memory: memory.imports.import_document(
        {"text": "Bees.", "source": "bees.md"}, origin=Origin.IMPORT, created_at=1
    )
}
"""Calls that are refused while paused only because of that."""


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return lay_empty_database(tmp_path / "memory.db")


@pytest.fixture
async def memory(database: Path) -> AsyncIterator[Memory]:
    async with open_memory(database, clock=ScriptedClock()) as opened:
        yield opened


async def entries(memory: Memory) -> list[AuditEntry]:
    return [*reversed(await memory.access.audit(limit=10_000, all_owners=True))]


async def only_entry(memory: Memory) -> AuditEntry:
    [entry] = await entries(memory)
    return entry


async def fault(memory: Memory) -> str | None:
    return (await memory.access.check_audit())[0]


def test_every_table_is_noticed_or_left_out_for_a_reason(database: Path) -> None:
    with closing(sqlite3.connect(database)) as connection:
        tables = {name for [name] in connection.execute(SCHEMA_TABLES)}
    tables -= {one for one in tables if one.startswith("sqlite_")}
    assert tables == NOTICED.keys() | NOT_NOTICED.keys()


async def logged(memory: Memory, verbs: Mapping[str, test_paused.Verb]) -> dict[str, list[AuditEntry]]:
    """By verb, what its call for a principal added to the log."""
    found = {}
    for name, verb in verbs.items():
        before = len(await entries(memory))
        with acting_as(ANN, name):
            await verb(memory)
        found[name] = (await entries(memory))[before:]
        who = {(one.said.principal, one.said.client, one.said.action) for one in found[name]}
        assert who <= {(ANN.id, ANN.client, name)}
    assert await fault(memory) is None
    return found


@pytest.mark.parametrize("name", [one for one in test_paused.REFUSED if one != "archive.restore"])
async def test_each_verb_that_takes_words_is_logged(
    tmp_path: Path,
    folder: Path,  # noqa: F811
    name: str,
) -> None:
    async with remembering(tmp_path, folder) as (_, memory):
        found = await logged(memory, {name: {**test_paused.REFUSED, **WHOLE}[name]})
        # How far a file was read is no change of the memory.
        assert bool(found[name]) is (name != "imports.keep_file_read")


async def test_each_verb_that_hides_erases_or_brings_back_is_logged(
    tmp_path: Path,
    folder: Path,  # noqa: F811
) -> None:
    async with remembering(tmp_path, folder) as (_, memory):
        found = await logged(memory, test_paused.GOES_ON_TOO)
        # After `restore` there is nothing to revert, and the scores are those of the words already.
        unchanged = {"access.principal_of", "records.revert", "conversations.score", "settled"}
        assert {name for name, new in found.items() if not new} == unchanged


async def test_a_revert_is_logged(memory: Memory) -> None:
    [note] = await memory.remember("note", {"text": "Bees."})
    await memory.update_memory(note.id, {"text": "Wasps."}, expected_revision=1)
    assert all((await logged(memory, {"records.revert": lambda memory: memory.records.revert(note.id, 1)})).values())


async def test_a_restored_archive_is_logged(tmp_path: Path, memory: Memory) -> None:
    async with open_memory(lay_empty_database(tmp_path / "other.db")) as other:
        await other.record_messages("trip", [NewMessage(Role.USER, "We fly to Oslo.")])
        async with other.archive.reading(Selection()) as view:
            found = [entry async for page in view.entries() for entry in page]
            with acting_as(ANN, "import"):
                await memory.archive.restore(found)
    assert {"trip", "msg_1"} <= {one for entry in await entries(memory) for c in entry.said.changes for one in c.ids}


async def test_an_entry_says_who_did_what_to_which_ids_and_when(memory: Memory) -> None:
    with acting_as(ANN, "record_messages"):
        await memory.record_messages("trip", [NewMessage(Role.USER, "One."), NewMessage(Role.USER, "Two.")])
    entry = await only_entry(memory)
    assert (entry.number, entry.said.at) == (1, START_MS)
    assert (entry.said.principal, entry.said.owner, entry.said.client) == ("tok_ann", "local", ANN.client)
    assert (entry.said.action, entry.said.outcome, entry.said.count) == ("record_messages", Outcome.DONE, 1)
    assert entry.said.changes == (Change("added", 3, ("trip", "msg_1", "msg_2")),)


async def test_forgetting_restoring_and_erasing_are_told_apart(memory: Memory) -> None:
    pin = await memory.remember("note", {"text": "Bees."})
    record_id = pin[0].id
    for action in ("forget", "restore"):
        with acting_as(ANN, action):
            await getattr(memory, action)(record_id)
    with acting_as(ANN, "purge"):
        await memory.purge([record_id])
    said = [one.said for one in await entries(memory)]
    by_action = {one.action: {change.what for change in one.changes if record_id in change.ids} for one in said}
    assert by_action == {"forget": {"forgotten"}, "restore": {"restored"}, "purge": {"erased"}}


async def test_all_changes_are_counted_and_the_first_ids_are_kept(memory: Memory) -> None:
    with acting_as(ANN, "record_messages"):
        await memory.record_messages("trip", [NewMessage(Role.USER, f"No {n}.") for n in range(MOST_IDS + 20)])
    [change] = (await only_entry(memory)).said.changes
    assert change.count == MOST_IDS + 21
    assert len(change.ids) == MOST_IDS


async def test_reads_and_failures_and_calls_of_nobody_are_not_logged(memory: Memory) -> None:
    await memory.record_messages("trip", [NewMessage(Role.USER, "We fly to Oslo.")])
    with acting_as(ANN, "call"):
        await memory.search_memory(SearchRequest("Oslo"))
        await memory.build_context("trip")
        with pytest.raises(RecordNotFound):
            await memory.forget("pin_none")
    await memory.settled()
    assert await entries(memory) == []


async def test_what_is_rolled_back_leaves_no_entry(memory: Memory) -> None:
    async def fail(transaction: WriteTransaction) -> None:
        await transaction.access.revoke_tokens("x", owner=None, now_ms=1)
        raise ZeroDivisionError

    with acting_as(ANN, "call"):
        with pytest.raises(ZeroDivisionError):
            await memory.place.store.write(fail)
        await memory.record_messages("trip", [NewMessage(Role.USER, "One.")])
    assert (await only_entry(memory)).said.changes == (Change("added", 2, ("trip", "msg_1")),)


async def test_background_work_after_a_logged_call_is_nobodys(memory: Memory) -> None:
    with acting_as(ANN, "record_messages"):
        await memory.record_messages("trip", [NewMessage(Role.USER, "Remember: my cat is called Mina.")])
    await memory.settled()
    assert (await memory.conversations.stats("trip")).total_pins == 1
    await only_entry(memory)


async def test_no_word_of_the_memory_is_in_the_log(memory: Memory, database: Path) -> None:
    canary = "zanzibar"
    with acting_as(ANN, "call"):
        await memory.record_messages("s", [NewMessage(Role.USER, f"We fly to {canary}.", client_key=canary)])
        await memory.create_pin(CreatePinRequest("s", f"{canary} it is"))
        [note] = await memory.remember("note", {"text": canary, "tags": [canary]})
        await memory.update_memory(note.id, {"text": f"{canary} again"}, expected_revision=1)
        await memory.record_feedback("msg_1", "up", canary)
        await memory.files.write(f"/memories/{canary}.md", lambda _tree, _text: canary)
        await (await memory.in_project(canary)).remember("note", {"text": "of a project"})
        await memory.forget(note.id)
        await memory.finalize_session("s")
    assert len(await entries(memory)) >= 8
    with closing(sqlite3.connect(database)) as connection:
        stored = str(connection.execute("SELECT * FROM audit_log").fetchall())
    assert canary not in stored.lower()


async def test_an_action_that_is_no_name_of_ours_is_not_kept(memory: Memory) -> None:
    for action in ("PATCH /api/records/{id}", "caf\u00e9", "a\nb", "", "x" * 101):
        await memory.access.log(action)
    assert [one.said.action for one in await entries(memory)] == ["PATCH /api/records/{id}", *["other"] * 4]


async def test_tokens_are_logged_also_when_the_command_line_makes_them(memory: Memory) -> None:
    made = await memory.access.create_token(Permission.READ)
    with acting_as(ANN, "POST /api/tokens"):
        await memory.access.create_token(Permission.READ)
    await memory.access.revoke_token(made.token.id)
    found = [(one.said.principal, one.said.action, one.said.changes[0].what) for one in await entries(memory)]
    assert found == [
        (HOST.id, "create_token", "added"),
        (ANN.id, "POST /api/tokens", "added"),
        (HOST.id, "revoke_token", "revoked"),
    ]


async def test_each_step_of_a_sign_in_is_logged_with_its_consent_and_its_client(memory: Memory) -> None:
    consents = memory.access.sign_in.consents
    client = await memory.access.sign_in.clients.register(
        "Notes", ["https://notes.example.org/back"], address="192.0.2.1"
    )
    await memory.access.sign_in.passphrases.set("ann", "correct horse battery staple")
    handle = await consents.begin(
        client,
        redirect_uri="https://notes.example.org/back",
        is_redirect_explicit=True,
        challenge="x" * 43,
        permission=Permission.WRITE,
        resource="https://memory.example.org/mcp",
        state=None,
        address="192.0.2.1",
    )
    _, cookie = await consents.bind(handle, None)
    answer = await consents.allow(handle, cookie, owner="ann", permission=Permission.WRITE)
    issued = await consents.redeem(client.id, answer.code or "")
    assert issued is not None
    await consents.renew(client.id, issued.refresh.text, Permission.WRITE)
    await consents.verify_code(client.id, answer.code or "")  # the second use: somebody else has it
    said = [one.said for one in await entries(memory)]
    grant = next(one for one in said if one.action == "allow_client").changes[0].ids[0]
    assert [(one.principal, one.owner, one.client, one.action) for one in said] == [
        (HOST.id, "ann", None, "set_passphrase"),
        ("sign_in", "ann", None, "allow_client"),
        (grant, "ann", client.id, "redeem_code"),
        (grant, "ann", client.id, "renew_token"),
        (grant, "ann", client.id, "revoke_consent"),
    ]
    assert {issued.access.token.id, issued.refresh.token.id} <= {*said[2].changes[0].ids}
    assert {change.what for change in said[4].changes} == {"revoked"}
    assert await fault(memory) is None


async def test_a_use_of_a_token_is_no_change(memory: Memory) -> None:
    made = await memory.access.create_token(Permission.READ)
    assert await memory.access.principal_of(made.text) is not None
    await only_entry(memory)


async def test_what_changes_nothing_is_logged_on_request(memory: Memory) -> None:
    await memory.access.log("sign_in", principal=ANN, outcome=Outcome.REFUSED, count=7)
    with acting_as(ANN, "GET /api/export"):
        await memory.access.log("export")
    first, second = (one.said for one in await entries(memory))
    assert (first.principal, first.action, first.outcome, first.count) == (ANN.id, "sign_in", Outcome.REFUSED, 7)
    assert (second.principal, second.action, second.outcome, second.count) == (ANN.id, "export", Outcome.DONE, 1)


async def test_an_owner_sees_their_own_entries_in_pages(memory: Memory) -> None:
    for owner in ("ann", "ben", "ann", "ann"):
        await memory.access.log("sign_in", principal=Principal("tok", owner))
    ann = memory.of_owner("ann")
    assert [one.number for one in await ann.access.audit(limit=2)] == [4, 3]
    assert [one.number for one in await ann.access.audit(limit=2, before=3)] == [1]
    assert await ann.access.audit(since_ms=START_MS + 1) == []
    with pytest.raises(AccessDenied, match="whole memory"):
        await memory.of_owner("ann", Limits(project="shop")).access.audit()


async def test_two_processes_write_one_chain(memory: Memory, database: Path) -> None:
    async with open_memory(database) as other, anyio.create_task_group() as tasks:
        for number in range(10):
            for one in (memory, other):
                tasks.start_soon(one.access.log, f"call_{number}")
    assert [one.number for one in await entries(memory)] == [*range(1, 21)]
    assert await fault(memory) is None


async def _filled(database: Path) -> AuditHead:
    """A log of six entries; its head after the fourth."""
    async with open_memory(database, clock=ScriptedClock()) as memory:
        with acting_as(ANN, "record_messages"):
            for text in ("One.", "Two.", "Three."):
                await memory.record_messages("trip", [NewMessage(Role.USER, text)])
        await memory.access.log("sign_in")
        _, head = await memory.access.check_audit()
        for _ in range(2):
            await memory.access.log("sign_in", outcome=Outcome.REFUSED)
        return head


def tampered(database: Path, *statements: str) -> tuple[str | None, bool]:
    """What is found in a copy of the database after the statements, by verb and by doctor."""
    copy = database.with_name("tampered.db")
    copy.unlink(missing_ok=True)
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("VACUUM INTO ?", (str(copy),))
    with closing(sqlite3.connect(copy)) as connection, connection:
        for statement in statements:
            assert connection.execute(statement).rowcount, statement

    async def verified() -> str | None:
        async with open_memory(copy) as memory:
            return await fault(memory)

    found = anyio.run(verified)
    [finding] = [one for one in inspect(copy, is_deep=False) if one.check == "audit log"]
    return found, finding.verdict is Verdict.FAILED


FIELDS: Final[Mapping[str, Callable[[str], str]]] = {
    "number": lambda _: "number + 100",
    "at": lambda name: f"{name} + 1",
    "principal": lambda name: f"{name} || 'x'",
    "owner": lambda name: f"{name} || 'x'",
    "client": lambda name: f"CASE WHEN {name} IS NULL THEN 'x' END",
    "action": lambda name: f"{name} || 'x'",
    "outcome": lambda name: f"CASE {name} WHEN 'done' THEN 'refused' ELSE 'done' END",
    "count": lambda name: f"{name} + 1",
    "changes": lambda name: f"replace({name}, 'msg_', 'msg_9') || ' '",
    "hash": lambda _: "zeroblob(32)",
}


@pytest.mark.campaign
def test_every_change_of_every_field_of_every_entry_is_found(database: Path) -> None:
    anyio.run(_filled, database)
    assert tampered(database) == (None, False)
    with closing(sqlite3.connect(database)) as connection:
        assert FIELDS.keys() == {row[1] for row in connection.execute("PRAGMA table_info(audit_log)")}
    for number in range(1, 7):
        for name, changed in FIELDS.items():
            found = tampered(database, f"UPDATE audit_log SET {name} = {changed(name)} WHERE number = {number}")
            assert found[0] and found[1], (number, name)


def test_an_entry_that_is_taken_out_moved_or_put_in_is_found(database: Path) -> None:
    anyio.run(_filled, database)
    swap = "UPDATE audit_log SET number = CASE number WHEN {0} THEN -{1} ELSE -{0} END WHERE number IN ({0}, {1})"
    back = "UPDATE audit_log SET number = -number WHERE number < 0"
    down = "UPDATE audit_log SET number = -(number - 1) WHERE number > {0}"
    for number in range(1, 7):
        deleted = f"DELETE FROM audit_log WHERE number = {number}"
        assert all(tampered(database, deleted)), number
        if number < 6:
            assert all(tampered(database, swap.format(number, number + 1), back)), number
            assert all(tampered(database, deleted, down.format(number), back)), number
    copied = "INSERT INTO audit_log SELECT 7, at, principal, owner, client, action, outcome, count, changes, hash"
    assert all(tampered(database, f"{copied} FROM audit_log WHERE number = 6"))


def test_a_cut_end_is_found_even_if_what_is_kept_of_it_is_removed(database: Path) -> None:
    anyio.run(_filled, database)
    cut = "DELETE FROM audit_log WHERE number > 4"
    assert tampered(database, cut) == ("it ends with entry 4, but 6 were written", True)
    assert all(tampered(database, cut, "DELETE FROM audit_head"))
    assert all(tampered(database, "UPDATE audit_head SET count = 5"))
    assert all(tampered(database, "UPDATE audit_head SET hash = zeroblob(32)"))
    assert all(tampered(database, "DELETE FROM audit_log", "UPDATE audit_head SET count = 0"))


async def test_a_forged_log_does_not_begin_with_a_head_that_was_noted(database: Path) -> None:
    head = await _filled(database)
    async with open_memory(database) as memory:
        assert (await memory.access.check_audit(head))[0] is None
    forge: Any = "DELETE FROM audit_log; UPDATE audit_head SET count = 0, hash = zeroblob(32)"
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.executescript(forge)
    async with open_memory(database) as memory:
        for _ in range(6):
            await memory.access.log("sign_in")
        assert await fault(memory) is None
        assert (await memory.access.check_audit(head))[0] == "entry 4 is not the one that was noted, or is missing"
