"""The schema: numbered SQL files, which `migrating` applies, and whether a database has them all.

A released file never changes: its checksum is stored when it is applied, and compared at every start. `user_version`
is the number of the last migration. A database with a higher one belongs to a newer kalito and is refused, unchanged.
"""

import hashlib
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kalito_mcp.errors import SchemaTooNew, SchemaUnknown, StorageDamaged

if TYPE_CHECKING:
    import aiosqlite

APPLICATION_ID: Final = 0x6B61_6C69  # "kali" in the file's header: whose database this is
_FOLDER: Final = Path(__file__).parent / "migrations"

_SELECT_MIGRATIONS: Final = "SELECT number, checksum FROM migrations ORDER BY number"
# One statement reads one state of the file: another process may create the database between two.
SELECT_KIND: Final = """
SELECT (SELECT user_version FROM pragma_user_version), (SELECT application_id FROM pragma_application_id),
    (SELECT count(*) FROM sqlite_schema)
"""


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

    def statements(self) -> Iterator[str]:
        """The statements, one by one."""
        pending = ""
        for line in self.sql.splitlines(keepends=True):
            pending += line
            if sqlite3.complete_statement(pending):
                yield pending
                pending = ""
        if pending.strip():
            yield pending


def migrations() -> list[Migration]:
    """All migrations of this release, in order."""
    return [
        Migration(number=int(path.name[:4]), name=path.stem[5:], sql=path.read_text(encoding="utf-8"))
        for path in sorted(_FOLDER.glob("[0-9][0-9][0-9][0-9]_*.sql"))
    ]


async def is_current(connection: "aiosqlite.Connection", steps: Sequence[Migration], path: Path) -> bool:
    """Whether the database has all the steps and no others.

    Raises:
        SchemaTooNew: it has more steps.
        StorageDamaged: it belongs to another program. SchemaUnknown: a step differs from the one that was applied.
    """
    [[version, application, objects]] = await connection.execute_fetchall(SELECT_KIND)
    if application != APPLICATION_ID:
        if application or version or objects:
            raise StorageDamaged(
                f"{path} is a SQLite database of another program; point KALITO_DATABASE at another file"
            )
        return False
    if version > len(steps):
        raise SchemaTooNew(
            f"{path} was written by a newer kalito (schema {version}; this one knows {len(steps)}); "
            "upgrade kalito-mcp, or open another database"
        )
    applied = {row[0]: row[1] for row in await connection.execute_fetchall(_SELECT_MIGRATIONS)}
    for step in steps[:version]:
        if applied.get(step.number) != step.checksum:
            raise SchemaUnknown(
                f"{path} has the schema of no release (step {step.number}, {step.name}, in another form): a kalito "
                "from before its first release, or a changed one, wrote it. It is not damaged: open it with the "
                "version that wrote it, or move it aside with its -wal and -shm, and a new memory is begun"
            )
    return int(version) == len(steps)
