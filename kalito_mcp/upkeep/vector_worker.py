"""Owed vectors: embeds the records that have none, in batches, in one task; and builds a whole index for `reindex`.

What is owed is a query over what is stored, so a crash owes the same afterwards. The model is never awaited inside a
transaction: what was edited meanwhile is not taken, and owed again. Vectors of two embedders never meet in one index:
while another one's index is active, nothing is embedded until `kalito-mcp reindex`.
"""

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

import anyio
import anyio.lowlevel

from kalito_mcp.errors import Conflict, KalitoError, ModelReplyInvalid
from kalito_mcp.ports.embedder import Embedder, VectorPolicy
from kalito_mcp.ports.store import Store
from kalito_mcp.ports.vectors import OwedVector, VectorIndex

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_log: Final = logging.getLogger("kalito.vectors")
_CLEARED_AT_ONCE: Final = 2_000
_PROBE: Final = "How long is a vector?"
_RETRY_AFTER_S: Final = 5.0
_LONGEST_PAUSE_S: Final = 600.0


class VectorWorker:
    """Pays the vectors that are owed, `policy.batch` at a time. After a failure it tries again at the next nudge, at
    the latest some seconds later, and later each time."""

    def __init__(self, store: Store, embedder: Embedder, policy: VectorPolicy) -> None:
        self._store = store
        self._embedder = embedder
        self._policy = policy
        self._wake = anyio.Event()
        self._idle = anyio.Event()
        self._is_foreign = False
        self._is_cleared = False
        self._failures = 0

    def nudge(self) -> None:
        """Say that there may be records without a vector. Returns at once."""
        if self._idle.is_set():
            self._idle = anyio.Event()
        self._wake.set()

    async def settled(self) -> None:
        """Wait until no vector is owed any more, or none can be made for now."""
        while not self._idle.is_set():
            await self._idle.wait()

    async def run(self) -> None:
        """Work until cancelled, beginning with what an earlier process still owed. Raises nothing else."""
        while True:
            self._wake = anyio.Event()
            await self._try()
            if self._wake.is_set():
                continue
            self._idle.set()
            with anyio.move_on_after(self._pause_s()):
                await self._wake.wait()

    async def pay(self) -> None:
        """Embed all that is owed to the active index, or to the first one.

        Raises:
            ModelError, StorageError: as they say; what was paid before stays, the rest is owed.
        """
        if not self._is_cleared:
            await self._clear()
        while owed := await self._owed():
            vectors = await self._embedded(owed)
            async with self._store.write() as transaction:
                # Another process may have opened the first index meanwhile, for another embedder.
                if self._is_other(_active(await transaction.vectors.indexes())):
                    continue
                index = await transaction.vectors.open_index(self._embedder.fingerprint, vectors.shape[1])
                await transaction.vectors.put(index, owed, vectors)
            await anyio.lowlevel.checkpoint()
        await self._store.build_ann_index()

    async def rebuild(self, progress: Callable[[int, int], None], *, is_anew: bool = False) -> VectorIndex:
        """Complete the index of this embedder, serve it from then on, and remove the one before it.

        `progress` hears how many records have their vector, and of how many. It may be killed at any moment and begun
        again: what was built stays, and the old index is served until the new one is complete. `is_anew` begins with
        none of this embedder's vectors: they are of no use once its model has changed under the same name.

        Raises:
            ModelError, StorageError: as they say; begin again to go on.
            Conflict: another embedder's index was begun meanwhile.
        """
        await self._clear()
        probe = await self._embedder.embed([_PROBE])
        async with self._store.write() as transaction:
            for stored in await transaction.vectors.indexes() if is_anew else ():
                if not self._is_other(stored):
                    await transaction.vectors.drop(stored)
            index = await transaction.vectors.open_index(self._embedder.fingerprint, probe.shape[1])
            done = await transaction.vectors.count(index)
            total = done + await transaction.vectors.owed_count(index)
        progress(done, total)
        while not await self._activated(index):
            async with self._store.read() as view:
                owed = await view.vectors.owed(index, limit=self._policy.batch)
            if not owed:
                continue
            vectors = await self._embedded(owed)
            async with self._store.write() as transaction:
                index = _still(await transaction.vectors.put(index, owed, vectors))
            done += len(owed)
            total = max(total, done)
            progress(done, total)
        await self._clear()
        await self._store.build_ann_index()
        return index

    async def _activated(self, index: VectorIndex) -> bool:
        """Whether nothing is owed to the index; it is the active one then."""
        async with self._store.read() as view:
            if await view.vectors.owed(index, limit=1):
                return False
        async with self._store.write() as transaction:
            current = _still(next((one for one in await transaction.vectors.indexes() if one.key == index.key), None))
            if await transaction.vectors.owed(current, limit=1):
                return False
            await transaction.vectors.activate(current)
        return True

    async def _try(self) -> None:
        try:
            await self.pay()
        except KalitoError as error:
            self._failures += 1
            if self._failures == 1:
                _log.warning("records wait for their vectors, and are found by their words meanwhile: %s", error)
            return
        except Exception:
            # Whatever an embedder does, the memory that it is an extra of goes on.
            self._failures += 1
            if self._failures == 1:
                _log.exception("records wait for their vectors, and are found by their words meanwhile")
            return
        if self._failures:
            _log.info("records get their vectors again")
        self._failures = 0

    def _pause_s(self) -> float:
        if not self._failures:
            return float("inf")
        return min(_LONGEST_PAUSE_S, _RETRY_AFTER_S * 2.0 ** min(self._failures - 1, 30))

    async def _owed(self) -> Sequence[OwedVector]:
        """The next batch; empty where nothing is owed, or another embedder's index is served."""
        async with self._store.read() as view:
            active = _active(await view.vectors.indexes())
            is_foreign = self._is_other(active)
            owed = [] if is_foreign else await view.vectors.owed(active, limit=self._policy.batch)
        if active is not None and is_foreign and not self._is_foreign:
            _log.warning(
                "the stored vectors were made by %s, and %s is configured: what is asked is found by its words; run "
                "`kalito-mcp reindex`",
                active.fingerprint,
                self._embedder.fingerprint,
            )
        self._is_foreign = is_foreign
        return owed

    def _is_other(self, index: VectorIndex | None) -> bool:
        return index is not None and index.fingerprint != self._embedder.fingerprint

    async def _embedded(self, owed: Sequence[OwedVector]) -> "NDArray[np.float32]":
        """The vectors (n, dimension) of the texts. One that the model cannot embed among others that it can gets zeros,
        which are near to nothing: it must not keep the others from theirs for ever."""
        texts = [one.text for one in owed]
        try:
            return await self._embedder.embed(texts)
        except ModelReplyInvalid:
            if len(texts) == 1:
                raise
            return await self._embedded_singly(texts)

    async def _embedded_singly(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        import numpy as np  # noqa: PLC0415 - an embedder has loaded it by now

        found: list[NDArray[np.float32] | None] = []
        refusal: ModelReplyInvalid | None = None
        for text in texts:
            try:
                found.append((await self._embedder.embed([text]))[0])
            except ModelReplyInvalid as error:
                refusal = error
                found.append(None)
        lengths = [len(vector) for vector in found if vector is not None]
        if not lengths:
            raise refusal or ModelReplyInvalid("the embedder returned no vector")
        zeros = np.zeros(lengths[0], np.float32)
        return np.stack([zeros if vector is None else vector for vector in found])

    async def _clear(self) -> None:
        """Remove what is left of dropped indexes, a little in each transaction."""
        is_left = True
        while is_left:
            async with self._store.write() as transaction:
                is_left = await transaction.vectors.clear(limit=_CLEARED_AT_ONCE) > 0
        self._is_cleared = True


def _active(indexes: Sequence[VectorIndex]) -> VectorIndex | None:
    return next((index for index in indexes if index.is_active), None)


def _still(index: VectorIndex | None) -> VectorIndex:
    if index is None:
        raise Conflict("another process began to build the vectors of another embedder; run `kalito-mcp reindex` again")
    return index
