"""The inverted text index: which records hold a term."""

from collections.abc import Sequence
from typing import Protocol

from kalito_mcp.domain.records import RecordType
from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.search import Posting


class TextIndexReader(Protocol):
    """Reads of one consistent view."""

    async def postings(
        self, scope: Scope, terms: Sequence[str], *, types: frozenset[RecordType], cap: int
    ) -> Sequence[Posting]:
        """For each analysed term, the newest `cap` records of the scope's agent (or session) that hold it.

        `types` may narrow the postings and may be ignored: `RecordReader.candidates` decides. The work is bounded
        by `cap`, however common the term.
        """
        ...

    async def record_count(self, scope: Scope) -> int:
        """How many records the scope's agent has."""
        ...
