"""Reads and writes what a migration moves besides an archive. Implements `ports.transfer.TransferReader` and
`TransferWriter`."""

import sqlite3
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from kalito_mcp.domain.transfer import MOVED, MovedTable, Row
from kalito_mcp.errors import InvalidInput
from kalito_mcp.ports.vectors import OwedVector
from kalito_mcp.storage.receiving import RECEIVING
from kalito_mcp.storage.sqlite.archive import UPDATE_IDENTITY
from kalito_mcp.storage.sqlite.queries import Queries
from kalito_mcp.storage.sqlite.text_index import UPDATE_ANALYSIS
from kalito_mcp.storage.sqlite.vectors import EMBEDDABLE, EMBEDDED

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SELECT_OWNERS: Final = """
SELECT owner FROM agents UNION SELECT owner FROM projects UNION SELECT owner FROM tombstones
UNION SELECT owner FROM imports UNION SELECT owner FROM given ORDER BY 1
"""


def _select(name: str, table: MovedTable) -> str:
    condition = " WHERE owner = :owner" if table.is_owned else ""
    return f"SELECT {', '.join(table.columns)} FROM {name}{condition} ORDER BY {table.order}"


def _insert(name: str, table: MovedTable) -> str:
    if table.is_single:
        return f"UPDATE {name} SET {', '.join(f'{one} = :{one}' for one in table.columns)}"
    columns = [*table.columns, *(["owner"] if table.is_owned else [])]
    return f"INSERT INTO {name} ({', '.join(columns)}) VALUES ({', '.join(f':{one}' for one in columns)})"


SELECT_MOVED: Final[Mapping[str, str]] = {name: _select(name, table) for name, table in MOVED.items()}
INSERT_MOVED: Final[Mapping[str, str]] = {name: _insert(name, table) for name, table in MOVED.items()}
# A vector that was moved to Qdrant has the id of its point in its row.
SELECT_ALL_VECTORS: Final = f"""
SELECT r.key, a.owner, {EMBEDDED}, v.vector
FROM record_vectors v JOIN records r ON r.key = v.record_key JOIN agents a ON a.key = r.agent_key
WHERE v.index_key = (SELECT key FROM vector_indexes WHERE fingerprint = :fingerprint AND state <> 'dropped')
    AND v.key > coalesce((SELECT moved_key FROM vector_moves WHERE index_key = v.index_key), 0) AND {EMBEDDABLE}
ORDER BY v.record_key DESC
"""
_PAGE: Final = 500


class TransferQueries(Queries):
    """`ports.transfer.TransferReader`."""

    async def owners(self) -> Sequence[str]:
        return [owner for [owner] in await self._all(SELECT_OWNERS)]

    async def rows(self, table: str, owner: str | None = None) -> AsyncGenerator[Sequence[Row]]:
        columns = MOVED[table].columns
        async with self._connection.execute(SELECT_MOVED[table], {"owner": owner}) as cursor:
            while page := list(await cursor.fetchmany(_PAGE)):
                yield [dict(zip(columns, row, strict=True)) for row in page]

    async def vectors(self, fingerprint: str) -> "AsyncGenerator[tuple[Sequence[OwedVector], NDArray[np.float32]]]":
        from kalito_mcp.storage.vector_rows import with_vectors  # noqa: PLC0415 - numpy loads when needed

        async with self._connection.execute(SELECT_ALL_VECTORS, {"fingerprint": fingerprint}) as cursor:
            while page := list(await cursor.fetchmany(_PAGE)):
                yield with_vectors(page)


class TransferStatements(TransferQueries):
    """`ports.transfer.TransferWriter`."""

    async def begin(self, secret: bytes) -> None:
        await self._all(UPDATE_IDENTITY, secret=secret)
        await self._all(UPDATE_ANALYSIS, version=RECEIVING)

    async def add(self, table: str, rows: Sequence[Row], owner: str | None = None) -> None:
        try:
            await self._connection.executemany(
                INSERT_MOVED[table], [{**row, "owner": row.get("owner", owner)} for row in rows]
            )
        except (sqlite3.IntegrityError, sqlite3.ProgrammingError, OverflowError) as error:
            raise InvalidInput(f"a row of {table} cannot be stored ({error}); the rest was not moved") from None
