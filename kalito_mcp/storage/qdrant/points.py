"""Implements `ports.vector_points.VectorPoints` with a Qdrant server. Its client runs in threads, because half of it
blocks, and is imported with the first question: 0.45 s of processor time and 50 MB.

If Qdrant does not answer, it is not asked again for some seconds, so that no search waits for it each time. One line in
the log says so, another that it is back.
"""

import logging
import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import anyio
import anyio.to_thread

from kalito_mcp.domain.findings import Finding, Verdict
from kalito_mcp.domain.records import RecordType
from kalito_mcp.errors import ConfigurationError, VectorsUnreachable
from kalito_mcp.ports.embedder import VectorPolicy
from kalito_mcp.ports.vector_points import FoundPoint, VectorPoint, VectorTenant
from kalito_mcp.storage.qdrant.collections import MODULE, QdrantCollections
from kalito_mcp.storage.sqlite.vector_check import moved_points

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_log: Final = logging.getLogger("kalito.qdrant")
_URL: Final = re.compile(r"https?://[^\s/@?#\\]+(?:/[^\s@?#\\]*)?", re.I)
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_FIRST_PAUSE_S: Final = 5.0
_LONGEST_PAUSE_S: Final = 60.0
_LONGEST_REQUEST_S: Final = 30
_WORK_S: Final = 60.0
_PURGE_S: Final = 10.0
"""Erasing waits for these requests."""
_REFUSED: Final = (401, 403)
_LONGEST_REASON: Final = 200
T = TypeVar("T")


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
        self.arrivals = 0
        self._collections = collections
        self._timeout_s = timeout_s
        self._steady_s = steady_s
        self._outage: str | None = None
        self._pause_s = _FIRST_PAUSE_S
        self._asked_again_at_s = 0.0

    async def put(self, points: Sequence[VectorPoint]) -> None:
        await self._ask(_WORK_S, partial(self._collections.put, points))

    async def remove(self, database: str, ids: Sequence[bytes]) -> None:
        await self._ask(_PURGE_S, partial(self._collections.remove, database, ids))

    async def nearest(self, tenant: VectorTenant, query: "NDArray[np.float32]", count: int) -> Sequence[FoundPoint]:
        return await self._ask(self._timeout_s, partial(self._collections.nearest, tenant, query, count))

    async def similarities(
        self, database: str, query: "NDArray[np.float32]", ids: Mapping[RecordType, Sequence[bytes]]
    ) -> Mapping[bytes, float]:
        return await self._ask(self._timeout_s, partial(self._collections.similarities, database, query, ids))

    async def count(self, database: str) -> int:
        return await self._ask(_PURGE_S, partial(self._collections.count, database))

    async def ids(self, database: str) -> frozenset[bytes]:
        return await self._ask(_WORK_S, partial(self._collections.ids, database))

    async def aclose(self) -> None:
        await anyio.to_thread.run_sync(self._collections.close)

    def inspect(self, database: Path) -> Finding:
        """For doctor: whether Qdrant answers, and has as many vectors of the database as it should. Ends the client."""
        named, expected = moved_points(database) or ("", 0)
        try:
            count = self._count_now(named)
        except VectorsUnreachable as error:
            detail = f"{error}. Until then, search uses words only, and new vectors wait in the database"
            return Finding("qdrant", Verdict.WARNING, detail)
        if count != expected:
            remedy = "`serve` mends it in the background, `kalito-mcp reindex --vectors` mends it now"
            detail = f"{self.name} has {count:,} vectors of this database instead of {expected:,}: {remedy}"
            return Finding("qdrant", Verdict.WARNING, detail)
        return Finding("qdrant", Verdict.OK, f"{self.name} answers, and has all {expected:,} vectors of this database")

    def _count_now(self, database: str) -> int:
        try:
            return self._collections.count(database)
        except Exception as error:
            raise VectorsUnreachable(f"{self.name} {_reason(error)}") from error
        finally:
            self._collections.close()

    async def _ask(self, timeout_s: float, work: Callable[[], T]) -> T:
        """The result of `work`, on a thread that is left alone if it takes too long.

        Raises:
            VectorsUnreachable: it failed, took too long, or Qdrant has just failed to answer.
        """
        if self._outage is not None and self._steady_s() < self._asked_again_at_s:
            raise VectorsUnreachable(self._outage)
        try:
            with anyio.fail_after(timeout_s):
                result = await anyio.to_thread.run_sync(work, abandon_on_cancel=True)
        except TimeoutError as error:
            raise self._failed(f"did not answer within {timeout_s:g} s") from error
        except Exception as error:
            raise self._failed(_reason(error)) from error
        if self._outage is not None:
            _log.info("%s answers again", self.name)
        self.arrivals = self.arrivals or 1
        self._outage, self._pause_s = None, _FIRST_PAUSE_S
        return result

    def _failed(self, reason: str) -> VectorsUnreachable:
        if self._outage is None:
            _log.warning("search goes on by words only: %s %s", self.name, reason)
        self.arrivals += 1
        self._outage = f"{self.name} {reason}"
        self._asked_again_at_s = self._steady_s() + self._pause_s
        self._pause_s = min(2 * self._pause_s, _LONGEST_PAUSE_S)
        return VectorsUnreachable(self._outage)


def configured_points(policy: VectorPolicy, steady_s: Callable[[], float] = time.monotonic) -> QdrantPoints | None:
    """The Qdrant of the settings; None if vectors are kept in the database. Nothing is loaded or connected yet.

    Raises:
        ConfigurationError: it cannot be used as it is written, or the extra is not installed. No value is repeated,
            because it may contain a key.
    """
    if not policy.qdrant:
        return None
    if not _URL.fullmatch(policy.qdrant):
        raise ConfigurationError(
            "models.qdrant must look like http://localhost:6333, without user name, password, query or fragment; "
            "a key goes into the environment variable that models.qdrant_api_key_env names"
        )
    if policy.qdrant_api_key_env and not _VARIABLE.fullmatch(policy.qdrant_api_key_env):
        raise ConfigurationError(
            "models.qdrant_api_key_env must be the name of an environment variable, not the key itself"
        )
    if find_spec(MODULE) is None:
        raise ConfigurationError(
            "models.qdrant needs the package qdrant-client; install kalito-mcp[qdrant], or remove the setting to "
            "keep vectors in the database"
        )
    url = policy.qdrant.rstrip("/")
    collections = QdrantCollections(partial(_connect, url, policy.qdrant_api_key_env))
    return QdrantPoints(f"Qdrant at {url}", collections, timeout_s=policy.qdrant_timeout_s, steady_s=steady_s)


def _connect(url: str, api_key_env: str) -> Any:
    """A new client. Raises VectorsUnreachable if the variable with the key is not set."""
    key = os.environ.get(api_key_env) if api_key_env else None
    if api_key_env and not key:
        raise VectorsUnreachable(f"set the environment variable {api_key_env} with its key")
    # As with model servers, nothing but this address is asked: no proxy of the environment, no redirect.
    return import_module(MODULE).QdrantClient(
        url=url,
        api_key=key,
        timeout=_LONGEST_REQUEST_S,
        check_compatibility=False,
        trust_env=False,
        follow_redirects=False,
    )


def _reason(error: Exception) -> str:
    """Why Qdrant got no request or did not answer, without the request's content."""
    status: Any = getattr(error, "status_code", None)
    if status in _REFUSED:
        return f"refuses the key (status {status}); check the variable that models.qdrant_api_key_env names"
    if status is not None:
        return f"answered with status {status}; its log may say why"
    if isinstance(error, VectorsUnreachable):
        return f"cannot be used: {error}"
    source = getattr(error, "source", error)
    text = " ".join(str(source).split())[:_LONGEST_REASON]
    return f"cannot be reached ({type(source).__name__}: {text}); check that it runs"
