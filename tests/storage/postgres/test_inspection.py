"""`doctor` on PostgreSQL: it finds what the server does not see, of whichever owner, and changes nothing."""

from collections.abc import Sequence
from typing import Final

import anyio
import asyncpg
import pytest

from kalito_mcp.domain.access import Permission
from kalito_mcp.domain.findings import Finding, Verdict
from kalito_mcp.domain.records import NewMessage, Role
from kalito_mcp.memory import Memory
from kalito_mcp.storage.postgres.database import PostgresStore
from kalito_mcp.storage.postgres.inspection import inspect
from kalito_mcp.wiring import open_memory
from tests.postgres import OWNER, SUPERUSER, connected, new_database, shared_server

pytestmark = pytest.mark.anyio

BROKEN: Final = {
    "row hashes": ("UPDATE records SET text = text || '!' WHERE key = {message}", "record {message} (message) of bob"),
    "counters": ("UPDATE sessions SET pin_count = pin_count + 1 WHERE id = 'trip'", "session trip of bob"),
    "summaries": ("DELETE FROM records WHERE type = 'summary' AND level = 0 AND seq = 1", "session trip of bob"),
    "histories": ("UPDATE records SET revision = 7 WHERE key = {edited}", "record {edited} of bob"),
    "ownership": (
        "UPDATE records SET caused_by = 999999 WHERE key = {message}",
        "record {message} (its cause is gone)",
    ),
    "graphs": ("UPDATE graphs SET revision = 0", "graph "),
    "vectors' records": ("DELETE FROM record_vectors WHERE record_key = {message}", "record {message} of bob"),
    "audit log": ("UPDATE audit_log SET action = 'other' WHERE number = 1", "entry 1"),
}
IN_THE_INDEX: Final = (
    "UPDATE term_pages SET terms = replace(terms, 'ferry', 'fern')",
    "UPDATE fresh_terms SET terms = replace(terms, 'oslo', 'rome')",
    "UPDATE record_shapes SET word_count = 99 WHERE record_key = {message}",
    "INSERT INTO record_shapes SELECT owner_key, 999999, 1, 0 FROM records WHERE key = {message}",
)


async def fill(memory: Memory) -> tuple[str, str]:
    """A conversation with all that follows from it: the keys of a message, and of one that was edited."""
    messages = [
        NewMessage(role, text.format(number))
        for number in range(8)
        for role, text in ((Role.USER, "When does ferry {} leave?"), (Role.ASSISTANT, "Ferry {} leaves at eight."))
    ]
    recorded = await memory.record_messages("trip", messages)
    await memory.record_feedback(recorded.message_ids[1], "up", session_id="trip")
    await memory.update_memory(
        recorded.message_ids[2], {"text": "When does the other ferry leave?"}, expected_revision=1
    )
    await memory.forget(recorded.message_ids[4])
    await memory.finalize_session("trip")
    await memory.settled()
    message, edited = (recorded.message_ids[at].removeprefix("msg_") for at in (0, 2))
    return message, edited


async def damage(admin: asyncpg.Connection, statement: str) -> None:
    assert await admin.execute(statement) not in ("UPDATE 0", "DELETE 0"), statement


async def found(url: str, direct_url: str | None = None, *, is_deep: bool = True) -> Sequence[Finding]:
    return await anyio.to_thread.run_sync(lambda: list(inspect(url, direct_url, is_deep=is_deep)))


@pytest.mark.usefixtures("meaning_installed")
async def test_a_deep_look_passes_a_sound_database_and_names_each_fault_of_a_damaged_one() -> None:
    server, name = shared_server(), await new_database()
    url = server.url(name)
    async with open_memory(url) as memory:
        await fill(memory.of_owner("ann"))
        message, edited = await fill(memory.of_owner("bob"))
        await memory.access.create_token(Permission.READ)  # for the audit log
    store = await PostgresStore.open(url)
    await store.reindex()  # folds the terms into pages
    await store.close()
    async with open_memory(url) as memory:
        await memory.of_owner("bob").record_messages("later", [NewMessage(Role.USER, "We go to Oslo.")])
        await memory.settled()
    sound = await found(url)
    assert [(one.check, one.detail) for one in sound if one.verdict is not Verdict.OK] == []
    assert {*BROKEN, "text index", "role", "schema", "isolation", "checksums"} <= {one.check for one in sound}

    async with connected(name, SUPERUSER) as admin:
        await admin.execute("SET session_replication_role = replica")  # no trigger
        for statement in IN_THE_INDEX:
            await damage(admin, statement.format(message=message))
        [detail] = [one.detail for one in await found(url) if one.verdict is Verdict.FAILED]
        assert detail == (
            f"wrong: the records of 6 terms of ann; the shape of record {message} of bob; the shapes of 1 record not "
            "there of bob; the records of 8 terms of bob. To repair it, run `kalito-mcp reindex`"
        )
        for statement, _ in BROKEN.values():
            await damage(admin, statement.format(message=message, edited=edited))
    shallow = {one.check: one for one in await found(url, is_deep=False)}
    assert shallow.keys() & BROKEN.keys() == {"audit log"}
    damaged = {one.check: one for one in await found(url)}
    for check, (_, words) in BROKEN.items():
        assert damaged[check].verdict is Verdict.FAILED, check
        assert words.format(message=message, edited=edited) in damaged[check].detail


async def test_a_direct_connection_to_another_database_or_to_none_is_found() -> None:
    server, name = shared_server(), await new_database()
    for direct_url, verdict, said in (
        (server.url(name, OWNER), Verdict.OK, "the same database"),
        (server.url(await new_database(), OWNER), Verdict.FAILED, "which is another database than"),
        (server.url("nothing", OWNER), Verdict.FAILED, "nothing"),
    ):
        [direct] = [one for one in await found(server.url(name), direct_url) if one.check == "direct"]
        assert (direct.verdict, said in direct.detail) == (verdict, True)
