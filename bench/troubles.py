"""What a database suffers while hooks tell of prompts: each is a block, in which it goes on."""

import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Final

from bench.report import ROOT
from bench.wire import clean_environment

_BLOCK: Final = 65_536
_OTHER: Final = """
import itertools, sys, anyio
from bench.corpus import Corpus
from kalito_mcp import open_memory

async def main():
    corpus = Corpus(seed=11)
    async with open_memory(sys.argv[1]) as memory:
        print("ready", flush=True)
        for place in itertools.count():
            if sys.argv[2] == "import":
                await memory.record_messages(f"import{place // 10}", corpus.messages(1_000, first=1_000 * place))
            else:
                await memory.purge([f"msg_{1 + 3 * place}"])

anyio.run(main)
"""


@contextmanager
def locked(database: Path, seconds: float) -> Iterator[None]:
    """Another connection holds the write lock of SQLite, for some seconds and until the block ends."""
    is_held, is_over = threading.Event(), threading.Event()

    def hold() -> None:
        with closing(sqlite3.connect(database, timeout=30, isolation_level=None)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            is_held.set()
            time.sleep(seconds)
            is_over.wait()
            connection.execute("ROLLBACK")

    thread = threading.Thread(target=hold)
    thread.start()
    is_held.wait()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


@contextmanager
def stopped(process_id: int) -> Iterator[None]:
    """A process is stopped with SIGSTOP, and goes on after the block."""
    os.kill(process_id, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(process_id, signal.SIGCONT)


@contextmanager
def working(database: Path, what: str) -> Iterator[None]:
    """Another process goes on recording batches of 1,000 messages (`import`), or purging one record after the other and
    with each all files (`purge`). It is killed when the block ends."""
    folder = database.parent
    command = [sys.executable, "-c", _OTHER, str(database), what]
    environment = clean_environment(folder) | {"PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, cwd=ROOT) as other:
        assert other.stdout is not None
        other.stdout.readline()
        try:
            yield
        finally:
            is_alive = other.poll() is None
            other.kill()
    if not is_alive:
        raise RuntimeError(f"the process that should {what} ended by itself")


@contextmanager
def small_disk(folder: Path, megabytes: int) -> Iterator[bool]:
    """A folder becomes a disk of this size. False if this user may not mount one."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "none", str(folder)]
    try:
        is_mounted = subprocess.run(mount, check=False, capture_output=True).returncode == 0
    except OSError:
        is_mounted = False
    try:
        yield is_mounted
    finally:
        if is_mounted:
            subprocess.run(["umount", "-l", str(folder)], check=True)


@contextmanager
def full(folder: Path) -> Iterator[None]:
    """Not one byte is left on the disk of this folder, until the block ends."""
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file:
        for size in (_BLOCK, 1):
            with suppress(OSError):
                while file.write(b"x" * size):
                    continue
    try:
        yield
    finally:
        filler.unlink()
