"""Where a benchmark keeps its memories: in files, or with `KALITO_BENCH_STORE=postgres` on a PostgreSQL of its own.

That server comes from a wheel and ends with the process. Its figures are of a new database for each path.
"""

import os
from functools import cache
from pathlib import Path
from typing import Final

from bench.wire import clean_environment, memory_command
from kalito_mcp.runtime.database_address import DatabaseAddress, ServerAddress
from tests.postgres import OWNER, Server, lay_template, new_database, new_server

_IS_ON_SERVER: Final = os.environ.get("KALITO_BENCH_STORE", "sqlite") == "postgres"
_ADDRESSES: Final[dict[Path, DatabaseAddress]] = {}


@cache
def server(**settings: str) -> Server:
    """A PostgreSQL with these settings."""
    started = new_server(**settings)
    lay_template(started)
    return started


async def new_address(on: Server, files: Path) -> DatabaseAddress:
    """The address of a new database on this server. What is kept outside the database begins with `files`."""
    name = await new_database(on)
    return DatabaseAddress(files, ServerAddress(on.url(name), on.url(name, OWNER)))


async def address_of(database: Path) -> DatabaseAddress:
    """The address of the memory of this path; the same at each call."""
    if database not in _ADDRESSES:
        _ADDRESSES[database] = await new_address(server(), database) if _IS_ON_SERVER else DatabaseAddress(database)
    return _ADDRESSES[database]


def served(address: DatabaseAddress, folder: Path) -> tuple[list[str], dict[str, str]]:
    """The command line and the environment of a server of this memory. Its other files are in the folder."""
    environment = clean_environment(folder)
    if address.server is None:
        return memory_command(address.path), environment
    assert address.server.direct_url is not None
    own = {"KALITO_DATABASE_DIRECT": address.server.direct_url, "XDG_DATA_HOME": str(folder)}
    return memory_command(address.server.url), {**environment, **own}
