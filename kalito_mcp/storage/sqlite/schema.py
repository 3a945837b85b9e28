"""Migrations: numbered SQL files, each applied once, in one transaction, after a backup.

A released file never changes: its checksum is stored when it is applied, and compared at every start. `user_version`
is the number of the last migration. A database with a higher one belongs to a newer kalito and is refused, unchanged.
"""

import hashlib
import logging
import os
import sqlite3
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import aiosqlite

from kalito_mcp.errors import SchemaTooNew, StorageDamaged

APPLICATION_ID: Final = 0x6B61_6C69  # "kali" in the file's header: whose database this is
_log: Final = logging.getLogger("kalito.storage")
_FOLDER: Final = Path(__file__).parent / "migrations"

_CREATE_MIGRATIONS: Final = """
CREATE TABLE IF NOT EXISTS migrations (
    number INTEGER PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL, applied_at TEXT NOT NULL
) STRICT
"""
_INSERT_MIGRATION: Final = """
INSERT INTO migrations (number, name, checksum, applied_at)
VALUES (:number, :name, :checksum, strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))
"""
_SELECT_MIGRATIONS: Final = "SELECT number, checksum FROM migrations ORDER BY number"
# One statement reads one state of the file: another process may create the database between two.
_SELECT_KIND: Final = """
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


async def is_current(connection: aiosqlite.Connection, steps: Sequence[Migration], path: Path) -> bool:
    """Whether the database has all the steps and no others.

    Raises:
        SchemaTooNew: it has more steps.
        StorageDamaged: it belongs to another program, or a step differs from the one that was applied.
    """
    [[version, application, objects]] = await connection.execute_fetchall(_SELECT_KIND)
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
            raise StorageDamaged(
                f"{path}: migration {step.number} ({step.name}) was applied in another form than this release's; "
                "use the release that wrote it, or restore a backup"
            )
    return int(version) == len(steps)


async def migrate(connection: aiosqlite.Connection, steps: Sequence[Migration], path: Path) -> None:
    """Apply the missing steps, each in one transaction. Hold the write mutex.

    An existing database is first copied to `<name>.before-<number>.backup`.
    """
    if await is_current(connection, steps, path):
        return
    [[version, _, _]] = await connection.execute_fetchall(_SELECT_KIND)
    missing = steps[version:]
    started_at = time.monotonic()
    if version:
        await _back_up(connection, path, missing[0].number)
    for step in missing:
        await connection.execute("BEGIN IMMEDIATE")
        try:
            await connection.execute(_CREATE_MIGRATIONS)
            for statement in step.statements():
                await connection.execute(statement)
            await connection.execute(
                _INSERT_MIGRATION, {"number": step.number, "name": step.name, "checksum": step.checksum}
            )
            # PRAGMA takes no parameters; both numbers are our own.
            await connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            await connection.execute(f"PRAGMA user_version = {step.number}")
            await connection.execute("COMMIT")
        except BaseException:
            await connection.rollback()
            raise
    if version:
        _log.warning("%s: migrated to schema %d in %.1f s", path, len(steps), time.monotonic() - started_at)


async def _back_up(connection: aiosqlite.Connection, path: Path, number: int) -> None:
    target = path.with_name(f"{path.name}.before-{number}.backup")
    _log.warning("%s: migrating it from schema %d; a copy of it as it is goes to %s", path, number - 1, target.name)
    target.unlink(missing_ok=True)
    # Created first, so that no other user can read it while it is filled. SQLite accepts an empty file.
    os.close(os.open(target, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        await connection.execute("VACUUM INTO :target", {"target": str(target)})
        with target.open("rb+") as written:
            os.fsync(written.fileno())  # SQLite does not sync it, but the migration is on disk at once
    except BaseException:
        target.unlink(missing_ok=True)  # half a backup is useless
        raise
