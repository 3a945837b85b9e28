"""The vectors of a store in memory: all are compared with a query. Implements `ports.vectors`."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from kalito_mcp.domain.scope import Scope
from kalito_mcp.ports.vectors import OwedVector, VectorIndex
from kalito_mcp.storage.memory.state import Tables, is_within
from kalito_mcp.storage.vector_checks import check_dimension, check_finite, check_query, check_vectors, dropped


class Vectors(Tables):
    """`ports.vectors.VectorWriter`."""

    outage: str | None = None
    """None: no vector is kept elsewhere."""

    async def indexes(self) -> Sequence[VectorIndex]:
        return sorted(self._state.vector_indexes.values(), key=lambda one: not one.is_active)

    async def count(self, fingerprint: str, owner: str | None = None) -> int:
        key = self._key(fingerprint)
        owners = {one.key: one.owner for one in self._state.records.values()}
        return sum(of == key and owner in (None, owners[record_key]) for of, record_key in self._state.vectors)

    async def owed(self, fingerprint: str, *, limit: int, is_claimed: bool = False) -> Sequence[OwedVector]:
        del is_claimed  # no other process makes any
        return list(islice(self._owed(fingerprint), limit))

    async def owed_count(self, fingerprint: str) -> int:
        return sum(1 for _ in self._owed(fingerprint))

    async def nearest(
        self,
        scope: Scope,
        fingerprint: str,
        query: NDArray[np.float32],
        *,
        k: int,
        among: NDArray[np.int64] | None = None,
    ) -> Sequence[tuple[int, float]]:
        meant = None if among is None else set(among.tolist())
        keys = [
            one.key
            for one in self._state.of_agent(scope.owner, self._state.agent(scope, is_of_session=True))
            if scope.session in (None, one.session_id) and (meant is None or one.key in meant) and is_within(scope, one)
        ]
        found = await self.similarities(scope, fingerprint, query, keys)
        return sorted(found.items(), key=lambda one: (-one[1], -one[0]))[: max(k, 0)]

    async def similarities(
        self, scope: Scope, fingerprint: str, query: NDArray[np.float32], record_keys: Sequence[int]
    ) -> Mapping[int, float]:
        index_key = self._key(fingerprint, is_active=True)
        if index_key is None:
            return {}
        check_query(query, self._state.vector_indexes[index_key].dimension)
        theirs = {one.key for one in self._state.records.values() if one.owner == scope.owner}
        known = [key for key in record_keys if key in theirs and (index_key, key) in self._state.vectors]
        if not known:
            return {}
        rows = np.stack([self._state.vectors[index_key, key] for key in known])
        return dict(zip(known, np.vecdot(rows, query).tolist(), strict=True))

    def _owed(self, fingerprint: str) -> Iterator[OwedVector]:
        """The records without a vector, newest first."""
        index_key = self._key(fingerprint)
        for one in reversed(self._state.records.values()):
            text = one.embedded_text
            if text is not None and (index_key is None or (index_key, one.key) not in self._state.vectors):
                yield OwedVector(one.key, one.owner, text)

    def _key(self, fingerprint: str, *, is_active: bool = False) -> int | None:
        """The key of the index, if it exists, and is active if it should be."""
        found = (key for key, one in self._state.vector_indexes.items() if one.fingerprint == fingerprint)
        return next((key for key in found if self._state.vector_indexes[key].is_active or not is_active), None)

    async def open_index(self, fingerprint: str, dimension: int) -> None:
        state, key = self._state, self._key(fingerprint)
        if key is not None:
            return check_dimension(fingerprint, state.vector_indexes[key].dimension, dimension)
        state.vector_indexes = {key: one for key, one in state.vector_indexes.items() if one.is_active}
        opened = VectorIndex(fingerprint, dimension, is_active=not state.vector_indexes)
        state.vector_indexes[state.next_key("vectors")] = opened

    async def put(self, fingerprint: str, owed: Sequence[OwedVector], vectors: NDArray[np.float32]) -> None:
        key = self._known(fingerprint)
        check_vectors(owed, vectors, self._state.vector_indexes[key].dimension)
        check_finite(vectors)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        units = (vectors / np.where(lengths > 0, lengths, 1)).astype(np.float32)
        texts = {(one.key, one.owner): one.embedded_text for one in self._state.records.values()}
        for one, unit in zip(owed, units, strict=True):
            if texts.get((one.record_key, one.owner)) == one.text:
                self._state.vectors[key, one.record_key] = unit

    async def activate(self, fingerprint: str) -> None:
        key, indexes = self._known(fingerprint), self._state.vector_indexes
        self._state.vector_indexes = {key: replace(indexes[key], is_active=True)} | {
            other: one for other, one in indexes.items() if other != key and not one.is_active
        }

    async def drop(self, fingerprint: str) -> None:
        indexes = self._state.vector_indexes
        self._state.vector_indexes = {key: one for key, one in indexes.items() if one.fingerprint != fingerprint}

    async def clear(self, *, limit: int) -> int:
        gone = [place for place in self._state.vectors if place[0] not in self._state.vector_indexes][:limit]
        for place in gone:
            del self._state.vectors[place]
        return len(gone)

    def _known(self, fingerprint: str) -> int:
        key = self._key(fingerprint)
        if key is None:
            raise dropped()
        return key
