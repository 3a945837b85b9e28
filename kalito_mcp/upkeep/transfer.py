"""Moves a whole database from one store to another: every table with its order, keys and hashes.

Rows go over in their order, in batches of one transaction each. So what a run that was cut short has left is the
beginning of the same rows: the next run compares it, row by row and before it writes anything, and goes on after it. At
the end both sides are read again and compared by their digests.
"""

from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Final, NamedTuple

from kalito_mcp.domain.archive import ArchiveEntry
from kalito_mcp.domain.transfer import MOVED
from kalito_mcp.errors import Conflict
from kalito_mcp.ports.store import OpenedStore, ReadView, WriteTransaction
from kalito_mcp.ports.vectors import OwedVector, VectorIndex
from kalito_mcp.records.digests import SHARED, Page, TableDigest, digests_of_all, rows_of
from kalito_mcp.runtime.crash_points import crash_point

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_ALWAYS_THERE: Final = SHARED | {name for name, table in MOVED.items() if table.is_single}
"""What an empty store has, too: it is not compared before, and written at the end."""

_AT_ONCE: Final = 2_000
_START_OVER: Final = "make an empty database for it, and run this again"

Progress = Callable[[str, int], None]
"""Gets the name of a table, and how many more of its rows are at the target; or what is done now, and 0."""


class TransferReport(NamedTuple):
    """The tables, which are equal on both sides, and how many vectors the target has of how many at the source."""

    tables: Mapping[str, TableDigest]
    vectors: int
    vectors_of_source: int


async def transfer(source: OpenedStore, target: OpenedStore, progress: Progress) -> TransferReport:
    """Bring everything to the target, in which nothing is but what an earlier call has brought.

    Raises:
        Conflict: the target has something else, and nothing was written; or somebody wrote to one of them meanwhile.
        InvalidInput: a row cannot be stored there.
    """
    secret = await source.secret()
    async with source.view() as view:
        owners = await view.transfer.owners()
        progress("comparing what is there already", 0)
        has = await _compared(view, target, is_begun=await target.secret() == secret)
        await target.write(partial(_begin, secret))
        crash_point("transfer.begun")
        last = list[ArchiveEntry]()
        for owner in (*owners, None):
            found = await _bring(target, owner, rows_of(view, owner), has.get(owner, 0), progress)
            last += [entry for entry in found if entry not in last]
        for index in await view.vectors.indexes():
            await _bring_vectors(view, target, index, progress)
        await target.write(partial(_finish, owners, last))
        crash_point("transfer.finished")
    progress("building the text index", 0)
    await target.maintenance.rebuild_derived()
    progress("comparing both sides", 0)
    try:
        return await _same_on_both_sides(source, target)
    except Conflict:
        await target.write(partial(_begin, secret))  # nothing but another migration opens it now
        raise


async def _compared(view: ReadView, target: OpenedStore, *, is_begun: bool) -> Mapping[str | None, int]:
    """How many rows of each owner the target has already: the first ones.

    Raises:
        Conflict: it has something else.
    """
    has: dict[str | None, int] = {}
    async with target.view() as there:
        for owner in (*await there.transfer.owners(), None):
            async with aclosing(rows_of(view, owner)) as ours, aclosing(rows_of(there, owner)) as theirs:
                has[owner] = await _common(ours, theirs)
    if not is_begun and any(has.values()):
        raise Conflict(f"the target is not empty, and nothing was written; {_START_OVER}")
    return has


async def _common(ours: AsyncGenerator[Page], theirs: AsyncGenerator[Page]) -> int:
    """The number of their rows, which are the first of ours."""
    count, waiting = 0, list[ArchiveEntry]()
    async for page in theirs:
        for entry in _counted(page):
            while not waiting:
                more = await anext(ours, None)
                if more is None:
                    raise _other(entry)
                waiting = [*reversed(list(_counted(more)))]
            if waiting.pop() != entry:
                raise _other(entry)
            count += 1
    return count


def _counted(page: Page) -> Iterator[ArchiveEntry]:
    return (entry for entry in page if entry.kind not in _ALWAYS_THERE)


def _other(entry: ArchiveEntry) -> Conflict:
    return Conflict(
        f"the target has {entry.kind} that the source does not have, or not like this: it is of another memory, or was "
        f"used, or the source was written since an earlier run. Nothing was written; {_START_OVER}"
    )


async def _begin(secret: bytes, transaction: WriteTransaction) -> None:
    await transaction.transfer.begin(secret)


async def _finish(owners: Sequence[str], last: Page, transaction: WriteTransaction) -> None:
    for entry in last:
        await _add(transaction, next(iter(owners), None), [entry])
    await transaction.archive.finish(owners)


async def _bring(
    target: OpenedStore, owner: str | None, rows: AsyncGenerator[Page], has: int, progress: Progress
) -> Page:
    """Write the rows, except the first ones, which the target has. Returns those that are written at the end."""
    batch, last = list[ArchiveEntry](), list[ArchiveEntry]()
    async with aclosing(rows) as pages:
        async for page in pages:
            for entry in page:
                if entry.kind in _ALWAYS_THERE:
                    last.append(entry)
                elif has:
                    has -= 1
                else:
                    batch.append(entry)
            if len(batch) >= _AT_ONCE:
                await _write(target, owner, batch, progress)
                batch = []
    if batch:
        await _write(target, owner, batch, progress)
    return last


async def _write(target: OpenedStore, owner: str | None, batch: Page, progress: Progress) -> None:
    async def add(transaction: WriteTransaction) -> None:
        await _add(transaction, owner, batch)
        crash_point("transfer.adding")

    await target.write(add)
    for kind, count in Counter(entry.kind for entry in batch).items():
        progress(kind, count)
    crash_point("transfer.written")


async def _add(transaction: WriteTransaction, owner: str | None, rows: Page) -> None:
    for kind, run in groupby(rows, lambda entry: entry.kind):
        if kind in MOVED:
            await transaction.transfer.add(kind, [entry.fields for entry in run], owner)
        elif owner is not None:
            await transaction.archive.add(owner, list(run))


async def _bring_vectors(view: ReadView, target: OpenedStore, index: VectorIndex, progress: Progress) -> None:
    """Write the vectors of an index, the newest first, as when they are made, except the first ones, which the target
    has."""
    fingerprint = index.fingerprint

    async def open_index(transaction: WriteTransaction) -> int:
        await transaction.vectors.open_index(fingerprint, index.dimension)
        return await transaction.vectors.count(fingerprint)

    has = await target.write(open_index)
    async with aclosing(view.transfer.vectors(fingerprint)) as pages:
        async for of, vectors in pages:
            has -= len(of)
            if has >= 0:
                continue
            await target.write(partial(_put, fingerprint, of, vectors))
            progress("record_vectors", len(of))
            crash_point("transfer.vectors")


async def _put(
    fingerprint: str,
    of: Sequence[OwedVector],
    vectors: "NDArray[np.float32]",
    transaction: WriteTransaction,
) -> None:
    await transaction.vectors.put(fingerprint, of, vectors)


async def _same_on_both_sides(source: OpenedStore, target: OpenedStore) -> TransferReport:
    """Read both as they are now.

    Raises:
        Conflict: they differ.
    """
    async with source.view() as ours, target.view() as theirs:
        wanted, found = await digests_of_all(ours), await digests_of_all(theirs)
        counts = [await _count_vectors(ours), await _count_vectors(theirs)]
    if others := [kind for kind in wanted if wanted[kind] != found[kind]]:
        raise Conflict(
            f"the source and the target differ in {', '.join(others)}: somebody wrote to one of them meanwhile. End "
            f"the servers that use them; then {_START_OVER}"
        )
    return TransferReport(found, counts[1], counts[0])


async def _count_vectors(view: ReadView) -> int:
    return sum([await view.vectors.count(index.fingerprint) for index in await view.vectors.indexes()])
