"""The result of `build_context`."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from kalito_mcp.domain.given import GivenPart, LeftOut
from kalito_mcp.domain.known import KnownRecord
from kalito_mcp.domain.records import ConversationSummary, MessageWithImportance, SemanticPin
from kalito_mcp.domain.search import Hit

MOST_TOKENS: Final = 10_000_000
"""The largest budget of a context."""
_OF_SEARCHES: Final = frozenset({"score", "revision", "client_key", "same"})


class Include(StrEnum):
    """What a context contains only on request."""

    INTERNAL = "internal"
    """Thoughts, and internal messages."""
    UNTRUSTED = "untrusted"
    """Text from tools, documents and imports that looks like an instruction to the assistant."""


@dataclass(frozen=True, slots=True)
class MemoryContext:
    """What is known beyond the session, and the parts of the session, that fit a token budget.

    `latest_messages` are the ends of the latest other conversations, in one that has just begun. `known` is what
    matches the query, then the most important; nothing of it is among the pins or the matches. `recent_messages`
    and `summaries` are oldest first, `semantic_pins` most important first. `relevant_messages` match the query,
    best first; they are older ones of any session. All have their texts as the context shows them: a long one is
    shortened. `total_tokens` counts `text`, the rendered context with its frame, or what `to_dict` gives if that
    was asked for, and never exceeds the budget. `left_out` counts what did not fit, by kind. `note` says why the
    query found nothing, or what could not be searched. Without a session, `session_id` is None. `made_of` are the
    parts with the tokens and ids of each, and `missing` says which records were left out and why.
    """

    session_id: str | None
    recent_messages: tuple[MessageWithImportance, ...]
    semantic_pins: tuple[SemanticPin, ...]
    summaries: tuple[ConversationSummary, ...]
    relevant_messages: tuple[Hit, ...]
    total_tokens: int
    max_tokens: int
    text: str
    left_out: dict[str, int] = field(default_factory=dict[str, int])
    note: str | None = None
    known: tuple[KnownRecord, ...] = ()
    latest_messages: tuple[Hit, ...] = ()
    made_of: tuple[GivenPart, ...] = ()
    missing: tuple[LeftOut, ...] = ()

    @property
    def used_ids(self) -> list[str]:
        """The ids of what is known, its pins, summaries and matches."""
        return [
            *(one.record_id for one in self.known),
            *(pin.id for pin in self.semantic_pins),
            *(summary.id for summary in self.summaries),
            *(hit.record_id for hit in self.relevant_messages),
        ]

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready, without `text`."""
        return {
            "session_id": self.session_id,
            "latest_messages": [_slim(hit) for hit in self.latest_messages],
            "recent_messages": [message.to_dict() for message in self.recent_messages],
            "known": [one.to_dict() for one in self.known],
            "semantic_pins": [pin.to_dict() for pin in self.semantic_pins],
            "summaries": [summary.to_dict() for summary in self.summaries],
            "relevant_messages": [_slim(hit) for hit in self.relevant_messages],
            "total_tokens": self.total_tokens,
            "max_tokens": self.max_tokens,
            "left_out": dict(self.left_out),
            **({"note": self.note} if self.note else {}),
        }


def _slim(hit: Hit) -> dict[str, Any]:
    """The hit without what a reader of a context has no use for: its budget counts every field."""
    return {name: value for name, value in hit.to_dict().items() if name not in _OF_SEARCHES}
