"""What is known of the person and of a project, beyond one conversation."""

from dataclasses import dataclass
from typing import Any

from kalito_mcp.domain.kinds import Kind
from kalito_mcp.domain.records import Origin, Reach, RecordType
from kalito_mcp.domain.time import to_iso


@dataclass(frozen=True, slots=True)
class KnownRecord:
    """A pin or a note that is the person's, or a project's.

    `session_id` is where it was made, None for a note without a session. `project` is None if it is the person's.
    `space` is the space that it was shared in, and `shared_by` who shared it; None for what is the person's own.
    `tokens` counts its text as a context shows it.
    """

    record_id: str
    type: RecordType
    reach: Reach
    text: str
    importance: float
    created_at: int
    tokens: int
    origin: Origin = Origin.ASSISTANT
    session_id: str | None = None
    project: str | None = None
    kind: Kind | None = None
    space: str | None = None
    shared_by: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready, without fields that are None."""
        fields = {
            "record_id": self.record_id,
            "type": str(self.type),
            "scope": str(self.reach),
            "space": self.space,
            "shared_by": self.shared_by,
            "kind": None if self.kind is None else str(self.kind),
            "project": self.project,
            "session_id": self.session_id,
            "text": self.text,
            "origin": str(self.origin),
            "importance_score": self.importance,
            "created_at": to_iso(self.created_at),
        }
        return {name: value for name, value in fields.items() if value is not None}


@dataclass(frozen=True, slots=True)
class ProfileLine:
    """One record of a profile, and what it is about."""

    subject: str
    record: KnownRecord


@dataclass(frozen=True, slots=True)
class OfferedPin:
    """A pin of a session that could be made lasting: with this `reach`, by its words."""

    record_id: str
    reach: Reach
    text: str
    created_at: int
    session_id: str | None

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {
            "record_id": self.record_id,
            "scope": str(self.reach),
            "session_id": self.session_id,
            "text": self.text,
            "created_at": to_iso(self.created_at),
        }


@dataclass(frozen=True, slots=True)
class Profile:
    """What is known: the person's lines first, then each project's; by subject, then by importance. `offered` are pins
    of sessions, newest first, that nobody has made lasting."""

    lines: tuple[ProfileLine, ...]
    offered: tuple[OfferedPin, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {
            "known": [{"subject": line.subject, **line.record.to_dict()} for line in self.lines],
            "pinned_in_a_session": [one.to_dict() for one in self.offered],
        }
