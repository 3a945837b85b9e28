"""What is known of the person and of a project, beyond one conversation."""

from dataclasses import dataclass
from typing import Any

from kalito_mcp.domain.records import Origin, Reach, RecordType
from kalito_mcp.domain.time import to_iso


@dataclass(frozen=True, slots=True)
class KnownRecord:
    """A pin or a note that is the person's, or a project's.

    `session_id` is where it was made, None for a note without a session. `project` is None if it is the person's.
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

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready, without fields that are None."""
        fields = {
            "record_id": self.record_id,
            "type": str(self.type),
            "scope": str(self.reach),
            "project": self.project,
            "session_id": self.session_id,
            "text": self.text,
            "importance_score": self.importance,
            "created_at": to_iso(self.created_at),
        }
        return {name: value for name, value in fields.items() if value is not None}
