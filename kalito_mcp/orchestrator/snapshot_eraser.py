"""Takes erased records out of the checkpoints that lie beside the database."""

import os
from collections.abc import Sequence
from pathlib import Path

import anyio.to_thread

from kalito_mcp.domain.erasing import PurgeReport
from kalito_mcp.domain.graph import GraphConfig
from kalito_mcp.domain.scope import LOCAL_OWNER, Scope
from kalito_mcp.domain.validation import MOST
from kalito_mcp.errors import InvalidInput, StorageError
from kalito_mcp.orchestrator.restoring import detach
from kalito_mcp.ports.store import Store
from kalito_mcp.snapshots.folder import SnapshotFolder


class SnapshotEraser:
    """Rewrites the snapshots that hold what is gone, and no others."""

    def __init__(
        self, folder: SnapshotFolder, store: Store, *, is_pretty: bool = False, owner: str = LOCAL_OWNER
    ) -> None:
        self._folder = folder
        self._store = store
        self._is_pretty = is_pretty
        self._owner = owner

    async def erase(self, record_ids: Sequence[str] = (), texts: Sequence[str] = ()) -> PurgeReport:
        """Take the records, and any others that are erased, out of every snapshot, as out of a graph: what other
        records say stays. `texts` is what the records said, in any version.

        `rewritten` has the names of the snapshots that held them, `remaining` the files that may hold them still: what
        is no snapshot is left alone. What an interrupted checkpoint left behind is removed.
        """
        rewritten: list[str] = []
        remaining: dict[str, str] = {}
        for path in await anyio.to_thread.run_sync(self._folder.unfinished):
            await anyio.Path(path).unlink(missing_ok=True)
        for path in await anyio.to_thread.run_sync(self._folder.others):
            remaining[str(path)] = "is no snapshot; delete it if it may hold what was erased"
        for file in await anyio.to_thread.run_sync(self._folder.all):
            try:
                if await self._erased_from(file.path, record_ids, texts):
                    rewritten.append(file.name)
            except (InvalidInput, StorageError) as error:
                remaining[str(file.path)] = f"was not cleaned: {error}; delete it if it may hold what was erased"
        return PurgeReport((), tuple(rewritten), remaining)

    async def _erased_from(self, path: Path, record_ids: Sequence[str], texts: Sequence[str]) -> bool:
        from kalito_mcp.graph.files import read_json, write_json  # noqa: PLC0415 - numpy comes with it
        from kalito_mcp.graph.store import GraphStore  # noqa: PLC0415 - as above

        graph = GraphStore(GraphConfig(max_nodes=MOST, max_edges=MOST))
        written = await anyio.Path(path).stat()
        await anyio.to_thread.run_sync(graph.from_snapshot, await read_json(path))
        scope = Scope(owner=self._owner)
        named = sorted({record_id for node in graph.nodes() for record_id in node.source_record_ids})
        async with self._store.read() as view:
            gone = {*record_ids, *await view.edits.erased(scope, named)}
            if not await detach(graph, gone, texts, view.edits, scope):
                return False
        await write_json(path, graph.to_snapshot(), is_pretty=self._is_pretty)
        # It is as old as what it holds: the newest comes first where they are listed.
        await anyio.to_thread.run_sync(lambda: os.utime(path, ns=(written.st_atime_ns, written.st_mtime_ns)))
        return True
