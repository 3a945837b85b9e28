"""A database with something in every table that a migration moves, for two owners."""

from functools import partial
from pathlib import Path

import numpy as np

from kalito_mcp.domain.audit import NewEntry
from kalito_mcp.domain.given import GivenEntry, GivenKind
from kalito_mcp.domain.imports import FileRead
from kalito_mcp.domain.records import RecordType
from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.sign_in import Attempts, Passphrase
from kalito_mcp.domain.spaces import Membership, Role, SharedCopy, Space
from kalito_mcp.ports.store import Store, WriteTransaction
from kalito_mcp.storage.sqlite.database import SqliteStore
from kalito_mcp.wiring import open_memory
from tests import sign_ins
from tests.empty_database import lay_empty_database
from tests.exchange.filled import fill
from tests.scripted import START_MS, CountedIds, ScriptedClock
from tests.scripted_embedder import hashed_vector
from tests.stored import talk

FINGERPRINT = "scripted:64"
WITHOUT_VECTOR = 2


async def lay_everything(path: Path) -> Path:
    """Make the file."""
    clock = ScriptedClock()
    async with open_memory(lay_empty_database(path), clock=clock, ids=CountedIds()) as memory:
        await fill(memory)
        bob = memory.of_owner("bob")
        said = await bob.record_messages("trip", talk(7, first=70))
        [old] = await bob.remember(RecordType.THOUGHT, {"text": "The boat is red."})
        await bob.remember(RecordType.THOUGHT, {"text": "The boat is blue.", "supersedes": [old.id]})
        await bob.settled()
    store = await SqliteStore.open(path)
    try:
        await store.write(partial(_without_an_archive, said.message_ids[-1]))
        await _embed(store)
    finally:
        await store.close()
    return path


async def _without_an_archive(erased_id: str, transaction: WriteTransaction) -> None:
    granted = sign_ins.grant("grant_1")
    await transaction.sign_in.put_client(sign_ins.client("cli_1"))
    await transaction.sign_in.add_request(b"handle", sign_ins.request(state="s"))
    await transaction.sign_in.add_grant(granted, sign_ins.code(granted), b"code")
    await transaction.access.add_token(sign_ins.token("tok_of_grant", grant="grant_1", expires_at=START_MS), b"hash")
    await transaction.sign_in.put_passphrase("ann", Passphrase(b"salt", b"hash", 2, 3, 4), now_ms=START_MS)
    await transaction.sign_in.put_attempts("ann", Attempts(3, START_MS, START_MS + 1))
    for place in ("/a", "/b"):
        file = FileRead("codex", place, size=3, modified_ns=7, read_to=3, fingerprint="f")
        await transaction.imports.keep(Scope("bob"), file, now_ms=START_MS)
    crew = Space("crew", "boats", START_MS)
    await transaction.spaces.add_space(crew)
    await transaction.spaces.set_member(Membership(crew, "bob", Role.CURATOR, START_MS))
    await transaction.spaces.add_copy(SharedCopy("crew", "copy", "bob", erased_id, START_MS))
    given = [GivenEntry(GivenKind.SEARCH, START_MS, 9, client="codex")]
    await transaction.given.add("bob", given, since_ms=0, most=9)
    for number in range(3):
        await transaction.audit.add(NewEntry(START_MS + number, "tok_1", "ann", f"act {number}"))
    erased = await transaction.records.record(Scope("bob"), erased_id)
    assert erased is not None
    await transaction.records.purge(erased, now_ms=START_MS, text_keys=["f" * 32])


async def _embed(store: Store) -> None:
    """Give each record its vector, but for some."""

    async def embed(transaction: WriteTransaction) -> None:
        await transaction.vectors.open_index(FINGERPRINT, 64)
        owed = (await transaction.vectors.owed(FINGERPRINT, limit=1_000))[WITHOUT_VECTOR:]
        vectors = np.array([hashed_vector(one.text) for one in owed], np.float32)
        await transaction.vectors.put(FINGERPRINT, owed, vectors)

    await store.write(embed)
