"""The reads of a search: which records may be hits, and their texts."""

from collections.abc import Sequence
from typing import Protocol

from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.search import Candidate, CandidateStub, SearchFilters
from kalito_mcp.text.times.expressions import Span


class SearchReader(Protocol):
    """Reads of one consistent view. Forgotten records are left out.

    Records are named by their keys, which grow with time (`ports.records`).
    """

    async def candidate_stubs(
        self, scope: Scope, keys: Sequence[int], centres: Sequence[int], *, reach: int, filters: SearchFilters
    ) -> Sequence[CandidateStub]:
        """Stubs of these records and of the messages up to `reach` turns before and after those at `centres`, in no
        order. Stubs that the filters do not admit are included, with `is_admitted` False."""

    async def dated(self, scope: Scope, span: Span, *, limit: int) -> Sequence[int]:
        """The keys of the newest `limit` messages of the span. Only the newest sessions of that time are searched."""

    async def last_key(self, scope: Scope, until: int) -> int | None:
        """An estimate of the greatest key of that time: the greatest one in the sessions that had ended by this
        millisecond. Only the newest of these are searched. None if none had ended."""

    async def candidates(self, scope: Scope, keys: Sequence[int], filters: SearchFilters) -> Sequence[Candidate]:
        """The records with these keys that the scope and the filters admit, with their texts."""
