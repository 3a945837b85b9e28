"""The vectors of a store in memory: all are compared with a query. Implements `ports.vectors`."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from kalito_mcp.domain.scope import Scope
from kalito_mcp.errors import Conflict, InvalidInput
from kalito_mcp.ports.vectors import OwedVector, VectorIndex
from kalito_mcp.storage.memory.state import State, is_within

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class VectorsRead:
    """`ports.vectors.VectorReader`."""

    outage: str | None = None
    """None: no vector is kept elsewhere."""

    def __init__(self, state: State) -> None:
        self._state = state

    async def indexes(self) -> Sequence[VectorIndex]:
        return sorted(self._state.vector_indexes.values(), key=lambda one: not one.is_active)

    async def count(self, index: VectorIndex) -> int:
        return sum(index_key == index.key for index_key, _ in self._state.vectors)

    async def owed(self, index: VectorIndex | None, *, limit: int) -> Sequence[OwedVector]:
        return list(islice(self._owed(index), limit))

    async def owed_count(self, index: VectorIndex | None) -> int:
        return sum(1 for _ in self._owed(index))

    async def nearest(
        self,
        scope: Scope,
        fingerprint: str,
        query: "NDArray[np.float32]",
        *,
        k: int,
        among: "NDArray[np.int64] | None" = None,
    ) -> Sequence[tuple[int, float]]:
        index, place = self._active(fingerprint, query), self._state.place(scope)
        if index is None or place is None or k < 1:
            return []
        agent, session = place
        asked = None if among is None else set(among.tolist())
        keys = [
            one.record.key
            for one in self._state.of_agent(scope.owner, agent)
            if (session is None or one.record.session_id == session.id)
            and (asked is None or one.record.key in asked)
            and is_within(scope, one)
        ]
        found = self._products(index, query, keys)
        return sorted(found.items(), key=lambda one: (-one[1], -one[0]))[:k]

    async def similarities(
        self, fingerprint: str, query: "NDArray[np.float32]", record_keys: Sequence[int]
    ) -> Mapping[int, float]:
        index = self._active(fingerprint, query)
        return {} if index is None else self._products(index, query, record_keys)

    def _owed(self, index: VectorIndex | None) -> Iterator[OwedVector]:
        """The records without a vector, newest first."""
        for key, one in reversed(self._state.records.items()):
            text = one.embedded_text
            if text is not None and (index is None or (index.key, key) not in self._state.vectors):
                yield OwedVector(key, text)

    def _active(self, fingerprint: str, query: "NDArray[np.float32]") -> VectorIndex | None:
        """The active index, if this embedder made it."""
        for index in self._state.vector_indexes.values():
            if index.is_active and index.fingerprint == fingerprint:
                if query.shape != (index.dimension,):
                    raise InvalidInput(
                        f"the query's vector has the shape {query.shape}, but the index needs ({index.dimension},)"
                    )
                return index
        return None

    def _products(self, index: VectorIndex, query: "NDArray[np.float32]", keys: Sequence[int]) -> dict[int, float]:
        import numpy as np  # noqa: PLC0415 - loads when first needed

        known = [key for key in keys if (index.key, key) in self._state.vectors]
        if not known:
            return {}
        rows = np.stack([self._state.vectors[index.key, key] for key in known])
        return dict(zip(known, np.vecdot(rows, query).tolist(), strict=True))


class VectorsWritten(VectorsRead):
    """`ports.vectors.VectorWriter`."""

    async def open_index(self, fingerprint: str, dimension: int) -> VectorIndex:
        known = list(self._state.vector_indexes.values())
        for index in known:
            if index.fingerprint == fingerprint:
                if index.dimension != dimension:
                    raise Conflict(
                        f"the vectors of {fingerprint!r} have {index.dimension} dimensions, but the embedder returns "
                        f"{dimension} now; configure it as before, or under another name"
                    )
                return index
        for index in known:
            if not index.is_active:
                await self.drop(index)
        is_first = not any(index.is_active for index in known)
        opened = VectorIndex(self._state.next_key("vectors"), fingerprint, dimension, is_first, 0, 0)
        self._state.vector_indexes[opened.key] = opened
        return opened

    async def put(
        self, index: VectorIndex, owed: Sequence[OwedVector], vectors: "NDArray[np.float32]"
    ) -> VectorIndex | None:
        import numpy as np  # noqa: PLC0415 - loads when first needed

        if vectors.shape != (len(owed), index.dimension):
            raise InvalidInput(
                f"the vectors have the shape {vectors.shape}, but it must be ({len(owed)}, {index.dimension})"
            )
        if not np.isfinite(vectors).all():
            raise InvalidInput("an embedding has a value that is not finite; check what the embedding model returns")
        if index.key not in self._state.vector_indexes:
            return None
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        units = (vectors / np.where(lengths > 0, lengths, 1)).astype(np.float32)
        for one, unit in zip(owed, units, strict=True):
            stored = self._state.records.get(one.record_key)
            if stored is not None and stored.embedded_text == one.text:
                self._state.vectors[index.key, one.record_key] = unit
        return self._state.vector_indexes[index.key]

    async def activate(self, index: VectorIndex) -> None:
        for other in list(self._state.vector_indexes.values()):
            if other.is_active and other.key != index.key:
                await self.drop(other)
        if index.key in self._state.vector_indexes:
            self._state.vector_indexes[index.key] = replace(self._state.vector_indexes[index.key], is_active=True)

    async def drop(self, index: VectorIndex) -> None:
        if self._state.vector_indexes.pop(index.key, None) is not None:
            self._state.dropped_indexes |= {index.key}

    async def clear(self, *, limit: int) -> int:
        dropped = [place for place in self._state.vectors if place[0] in self._state.dropped_indexes][:limit]
        for place in dropped:
            del self._state.vectors[place]
        return len(dropped)
