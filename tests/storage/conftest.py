"""A sample database for tests that damage a copy of it."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import anyio
import pytest

from kalito_mcp.domain.graph import EdgeType, GraphChanges, GraphEdge, GraphNode, NodeType
from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.sparse_vectors import SparseVector
from kalito_mcp.records.sessions import ensure_session
from kalito_mcp.storage.sqlite.database import SqliteStore
from tests import drafts
from tests.scripted import START_MS

ROOT: Final = Path(__file__).parents[2]
"""The import path of a process that a test starts."""
MESSAGES: Final = 120
TEXT: Final = "The ferry to Moss leaves at {n} past seven, and Ann has the tickets for the crossing number {n}."

NODES: Final = 12
GRAPH: Final = GraphChanges(
    nodes=[
        GraphNode(
            id=f"q{n}",
            type=NodeType.QUERY,
            created_at=START_MS,
            last_access=START_MS,
            text=f"When does ferry {n} leave?",
            canonical_key=f"{n:032x}",
            source_record_ids=(f"msg_{n + 1}",),
            embedding=SparseVector.of({n: 1, 100 + n: 2}),
        )
        for n in range(NODES)
    ],
    edges=[
        GraphEdge(f"q{n}", f"q{(n + step) % NODES}", EdgeType.SIMILAR_TO, 0.8, START_MS, START_MS)
        for n in range(NODES)
        for step in (1, 2)
    ],
)


async def _fill(path: Path) -> None:
    store = await SqliteStore.open(path)
    async with store.transaction() as transaction:
        for name in ("trip", "home"):
            session = await ensure_session(transaction.sessions, Scope(session=name), now_ms=START_MS)
            batch = [drafts.message(TEXT.format(n=n), client_key=f"k{n}") for n in range(MESSAGES)]
            await transaction.conversations.append_messages(session, batch, now_ms=START_MS)
            pins = [drafts.pin(f"{name} pin {n}", importance=n / 20, client_key=f"p{n}") for n in range(20)]
            await transaction.conversations.add_pins(session, pins)
            for start in range(1, MESSAGES, 15):
                text = f"The messages from {start} on were about the ferry."
                draft = drafts.summary(start, start + 14, text=text, record_id=f"summary_{name}_{start}")
                await transaction.conversations.add_summaries(session, [draft])
        for scope in (Scope(session="trip"), Scope()):
            await transaction.graphs.save(scope, GRAPH, embedder="test")
    await store.close()


@pytest.fixture(scope="session")
def sample(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The bytes of a closed database: two sessions of messages, pins and summaries, and two graphs."""
    path = tmp_path_factory.mktemp("sample") / "memory.db"
    anyio.run(_fill, path)
    assert not path.with_name("memory.db-wal").exists()
    return path.read_bytes()


@pytest.fixture
def copy(sample: bytes, database: Path) -> Path:
    """A fresh copy of the sample for each test."""
    database.write_bytes(sample)
    return database


class Disk:
    """A file system of a few megabytes, mounted for one test."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.database = folder / "memory.db"

    def make_read_only(self) -> None:
        subprocess.run(["mount", "-o", "remount,ro", str(self.folder)], check=True)

    def make_writable(self) -> None:
        subprocess.run(["mount", "-o", "remount,rw", str(self.folder)], check=True)

    def fill(self) -> Path:
        """A file that fills the disk."""
        ballast = self.folder / "ballast"
        with ballast.open("wb", buffering=0) as file, suppress(OSError):
            for size in (65_536, 4_096, 512, 1):
                with suppress(OSError):
                    while file.write(bytes(size)) == size:
                        pass
        return ballast


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    """A disk of 4 MB. Root ignores chmod, and only root may mount."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounting = ["mount", "-t", "tmpfs", "-o", "size=4m,mode=700", "kalito-test", str(folder)]
    if shutil.which("mount") is None or subprocess.run(mounting, check=False, capture_output=True).returncode != 0:
        pytest.skip("this machine does not let the tests mount a file system of their own")
    try:
        yield Disk(folder)
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
