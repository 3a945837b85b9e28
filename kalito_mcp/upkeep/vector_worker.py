"""Embeds the records that have no vector yet, in batches, in one task. Also builds a whole index for `reindex`.

Owed vectors are a query over stored data, so a crash loses none of them. The model is never awaited inside a
transaction; a record that was edited meanwhile is owed again. Vectors of two embedders are never mixed in one index:
while another embedder's index is active, nothing is embedded until `kalito-mcp reindex`, unless this embedder replaces
that one. Where several processes make vectors, each claims those of some owners before it embeds.
"""

import logging
import math
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

import anyio
import anyio.lowlevel

from kalito_mcp.errors import KalitoError, ModelReplyInvalid
from kalito_mcp.ports.embedder import Embedder, VectorPolicy
from kalito_mcp.ports.store import ReadView, Store, WriteTransaction
from kalito_mcp.ports.vectors import OwedVector, VectorIndex

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_log: Final = logging.getLogger("kalito.vectors")
_CLEARED_AT_ONCE: Final = 2_000
_NO_VECTOR: Final = "searched by words only: the first vectors are still being made"
_PROBE: Final = "How long is a vector?"
_RETRY_AFTER_S: Final = 5.0
_LONGEST_PAUSE_S: Final = 600.0


class VectorWorker:
    """Embeds owed records, `policy.batch` at a time. After a failure it retries at the next nudge or after a pause,
    which doubles each time from 5 seconds to 10 minutes."""

    def __init__(
        self,
        store: Store,
        embedder: Embedder,
        policy: VectorPolicy,
        give_way: Callable[[], Awaitable[None]] = anyio.lowlevel.checkpoint,
    ) -> None:
        """`give_way` is awaited before each batch."""
        self._store = store
        self._embedder = embedder
        self._policy = policy
        self._give_way = give_way
        self._wake = anyio.Event()
        self._idle = anyio.Event()
        self._has_vectors = False
        self._is_foreign = False
        self._is_cleared = False
        self._failures = 0

    async def absence(self) -> str | None:
        """The note of searches while there are no vectors to compare with. None from then on."""
        if not self._has_vectors:
            self._has_vectors = _active(await self._indexes()) is not None
        return None if self._has_vectors else _NO_VECTOR

    def nudge(self) -> None:
        """Report that there may be records without a vector. Returns at once."""
        if self._idle.is_set():
            self._idle = anyio.Event()
        self._wake.set()

    async def settled(self) -> None:
        """Wait until no vector is owed, or none can be made for now."""
        while not self._idle.is_set():
            await self._idle.wait()

    async def run(self) -> None:
        """Work until cancelled, starting with what an earlier process left owed. Raises nothing else."""
        while True:
            self._wake = anyio.Event()
            await self._try()
            if self._wake.is_set():
                continue
            self._idle.set()
            with anyio.move_on_after(self._pause_s()):
                await self._wake.wait()

    async def pay(self) -> None:
        """Embed every record that the active index lacks; without an index, open the first one.

        Raises:
            ModelError, StorageError: a batch could not be embedded or stored, or moved to where vectors are kept.
                Earlier batches stay, the rest is owed.
        """
        await self._drop_replaced()
        if not self._is_cleared:
            await self._clear()
        is_owed = True
        while is_owed:
            await self._pay_owed()
            is_owed = await self._store.maintenance.move_vectors()

    async def _drop_replaced(self) -> None:
        """Stop using the active index if this embedder replaces the one that made it."""
        active = _active(await self._indexes())
        if active is None or not self._is_replaced(active):
            return
        await self._store.write(lambda transaction: transaction.vectors.drop(active.fingerprint))
        self._is_cleared = False
        _log.info(
            "the vectors that %s made are replaced by vectors of %s, the newest first; search finds the rest by words",
            active.fingerprint,
            self._embedder.fingerprint,
        )

    async def _pay_owed(self) -> None:
        if not math.isinf(self._store.maintenance.lease_s):
            await self._open_first()
        while owed := await self._owed():
            await self._give_way()
            await self._store.write(partial(self._put, owed, await self._embed(owed)))

    async def _open_first(self) -> None:
        """Open the first index before there is a vector for it, because nothing can be claimed without an index."""
        ours = self._embedder.fingerprint

        async def is_due(view: ReadView) -> bool:
            return not await view.vectors.indexes() and bool(await view.vectors.owed(ours, limit=1))

        if await self._store.read(is_due):
            probe = await self._embedder.embed([_PROBE])

            async def open_index(transaction: WriteTransaction) -> None:
                if not await transaction.vectors.indexes():
                    await transaction.vectors.open_index(ours, probe.shape[1])

            await self._store.write(open_index)

    async def _put(
        self, owed: Sequence[OwedVector], vectors: "NDArray[np.float32]", transaction: WriteTransaction
    ) -> None:
        """Store the vectors, unless another process has opened the first index for another embedder meanwhile."""
        if not self._is_other(_active(await transaction.vectors.indexes())):
            await transaction.vectors.open_index(self._embedder.fingerprint, vectors.shape[1])
            await self._put_ours(owed, vectors, transaction)

    async def _put_ours(
        self, owed: Sequence[OwedVector], vectors: "NDArray[np.float32]", transaction: WriteTransaction
    ) -> None:
        await transaction.vectors.put(self._embedder.fingerprint, owed, vectors)

    async def rebuild(self, progress: Callable[[int, int], None], *, is_anew: bool = False) -> None:
        """Complete this embedder's index, activate it, remove the previous one, and move the vectors to where they are
        kept. What was lost there is made again.

        `progress` receives (records with a vector, all records). The process may be killed at any moment: what was
        built stays for the next call, and the old index is used until the new one is complete. With `is_anew` this
        embedder's vectors are dropped first, for a model that has changed under the same name.

        Raises:
            ModelError, StorageError: a batch could not be embedded or stored; call again to continue.
            Conflict: another embedder's index was started meanwhile.
        """
        await self._store.maintenance.move_vectors(is_whole=True)
        await self._clear()
        probe = await self._embedder.embed([_PROBE])
        ours = self._embedder.fingerprint

        async def begin(transaction: WriteTransaction) -> tuple[int, int]:
            if is_anew:
                await transaction.vectors.drop(ours)
            await transaction.vectors.open_index(ours, probe.shape[1])
            done = await transaction.vectors.count(ours)
            return done, done + await transaction.vectors.owed_count(ours)

        done, total = await self._store.write(begin)
        progress(done, total)
        while not await self._activate_if_complete():
            owed = await self._store.read(lambda view: view.vectors.owed(ours, limit=self._policy.batch))
            if not owed:
                continue
            await self._store.write(partial(self._put_ours, owed, await self._embed(owed)))
            done += len(owed)
            total = max(total, done)
            progress(done, total)
        await self._clear()
        await self._store.maintenance.move_vectors()

    async def _activate_if_complete(self) -> bool:
        """Activate our index if no record lacks a vector in it. False, and nothing is written, otherwise."""
        ours = self._embedder.fingerprint
        if await self._store.read(lambda view: view.vectors.owed(ours, limit=1)):
            return False

        async def activate(transaction: WriteTransaction) -> bool:
            if await transaction.vectors.owed(ours, limit=1):
                return False
            await transaction.vectors.activate(ours)
            return True

        return await self._store.write(activate)

    async def _try(self) -> None:
        try:
            await self.pay()
        except KalitoError as error:
            self._failures += 1
            if self._failures == 1:
                _log.warning("some records have no vector yet, and search finds them by words only: %s", error)
            return
        except Exception:
            # An embedder is optional: whatever it raises, the memory keeps working.
            self._failures += 1
            if self._failures == 1:
                _log.exception("some records have no vector yet, and search finds them by words only")
            return
        if self._failures:
            _log.info("records get their vectors again")
        self._failures = 0

    def _pause_s(self) -> float:
        if not self._failures:
            return self._store.maintenance.lease_s / 2  # another process may have ended
        return min(_LONGEST_PAUSE_S, _RETRY_AFTER_S * 2.0 ** min(self._failures - 1, 30))

    async def _indexes(self) -> Sequence[VectorIndex]:
        return await self._store.read(lambda view: view.vectors.indexes())

    async def _owed(self) -> Sequence[OwedVector]:
        """The next batch. Empty if nothing is owed or another embedder's index is active."""
        ours, most = self._embedder.fingerprint, self._policy.batch

        async def look(view: ReadView) -> tuple[VectorIndex | None, Sequence[OwedVector]]:
            active = _active(await view.vectors.indexes())
            if self._is_other(active):
                return active, []
            return active, await view.vectors.owed(ours, limit=most, is_claimed=True)

        await self._store.maintenance.claim_vectors(ours, limit=most)
        active, owed = await self._store.read(look)
        is_foreign = self._is_other(active)
        if active is not None and is_foreign and not self._is_foreign:
            _log.warning(
                "the stored vectors were made by %s, but %s is configured, so search uses words only; run "
                "`kalito-mcp reindex`",
                active.fingerprint,
                self._embedder.fingerprint,
            )
        self._is_foreign = is_foreign
        return owed

    def _is_replaced(self, index: VectorIndex) -> bool:
        return self._is_other(index) and index.fingerprint.partition(":")[0] in self._embedder.replaces

    def _is_other(self, index: VectorIndex | None) -> bool:
        return index is not None and index.fingerprint != self._embedder.fingerprint

    async def _embed(self, owed: Sequence[OwedVector]) -> "NDArray[np.float32]":
        """The vectors (n, dimension) of the texts. If the model refuses only some of them, those get zeros, which are
        near nothing: one bad text must not block its batch for ever."""
        texts = [one.text for one in owed]
        try:
            return await self._embedder.embed(texts)
        except ModelReplyInvalid:
            if len(texts) == 1:
                raise
            return await self._embed_singly(texts)

    async def _embed_singly(self, texts: Sequence[str]) -> "NDArray[np.float32]":
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
            raise refusal or ModelReplyInvalid("the embedder returned no vector; check its model")
        zeros = np.zeros(lengths[0], np.float32)
        return np.stack([zeros if vector is None else vector for vector in found])

    async def _clear(self) -> None:
        """Remove the rest of dropped indexes, in small transactions."""
        is_left = True
        while is_left:
            is_left = await self._store.write(lambda view: view.vectors.clear(limit=_CLEARED_AT_ONCE)) > 0
        self._is_cleared = True


def _active(indexes: Sequence[VectorIndex]) -> VectorIndex | None:
    return next((index for index in indexes if index.is_active), None)
