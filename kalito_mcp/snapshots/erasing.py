"""Takes erased records out of snapshots. (Interim.)"""

from collections.abc import Sequence

from kalito_mcp.domain.erasing import PurgeReport
from kalito_mcp.snapshots.folder import SnapshotFolder


class SnapshotEraser:
    """Interim."""

    def __init__(self, folder: SnapshotFolder) -> None:
        self._folder = folder

    async def erase(self, record_ids: Sequence[str], texts: Sequence[str]) -> PurgeReport:
        return PurgeReport((), (), {})
