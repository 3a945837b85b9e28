"""The composition root of commands that only look: settings to what a database holds.

Apart from `wiring`, which imports every rule and an event loop: with it, `stats` takes six times the processor time.
"""

from collections.abc import Sequence
from typing import Any, Protocol

from kalito_mcp.config.sources import ReaderSettings
from kalito_mcp.domain.scope import Scope
from kalito_mcp.ports.sessions import SessionReader
from kalito_mcp.ports.vectors import VectorIndex
from kalito_mcp.storage.sqlite.reading_once import read_once


class VectorCounts(Protocol):
    """Which vector indexes there are, and how many vectors each has."""

    async def indexes(self) -> Sequence[VectorIndex]: ...
    async def count(self, fingerprint: str, owner: str | None = None) -> int: ...


class Counts(Protocol):
    """What there is in a store, and how much."""

    @property
    def sessions(self) -> SessionReader: ...
    @property
    def vectors(self) -> VectorCounts: ...


def read_stats(settings: ReaderSettings, session_id: str | None) -> dict[str, Any]:
    """What the database holds, or one of its sessions, JSON-ready.

    Raises:
        StorageError: the file cannot be read, or a newer release wrote it.
        SessionNotFound: there is no such session.
    """
    owned = Scope(settings.owner)

    async def all_of_it(view: Counts) -> dict[str, Any]:
        served = [index for index in await view.vectors.indexes() if index.is_active]
        return {
            "database": str(settings.database),
            "bytes": 0 if settings.database.server else settings.database.path.stat().st_size,
            **await view.sessions.totals(owned),
            "vectors": sum([await view.vectors.count(index.fingerprint, settings.owner) for index in served]),
            "vectors_made_by": served[0].fingerprint if served else None,
        }

    async def one_session(view: Counts) -> dict[str, Any]:
        from kalito_mcp.retrieval.known_names import find_session  # noqa: PLC0415 - the rules of spelling come with it

        return (await find_session(view, owned.of_session(session_id or ""))).stats().to_dict()

    work = all_of_it if session_id is None else one_session
    if settings.database.server is not None:
        from kalito_mcp.storage.on_server import read_on_server  # noqa: PLC0415 - of an extra

        stats, size = read_on_server(settings.database.server, settings.storage, work)
        return {**stats, "bytes": size} if session_id is None else stats
    return read_once(settings.database.path, work, timeout_s=settings.storage.busy_timeout_s)
