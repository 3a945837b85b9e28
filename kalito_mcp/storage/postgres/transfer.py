"""Reads and writes what a migration moves besides an archive. Implements `ports.transfer.TransferReader` and
`TransferWriter`."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Final

import asyncpg

from kalito_mcp.domain.transfer import MOVED, MovedTable, Row
from kalito_mcp.errors import InvalidInput
from kalito_mcp.ports.vectors import OwedVector
from kalito_mcp.storage.postgres.archive import SELECT_BEYOND, UPDATE_ANALYSIS, UPDATE_IDENTITY
from kalito_mcp.storage.postgres.queries import Queries
from kalito_mcp.storage.postgres.vector_indexes import EMBEDDABLE, EMBEDDED
from kalito_mcp.storage.receiving import RECEIVING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SELECT_ALL_OWNERS: Final = "SELECT name FROM owners ORDER BY name"
# In a column that is called so, an owner is a name; as a parameter, `owner` is a key.
_WHOSE: Final = {"owner": "whose"}
# When the last token of a consent ends: see oauth_grants in the migrations.
_COMPUTED: Final = {
    "oauth_grants": {
        "ends_at": """(
            SELECT coalesce(max(coalesce(expires_at, 9223372036854775807)), 0) FROM access_tokens WHERE grant_id = :id
        )"""
    }
}


def _select(name: str, table: MovedTable) -> str:
    condition = " WHERE owner_key = :owner" if table.is_owned else ""
    return f"SELECT {', '.join(table.columns)} FROM {name}{condition} ORDER BY {table.order}"


def _insert(name: str, table: MovedTable) -> str:
    values = {one: f":{_WHOSE.get(one, one)}" for one in table.columns} | _COMPUTED.get(name, {})
    if table.is_single:
        return f"UPDATE {name} SET {', '.join(f'{one} = {value}' for one, value in values.items())}"
    if table.is_owned:
        values["owner_key"] = ":owner"
    return f"INSERT INTO {name} ({', '.join(values)}) VALUES ({', '.join(values.values())})"


SELECT_MOVED: Final[Mapping[str, str]] = {name: _select(name, table) for name, table in MOVED.items()}
INSERT_MOVED: Final[Mapping[str, str]] = {name: _insert(name, table) for name, table in MOVED.items()}
SELECT_VECTORS_OF_OWNER: Final = f"""
SELECT r.key, :name, {EMBEDDED}, v.code
FROM record_vectors v JOIN records r ON r.owner_key = :owner AND r.key = v.record_key AND {EMBEDDABLE}
WHERE v.owner_key = :owner
    AND v.index_key = (SELECT key FROM vector_indexes WHERE fingerprint = :fingerprint AND state <> 'dropped')
ORDER BY v.record_key DESC
"""
_PAGE: Final = 500


class TransferQueries(Queries):
    """`ports.transfer.TransferReader`."""

    async def owners(self) -> Sequence[str]:
        return [owner for [owner] in await self._all(SELECT_ALL_OWNERS)]

    async def rows(self, table: str, owner: str | None = None) -> AsyncGenerator[Sequence[Row]]:
        async with aclosing(self._transaction.pages(SELECT_MOVED[table], _PAGE, owner=owner)) as pages:
            async for page in pages:
                yield [dict(row) for row in page]

    async def vectors(self, fingerprint: str) -> "AsyncGenerator[tuple[Sequence[OwedVector], NDArray[np.float32]]]":
        from kalito_mcp.storage.vector_rows import with_vectors  # noqa: PLC0415 - numpy loads when needed

        for owner in await self.owners():
            parameters = {"owner": owner, "name": owner, "fingerprint": fingerprint}
            async with aclosing(self._transaction.pages(SELECT_VECTORS_OF_OWNER, _PAGE, **parameters)) as pages:
                async for page in pages:
                    yield with_vectors(page)


class TransferStatements(TransferQueries):
    """`ports.transfer.TransferWriter`."""

    async def begin(self, secret: bytes) -> None:
        await self._count_changed(UPDATE_IDENTITY, secret=secret)
        await self._count_changed(UPDATE_ANALYSIS, version=RECEIVING)

    async def add(self, table: str, rows: Sequence[Row], owner: str | None = None) -> None:
        renamed = [{_WHOSE.get(name, name): value for name, value in row.items()} for row in rows]
        try:
            await self._transaction.many(INSERT_MOVED[table], renamed, owner=owner)
        except (asyncpg.IntegrityConstraintViolationError, asyncpg.DataError, ValueError) as error:
            # Without what PostgreSQL quotes of the row.
            raise InvalidInput(f"a row of {table} cannot be stored ({error.args[0]}); the rest was not moved") from None
        if table == "given" and rows:
            await self._all(SELECT_BEYOND["other_keys"], seq=max(row["key"] for row in rows))
