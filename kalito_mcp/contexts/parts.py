"""The parts of a context, and how much of each it may have. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from kalito_mcp.domain.context import MOST_TOKENS
from kalito_mcp.domain.given import LeftOut
from kalito_mcp.domain.known import KnownRecord
from kalito_mcp.domain.records import ConversationSummary, MessageWithImportance, SemanticPin
from kalito_mcp.domain.search import Candidate, Hit
from kalito_mcp.domain.validation import Policy, bounded


@dataclass(frozen=True, slots=True)
class ContextPolicy(Policy):
    """The most of each part that goes into a context. Defaults are the specification's."""

    recent_messages: int = bounded(8, least=1)
    pins: int = 5
    summaries: int = bounded(3, least=1)
    """Summaries of one level. One more, and all of them are folded into one summary of the next level."""
    min_recent: int = bounded(3, least=1)
    token_limit: int = bounded(3000, least=1, most=MOST_TOKENS)
    fallback_messages: int = bounded(10, least=1)
    relevant_messages: int = 40
    """Of those, the ones that fit and are not far below the best."""
    known: int = 8
    """Known facts from beyond the session: the most important, and as many again that match the query."""
    known_share: float = bounded(0.15, most=1)
    """The share of the budget reserved for known facts that are near the query or were pinned on request."""
    latest_sessions: int = 4
    """Conversations whose ends a new conversation begins with."""


@dataclass(frozen=True, slots=True)
class ContextParts:
    """Everything that could go in. `recent` and `summaries` are oldest first, `known`, `pins` and `hits` best first.
    `around` are the messages around the hits, and `query` is what found the hits. `sure_known` are the ids of known
    facts that keep a place next to hits. `digest` has open items and results of the latest conversations, `latest` are
    their ends, newest conversation first; `is_about_latest` if the query may ask for them. `has_begun`: the
    conversation has had more than its first turn. `more_shared` counts known facts of spaces that are not in `known`,
    where one's own come first. `missing` says what is not among them, and why;
    `note` is the search's note. `recent` may begin after the first message of the session."""

    session_id: str | None
    recent: Sequence[MessageWithImportance]
    pins: Sequence[SemanticPin] = ()
    summaries: Sequence[ConversationSummary] = ()
    hits: Sequence[Hit] = ()
    around: Sequence[Candidate] = ()
    query: str = ""
    missing: Sequence[LeftOut] = ()
    note: str | None = None
    known: Sequence[KnownRecord] = ()
    sure_known: frozenset[str] = frozenset()
    more_shared: int = 0
    digest: Sequence[KnownRecord] = ()
    latest: Sequence[Sequence[Hit]] = ()
    is_about_latest: bool = False
    has_begun: bool = True

    @property
    def has_shared_hits(self) -> bool:
        """Whether others shared some of the hits."""
        return any(one.space is not None for one in self.hits)

    def places_of_known(self) -> tuple[list[int], list[int], list[int]]:
        """The places of what is known: all of one's own, those of them that keep a place, and what others shared."""
        own = [place for place, one in enumerate(self.known) if one.space is None]
        sure = [place for place in own if self.known[place].record_id in self.sure_known]
        return own, sure, [place for place, one in enumerate(self.known) if one.space is not None]
