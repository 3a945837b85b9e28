"""Whether this release made the text index of a database."""

from typing import TYPE_CHECKING, Final

from kalito_mcp.storage.receiving import refuse_unfinished
from kalito_mcp.text.analysis_version import ANALYSIS_VERSION

if TYPE_CHECKING:
    import aiosqlite

SELECT_ANALYSIS: Final = "SELECT analysis FROM identity"
REBUILD_STEP: Final = 8
"""The migration from which on an index can be rebuilt."""


async def is_index_current(connection: "aiosqlite.Connection") -> bool:
    """Whether this release's analysis made the index.

    Raises:
        Conflict: a migration into the database was not finished.
    """
    [[version]] = await connection.execute_fetchall(SELECT_ANALYSIS)
    refuse_unfinished(version)
    return bool(version == ANALYSIS_VERSION)


async def warn_if_older(reader: "aiosqlite.Connection") -> None:
    """Log that an older release made the index, for a process that may only read."""
    if await is_index_current(reader):
        return
    import logging  # noqa: PLC0415 - the import takes longer than a look into the database

    logging.getLogger("kalito.storage").warning(
        "an older release made the text index, and this one reads it as it is: search may find less until "
        "`kalito-mcp serve` can write to the database"
    )
