"""An empty database to begin with. Making one costs three times what opening one does, and most tests need one."""

from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio

from kalito_mcp.storage.sqlite.database import SqliteStore


def lay_empty_database(path: Path) -> Path:
    """Write what a store leaves behind that was opened there first and closed; nothing where a file is already.

    How a database comes to be is shown by the tests of the storage, and by every process that a test starts.
    """
    if not path.exists():
        path.parent.mkdir(0o700, parents=True, exist_ok=True)
        path.touch(0o600)
        path.write_bytes(_closed())
    return path


@cache
def _closed() -> bytes:
    with TemporaryDirectory() as folder, ThreadPoolExecutor(1) as pool:
        path = Path(folder) / "memory.db"
        # A thread has no event loop yet, whoever asks.
        pool.submit(anyio.run, _make, path).result()
        assert not path.with_name("memory.db-wal").exists()
        return path.read_bytes()


async def _make(path: Path) -> None:
    await (await SqliteStore.open(path)).close()
