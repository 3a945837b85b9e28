"""Takes erased records out of the checkpoints that lie beside the database."""

import os
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Final

import anyio.to_thread

from kalito_mcp.domain.erasing import PurgeReport
from kalito_mcp.domain.graph import GraphConfig, NodeType
from kalito_mcp.domain.scope import LOCAL_OWNER, Scope
from kalito_mcp.domain.validation import MOST
from kalito_mcp.errors import Conflict, InvalidInput, StorageError
from kalito_mcp.graph.files import MAX_FILE_BYTES, read_json, remove_files, write_made
from kalito_mcp.graph.snapshot_folder import SnapshotFolder
from kalito_mcp.orchestrator.snapshot_import import detach
from kalito_mcp.ports.store import Store

_ID: Final = re.compile(rb'"([a-z]+_[0-9A-Za-z_.-]{1,100})(?=")')
"""An id of a record or of a node, as JSON has it, and texts that look like one."""


class SnapshotEraser:
    """Rewrites the snapshots that hold what is gone, and no others."""

    def __init__(
        self, folder: SnapshotFolder, store: Store, *, is_pretty: bool = False, owner: str = LOCAL_OWNER
    ) -> None:
        self._folder = folder
        self._store = store
        self._is_pretty = is_pretty
        self._scope = Scope(owner=owner)

    async def erase(self, text_keys: Collection[str] = ()) -> PurgeReport:
        """Take the erased records, and the erased texts of these canonical keys, out of every snapshot, as out of a
        graph: what other records say stays.

        `rewritten` has the names of the snapshots that held them, `remaining` the files that may hold them still: what
        is no snapshot is left alone. Unfinished checkpoints are removed; whoever still writes one begins it again.
        """
        rewritten: list[str] = []
        remaining: dict[str, str] = {}
        is_owed = False
        unfinished = await anyio.to_thread.run_sync(self._folder.unfinished)
        await anyio.to_thread.run_sync(remove_files, unfinished)
        for path in await anyio.to_thread.run_sync(self._folder.others):
            remaining[str(path)] = "is no snapshot; delete it if it may hold what was erased"
        # After the unfinished ones are removed: one of them may have got its place in between.
        for file in await anyio.to_thread.run_sync(self._folder.all):
            try:
                if await self._erased_from(file.path, text_keys):
                    rewritten.append(file.name)
            except (InvalidInput, StorageError, Conflict) as error:
                is_owed = is_owed or not isinstance(error, InvalidInput)
                remaining[str(file.path)] = f"was not cleaned: {error}; delete it if it may hold what was erased"
        return PurgeReport((), tuple(rewritten), remaining, is_owed)

    async def _erased_from(self, path: Path, text_keys: Collection[str]) -> bool:
        from kalito_mcp.graph.store import GraphStore  # noqa: PLC0415 - numpy comes with it

        async def cleaned() -> Mapping[str, Any] | None:
            graph = GraphStore(GraphConfig(max_nodes=MOST, max_edges=MOST))
            await anyio.to_thread.run_sync(graph.from_snapshot, await read_json(path))
            named = sorted({record_id for node in graph.nodes() for record_id in node.source_record_ids})
            async with self._store.read() as view:
                gone = await view.records.erased(self._scope, named)
                touched = await detach(graph, gone, text_keys, view.records, self._scope)
            return graph.to_snapshot() if touched else None

        if not await self._may_hold(path, text_keys):
            return False
        written = await anyio.Path(path).stat()
        if not await write_made(path, cleaned, is_pretty=self._is_pretty):
            return False
        # It is as old as what it holds: the newest comes first where they are listed.
        await anyio.to_thread.run_sync(lambda: os.utime(path, ns=(written.st_atime_ns, written.st_mtime_ns)))
        return True

    async def _may_hold(self, path: Path, text_keys: Collection[str]) -> bool:
        """Whether anything erased is named in the file, or it does not look like a whole snapshot. Far quicker than to
        read the graph."""
        ids = await anyio.to_thread.run_sync(_ids_in, path)
        if ids is None or not ids.isdisjoint(f"{kind}_{key}" for key in text_keys for kind in NodeType):
            return True
        async with self._store.read() as view:
            return bool(await view.records.erased(self._scope, sorted(ids)))


def _ids_in(path: Path) -> set[str] | None:
    """None where the file cannot be read, or is no whole snapshot."""
    try:
        raw = path.read_bytes() if path.stat().st_size <= MAX_FILE_BYTES else b""
    except OSError:
        return None
    is_whole = b'"nodes"' in raw and raw.rstrip().endswith(b"}")
    return {found.decode() for found in set(_ID.findall(raw))} if is_whole else None
