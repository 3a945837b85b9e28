"""Migrates a database: applies each missing step of the schema once, in one transaction, after a backup."""

import logging
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import aiosqlite

from kalito_mcp.storage.sqlite.schema import APPLICATION_ID, SELECT_KIND, Migration, is_current

_log: Final = logging.getLogger("kalito.storage")

_CREATE_MIGRATIONS: Final = """
CREATE TABLE IF NOT EXISTS migrations (
    number INTEGER PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL, applied_at TEXT NOT NULL
) STRICT
"""
_INSERT_MIGRATION: Final = """
INSERT INTO migrations (number, name, checksum, applied_at)
VALUES (:number, :name, :checksum, strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))
"""


async def migrate(connection: aiosqlite.Connection, steps: Sequence[Migration], path: Path) -> None:
    """Apply the missing steps, each in one transaction. Hold the write mutex.

    An existing database is first copied to `<name>.before-<number>.backup`.
    """
    if await is_current(connection, steps, path):
        return
    [[version, _, _]] = await connection.execute_fetchall(SELECT_KIND)
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
