"""Implements `ports.vector_points.VectorPoints` with Qdrant. Its client runs in threads, because half of it blocks.

If Qdrant does not answer, it is not asked again for some seconds, so that no search waits for it each time. One line in
the log says so, another that it is back.
"""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

import anyio
import anyio.to_thread

from kalito_mcp.domain.records import RecordType
from kalito_mcp.errors import VectorsUnreachable
from kalito_mcp.ports.embedder import VectorPolicy
from kalito_mcp.ports.vector_points import FoundPoint, VectorPoint, VectorTenant
from kalito_mcp.storage.qdrant.collections import QdrantCollections
from kalito_mcp.storage.qdrant.place import QdrantPlace

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_log: Final = logging.getLogger("kalito.qdrant")
_FIRST_PAUSE_S: Final = 5.0
_LONGEST_PAUSE_S: Final = 60.0
_WORK_S: Final = 60.0
_PURGE_S: Final = 10.0
"""Erasing waits for these requests."""

_REFUSED: Final = (401, 403)
_LONGEST_REASON: Final = 200
T = TypeVar("T")


class _StillLoadingError(Exception):
    """The client is being imported."""


class QdrantPoints:
    """Points in the collections of the place called `name`. A search waits `timeout_s` at most."""

    def __init__(
        self,
        name: str,
        collections: QdrantCollections,
        *,
        timeout_s: float,
        steady_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = name
        self._arrivals = 0
        self._collections = collections
        self._timeout_s = timeout_s
        self._steady_s = steady_s
        self._outage: str | None = None
        self._pause_s = _FIRST_PAUSE_S
        self._asked_again_at_s = 0.0

    @property
    def arrivals(self) -> int:
        """Reconnects plus collections lost; a change means that vectors must be checked again."""
        return self._arrivals + self._collections.losses

    async def put(self, points: Sequence[VectorPoint]) -> None:
        await self._ask(partial(self._collections.put, points), timeout_s=_WORK_S)

    async def remove(self, database: str, ids: Sequence[bytes]) -> None:
        await self._ask(partial(self._collections.remove, database, ids), timeout_s=_PURGE_S)

    async def nearest(
        self, tenant: VectorTenant, query: "NDArray[np.float32]", *, count: int, is_exact: bool
    ) -> Sequence[FoundPoint]:
        search = partial(self._collections.nearest, tenant, query, count, is_exact=is_exact)
        return await self._ask(search, timeout_s=self._timeout_s)

    async def similarities(
        self, database: str, query: "NDArray[np.float32]", ids: Mapping[RecordType, Sequence[bytes]]
    ) -> Mapping[bytes, float]:
        return await self._ask(partial(self._collections.similarities, database, query, ids), timeout_s=self._timeout_s)

    async def count(self, database: str) -> int:
        return await self._ask(partial(self._collections.count, database), timeout_s=_PURGE_S)

    async def ids(self, database: str) -> frozenset[bytes]:
        return await self._ask(partial(self._collections.ids, database), timeout_s=_WORK_S)

    def count_now(self, database: str) -> int:
        """As `count`, without an event loop. Ends the client."""
        try:
            return self._collections.count(database)
        except Exception as error:
            raise VectorsUnreachable(f"{self.name} {_reason(error)}") from error
        finally:
            self._collections.close()

    async def aclose(self) -> None:
        await anyio.to_thread.run_sync(self._collections.close)

    async def _ask(self, work: Callable[[], T], *, timeout_s: float) -> T:
        """The result of `work`, on a thread that is left alone if it takes too long.

        Raises:
            VectorsUnreachable: it failed, took too long, or Qdrant has just failed to answer.
        """
        if self._outage is not None and self._steady_s() < self._asked_again_at_s:
            raise VectorsUnreachable(self._outage)
        try:
            if not await self._is_loaded(timeout_s):
                raise _StillLoadingError  # noqa: TRY301 - it is no failure
            with anyio.fail_after(timeout_s):
                result = await anyio.to_thread.run_sync(work, abandon_on_cancel=True)
        except _StillLoadingError:
            raise VectorsUnreachable(f"the client of {self.name} is still being loaded; search again soon") from None
        except TimeoutError as error:
            raise self._failed(f"did not answer within {timeout_s:g} s") from error
        except Exception as error:
            raise self._failed(_reason(error)) from error
        if self._outage is not None:
            _log.info("%s answers again", self.name)
        if self._outage is not None or not self._arrivals:
            self._arrivals += 1
        self._outage, self._pause_s = None, _FIRST_PAUSE_S
        return result

    async def _is_loaded(self, timeout_s: float) -> bool:
        """Load the client; whether it is there in time. If not, its thread goes on, and a later question finds it."""
        if not self._collections.is_loaded:
            with anyio.move_on_after(timeout_s):
                await anyio.to_thread.run_sync(self._collections.load, abandon_on_cancel=True)
        return self._collections.is_loaded

    def _failed(self, reason: str) -> VectorsUnreachable:
        if self._outage is None:
            _log.warning("search goes on by words only: %s %s", self.name, reason)
        self._outage = f"{self.name} {reason}"
        self._asked_again_at_s = self._steady_s() + self._pause_s
        self._pause_s = min(2 * self._pause_s, _LONGEST_PAUSE_S)
        return VectorsUnreachable(self._outage)


def configured_points(policy: VectorPolicy, steady_s: Callable[[], float] = time.monotonic) -> QdrantPoints | None:
    """The Qdrant of the settings; None if vectors are kept in the database. Nothing is loaded or connected yet.

    Raises:
        ConfigurationError: it cannot be used as it is written, or the extra is not installed.
    """
    if not policy.qdrant:
        return None
    place = QdrantPlace(policy.qdrant, api_key_env=policy.qdrant_api_key_env)
    collections = QdrantCollections(place.connect, is_local=place.is_local)
    return QdrantPoints(place.name, collections, timeout_s=policy.qdrant_timeout_s, steady_s=steady_s)


def _reason(error: Exception) -> str:
    """Why Qdrant was not asked or did not answer, without what was asked."""
    status: Any = getattr(error, "status_code", None)
    if status in _REFUSED:
        return f"refuses the key (status {status}); check the variable that models.qdrant_api_key_env names"
    if status is not None:
        return f"answered with status {status}; its log may say why"
    source = getattr(error, "source", error)
    if isinstance(source, VectorsUnreachable):
        return f"cannot be used: {source}"
    text = " ".join(str(source).split())[:_LONGEST_REASON]
    return f"cannot be reached ({type(source).__name__}: {text}); check that it runs"
