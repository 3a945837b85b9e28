"""The chores of a store on PostgreSQL. Implements `ports.maintenance.Maintenance`."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kalito_mcp.ports.maintenance import OwedErasures

if TYPE_CHECKING:
    from kalito_mcp.storage.postgres.database import PostgresStore


class MaintenanceOfPostgres:
    """`ports.maintenance.Maintenance`."""

    def __init__(self, store: "PostgresStore") -> None:
        self._store = store

    async def tidy(self) -> None:
        pass

    async def rebuild_derived(self) -> None:
        pass

    async def owed_erasures(self) -> OwedErasures:
        return OwedErasures()

    async def finish_erasures(self, owed: OwedErasures | None = None) -> Mapping[str, str]:
        return {}

    async def move_vectors(self, *, is_whole: bool = False) -> bool:
        return False
