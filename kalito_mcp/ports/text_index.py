"""The inverted text index: which records hold a term."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from kalito_mcp.domain.records import RecordType
from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.search import Posting


class TextIndexReader(Protocol):
    """Reads of one consistent view."""

    async def postings(
        self,
        scope: Scope,
        asked: Sequence[Sequence[str]],
        *,
        types: frozenset[RecordType],
        cap: int,
        up_to: int | None = None,
    ) -> Sequence[Posting]:
        """For each list of analysed terms, the newest `cap` records of the scope's agent (or session) that hold any of
        them; the posting has the first one's name. With `up_to`, the newest of those with this key or a lower one.

        `types` may narrow the postings and may be ignored: `SearchReader.candidates` decides. The work is bounded
        by `cap`, however common the term.
        """
        ...

    async def similar_terms(
        self, scope: Scope, words: Sequence[str], *, limit: int
    ) -> Mapping[str, Sequence[tuple[str, int]]]:
        """For each word, as `analysis.words` gives it, the terms of the scope's agent that it may be a mistyped form
        of: likeliest first (`text.spelling`), each with how many of the agent's records hold it, more or less.

        For words that nothing, or next to nothing, holds. A bounded number of them is looked up, so name the rarest
        first; one without likeness is not in the answer, nor is a word's own term among its terms. The work is
        bounded whatever the words.
        """
        ...

    async def record_count(self, scope: Scope) -> int:
        """How many records the scope's agent has."""
        ...
