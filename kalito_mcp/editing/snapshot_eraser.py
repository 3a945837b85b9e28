"""Removes erased records from the snapshots in the database's folder."""

import os
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Final

import anyio.to_thread

from kalito_mcp.domain.erasing import PurgeReport
from kalito_mcp.domain.graph import GraphConfig, NodeType
from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.validation import MOST
from kalito_mcp.errors import Conflict, InvalidInput, StorageError
from kalito_mcp.graph.files import MAX_FILE_BYTES, read_json, remove_files, write_made
from kalito_mcp.graph.snapshot_folder import SnapshotFolder
from kalito_mcp.orchestrator.snapshot_import import detach_records
from kalito_mcp.ports.store import Store

_ID: Final = re.compile(rb'"([a-z]+_[0-9A-Za-z_.-]{1,100})(?=")')
"""A JSON string that is, or looks like, an id of a record or of a node."""
_DELETE: Final = "delete it if it may contain what was erased"


class SnapshotEraser:
    """Rewrites the snapshots that contain erased records, and no others."""

    def __init__(self, folder: SnapshotFolder, store: Store, *, is_pretty: bool = False) -> None:
        self._folder = folder
        self._store = store
        self._is_pretty = is_pretty

    async def erase(self, text_keys: Collection[str] = ()) -> Mapping[str, PurgeReport]:
        """Remove all erased records, and texts with these canonical keys, from every owner's snapshots. Text that
        other records of the owner also contain stays. Returns a report an owner.

        `rewritten` lists the snapshots that contained them. `remaining` maps each file that may still contain them, by
        its place beside the database, to the reason; a file that is not a snapshot is never changed. Unfinished
        snapshot files are removed; their writer starts over.
        """
        reports: dict[str, PurgeReport] = {}
        for owner, folder in (await anyio.to_thread.run_sync(self._folder.by_owner)).items():
            rewritten: list[str] = []
            remaining: dict[str, str] = {}
            is_owed = False
            unfinished = await anyio.to_thread.run_sync(folder.unfinished)
            await anyio.to_thread.run_sync(remove_files, unfinished)
            for path in await anyio.to_thread.run_sync(folder.others):
                remaining[self._place(path)] = f"not a snapshot; {_DELETE}"
            # Listed only after that removal: an unfinished snapshot may have been finished in between.
            for file in await anyio.to_thread.run_sync(folder.all):
                try:
                    if await self._erase_from(file.path, Scope(owner=owner), text_keys):
                        rewritten.append(f"snapshot {file.name}")
                except (InvalidInput, StorageError, Conflict) as error:
                    is_owed = is_owed or not isinstance(error, InvalidInput)
                    why = str(error).replace(str(file.path), "it").partition("; give ")[0]
                    remaining[self._place(file.path)] = f"{why}; {_DELETE}"
            reports[owner] = PurgeReport((), tuple(rewritten), remaining, is_owed)
        return reports

    def _place(self, path: Path) -> str:
        root = self._folder.folder
        return f"{root.name}/{path.relative_to(root).as_posix()}"

    async def _erase_from(self, path: Path, scope: Scope, text_keys: Collection[str]) -> bool:
        from kalito_mcp.graph.store import GraphStore  # noqa: PLC0415 - numpy comes with it

        async def clean() -> Mapping[str, Any] | None:
            graph = GraphStore(GraphConfig(max_nodes=MOST, max_edges=MOST))
            await anyio.to_thread.run_sync(graph.from_snapshot, await read_json(path))
            named = sorted({record_id for node in graph.nodes() for record_id in node.source_record_ids})
            async with self._store.view() as view:
                gone = await view.records.erased(scope, named)
                touched = await detach_records(graph, gone, text_keys, view.records, scope)
            return graph.to_snapshot() if touched else None

        if not await self._may_contain(path, scope, text_keys):
            return False
        written = await anyio.Path(path).stat()
        if not await write_made(path, clean, is_pretty=self._is_pretty):
            return False
        # Cleaning adds nothing new, so the file keeps its time: lists show the newest first.
        await anyio.to_thread.run_sync(lambda: os.utime(path, ns=(written.st_atime_ns, written.st_mtime_ns)))
        return True

    async def _may_contain(self, path: Path, scope: Scope, text_keys: Collection[str]) -> bool:
        """Whether the file names something erased, or is not a complete snapshot. Far faster than parsing the graph."""
        ids = await anyio.to_thread.run_sync(_ids_in, path)
        if ids is None or not ids.isdisjoint(f"{kind}_{key}" for key in text_keys for kind in NodeType):
            return True
        named = sorted(ids)
        return bool(await self._store.read(lambda view: view.records.erased(scope, named)))


def _ids_in(path: Path) -> set[str] | None:
    """The ids in the file; None if it cannot be read or is not a complete snapshot."""
    try:
        raw = path.read_bytes() if path.stat().st_size <= MAX_FILE_BYTES else b""
    except OSError:
        return None
    is_whole = b'"nodes"' in raw and raw.rstrip().endswith(b"}")
    return {found.decode() for found in set(_ID.findall(raw))} if is_whole else None
