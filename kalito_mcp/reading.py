"""The composition root of commands that only look: settings to what a database holds.

Apart from `wiring`, which imports every rule and an event loop: with it, `stats` takes six times the processor time.
"""

from typing import Any

from kalito_mcp.config.sources import ReaderSettings
from kalito_mcp.domain.scope import Scope
from kalito_mcp.storage.sqlite.reading_once import CountsOfSqlite, read_once


def read_stats(settings: ReaderSettings, session_id: str | None) -> dict[str, Any]:
    """What the database holds, or one of its sessions, JSON-ready.

    Raises:
        StorageError: the file cannot be read, or a newer release wrote it.
        SessionNotFound: there is no such session.
    """
    owned = Scope(settings.owner)

    async def all_of_it(view: CountsOfSqlite) -> dict[str, Any]:
        served = [index for index in await view.vectors.indexes() if index.is_active]
        return {
            "database": str(settings.database),
            "bytes": settings.database.path.stat().st_size,
            **await view.sessions.totals(owned),
            "vectors": sum([await view.vectors.count(index.fingerprint) for index in served]),
            "vectors_made_by": served[0].fingerprint if served else None,
        }

    async def one_session(view: CountsOfSqlite) -> dict[str, Any]:
        from kalito_mcp.retrieval.known_names import find_session  # noqa: PLC0415 - the rules of spelling come with it

        return (await find_session(view, owned.of_session(session_id or ""))).stats().to_dict()

    work = all_of_it if session_id is None else one_session
    return read_once(settings.database.path, work, timeout_s=settings.storage.busy_timeout_s)
