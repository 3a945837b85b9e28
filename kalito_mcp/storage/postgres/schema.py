"""The schema: numbered SQL files, and whether a database has them all.

A released file never changes: its checksum is stored when it is applied, and compared at every start. A database with
more steps belongs to a newer kalito and is refused, unchanged. A step only expands what earlier releases use; what they
no longer use is removed a release later. So workers of the release before go on while a database is migrated.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import asyncpg

from kalito_mcp.errors import SchemaTooNew, SchemaUnknown

_FOLDER: Final = Path(__file__).parent / "migrations"

CREATE_MIGRATIONS: Final = """
CREATE TABLE IF NOT EXISTS migrations (number bigint PRIMARY KEY, name text NOT NULL, checksum text NOT NULL)
"""
SELECT_HAS_MIGRATIONS: Final = "SELECT to_regclass('migrations') IS NOT NULL"
SELECT_MIGRATIONS: Final = "SELECT number, checksum FROM migrations ORDER BY number"
INSERT_MIGRATION: Final = "INSERT INTO migrations (number, name, checksum) VALUES ($1, $2, $3)"


@dataclass(frozen=True, slots=True)
class Migration:
    """One step of the schema."""

    number: int
    name: str
    sql: str

    @property
    def checksum(self) -> str:
        """SHA-256 of the SQL."""
        return hashlib.sha256(self.sql.encode()).hexdigest()


def migrations() -> list[Migration]:
    """All migrations of this release, in order."""
    return [
        Migration(number=int(path.name[:4]), name=path.stem[5:], sql=path.read_text(encoding="utf-8"))
        for path in sorted(_FOLDER.glob("[0-9][0-9][0-9][0-9]_*.sql"))
    ]


async def applied(connection: asyncpg.Connection) -> dict[int, str]:
    """The checksums of the steps that a database has, by number."""
    if not await connection.fetchval(SELECT_HAS_MIGRATIONS):
        return {}
    return {row[0]: row[1] for row in await connection.fetch(SELECT_MIGRATIONS)}


def missing(has: Mapping[int, str], steps: Sequence[Migration], place: str) -> list[Migration]:
    """The steps that a database lacks, in order.

    Raises:
        SchemaTooNew: it has more steps. SchemaUnknown: a step differs from the one that was applied.
    """
    if len(has) > len(steps):
        raise SchemaTooNew(
            f"{place} was written by a newer kalito (schema {len(has)}; this one knows {len(steps)}); "
            "upgrade kalito-mcp, or use another database"
        )
    for step in steps[: len(has)]:
        if has.get(step.number) != step.checksum:
            raise SchemaUnknown(
                f"{place} has the schema of no release (step {step.number}, {step.name}, in another form); "
                "use the version that wrote it, or another database"
            )
    return list(steps[len(has) :])
