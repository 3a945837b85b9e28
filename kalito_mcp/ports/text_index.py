"""The inverted text index: which records contain a term."""

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
        """For each list of analysed terms, the newest `cap` records of the scope's agent (or session) that contain any
        of them. The posting is named after the first term. With `up_to`, only records with this key or a lower one.

        `types` may be ignored: `SearchReader.candidates` decides. `cap` bounds the work, however common the term.
        """

    async def similar_terms(
        self, scope: Scope, words: Sequence[str], *, limit: int
    ) -> Mapping[str, Sequence[tuple[str, int]]]:
        """For each word of `analysis.words`, the terms of the scope's agent that it may be a mistyped form of.

        Likeliest first (`text.spelling`), each with an estimate of how many of the agent's records contain it. A
        word's own term is never among them. A word without similar terms is left out.

        Meant for rare words. Only a bounded number of words is looked up, so pass the rarest first.
        """

    async def terms_with_prefixes(self, scope: Scope, prefixes: Sequence[str]) -> Mapping[str, Sequence[str]]:
        """For each prefix, the terms of the scope's agent that begin with it and are at most some letters longer.

        A prefix without a term is left out. The number of terms is bounded, so pass prefixes of three letters or more.
        """

    async def record_count(self, scope: Scope) -> int:
        """How many records the scope's agent has."""
