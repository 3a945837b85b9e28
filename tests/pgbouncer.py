"""A real PgBouncer in front of the test server, in transaction mode: each transaction may get another connection.

Tests are skipped with a word where there is no `pgbouncer`.
"""

import atexit
import os
import shutil
import subprocess
import tempfile
import time
from functools import cache
from pathlib import Path

import pytest

from tests.postgres import APP, Server, shared_server

_SETTINGS = """
[databases]
* = host={server}
[pgbouncer]
listen_addr =
unix_socket_dir = {folder}
auth_type = trust
auth_file = {folder}/users
pool_mode = transaction
default_pool_size = 3
server_idle_timeout = 5
server_login_retry = 1
max_client_conn = 200
logfile = {folder}/log
"""


class Pooler:
    """A running PgBouncer."""

    def __init__(self, program: str, server: Server) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="kpb"))
        self.folder.chmod(0o755)
        settings = self.folder / "pgbouncer.ini"
        settings.write_text(_SETTINGS.format(server=server.folder, folder=self.folder))
        (self.folder / "users").write_text(f'"{APP}" ""\n')
        as_nobody = []
        if os.geteuid() == 0:
            shutil.chown(self.folder, "nobody")
            as_nobody = ["-u", "nobody"]
        self._process = subprocess.Popen([program, "-q", *as_nobody, settings], stderr=subprocess.DEVNULL)
        atexit.register(self.end)
        for _ in range(200):
            if (self.folder / ".s.PGSQL.6432").exists():
                return
            time.sleep(0.05)
        raise RuntimeError(f"PgBouncer did not start: {(self.folder / 'log').read_text()[-300:]}")

    def end(self) -> None:
        """End it, and what it wrote."""
        self._process.kill()
        self._process.wait(20)
        shutil.rmtree(self.folder, ignore_errors=True)

    def url(self, database: str, role: str = APP) -> str:
        """The address of a database behind it."""
        return f"postgresql://{role}@/{database}?host={self.folder}&port=6432"


def pgbouncer() -> str:
    """The program. Skips the test where there is none."""
    shared_server()  # skips, too
    program = shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")  # where Debian has it
    if program is None:
        pytest.skip("no PgBouncer here: pgbouncer is not on the PATH")
    return program


@cache
def shared_pooler() -> Pooler:
    """The pooler of this process of pytest."""
    return Pooler(pgbouncer(), shared_server())
