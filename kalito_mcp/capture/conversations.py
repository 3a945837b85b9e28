"""What a server knows of the conversations that hooks report: what the assistant still sees, and what it did since its
last reply.

It is in memory alone. After a restart no compaction is known, so too little is offered back rather than the same twice.
"""

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from kalito_mcp.capture.events import ToolUse

if TYPE_CHECKING:
    from kalito_mcp.memory import Memory

MOST_CONTINUED: Final = 100
"""So many times one conversation may go on after it was finalized."""

_MOST_KEPT: Final = 64
_MOST_TOOL_USES: Final = 200


@dataclass(slots=True)
class Conversation:
    """One conversation. `name` is the host's own; hosts resume one that was finalized here, and then it goes on as
    another session: `abc~2` after `abc`."""

    name: str
    number: int = 1
    has_known: bool = False
    """Whether what is known of the person and the project was put into it."""
    is_resumed: bool = False
    """Whether it is older than what is known of it here. What is known of the person was put into it then."""
    shown: set[str] = field(default_factory=set[str])
    """The ids of the records that were put into it."""
    lost_up_to: int = 0
    """Up to which message a compaction took its own words from the assistant."""
    work: dict[str, ToolUse] = field(default_factory=dict[str, ToolUse])
    """What the assistant did since its last reply, by the id of the report."""

    @property
    def session_id(self) -> str:
        """Under which it is recorded now."""
        return _session_id(self.name, self.number)

    @property
    def earlier(self) -> frozenset[str]:
        """The sessions that it was recorded under before."""
        return frozenset(_session_id(self.name, number) for number in range(1, self.number))

    def go_on_after(self, session_id: str) -> None:
        """Go on as another session, because this one is closed. Nothing happens if it does so already."""
        if session_id == self.session_id and self.number < MOST_CONTINUED:
            self.number += 1
            self.lost_up_to = 0

    def add_work(self, report_id: str, use: ToolUse) -> None:
        """Note that the assistant used a tool. The same report counts once."""
        if len(self.work) < _MOST_TOOL_USES:
            self.work[report_id] = use


class Conversations:
    """The conversations that were active last."""

    def __init__(self) -> None:
        self._by_name: OrderedDict[str, Conversation] = OrderedDict()

    async def find(self, name: str, memory: "Memory") -> Conversation:
        """The conversation that a host calls so. `memory` knows whether it went on after it was finalized."""
        if name not in self._by_name:
            sessions = {session.id for session in await memory.list_sessions(prefix=name)}
            numbers = range(MOST_CONTINUED, 1, -1)
            number = next((number for number in numbers if _session_id(name, number) in sessions), 1)
            # Another report may have been faster.
            self._by_name.setdefault(name, Conversation(name, number, is_resumed=bool(sessions)))
        self._by_name.move_to_end(name)
        while len(self._by_name) > _MOST_KEPT:
            self._by_name.popitem(last=False)
        return self._by_name[name]

    def drop(self, name: str) -> None:
        """Know nothing of a conversation any more."""
        self._by_name.pop(name, None)

    def clear(self) -> None:
        """Know of none, as after a restart."""
        self._by_name.clear()


def _session_id(name: str, number: int) -> str:
    return name if number == 1 else f"{name}~{number}"
