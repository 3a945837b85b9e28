"""A cached empty database. Creating one takes three times as long as opening it, and most tests need one."""

from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio

from kalito_mcp.storage.sqlite.database import SqliteStore


def lay_empty_database(path: Path) -> Path:
    """Write an empty, closed database. Does nothing if there is a file already.

    The tests of the storage, and every process that a test starts, create their databases themselves.
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
        # The caller may run in an event loop. A new thread has none.
        pool.submit(anyio.run, _make, path).result()
        assert not path.with_name("memory.db-wal").exists()
        return path.read_bytes()


async def _make(path: Path) -> None:
    await (await SqliteStore.open(path)).close()
