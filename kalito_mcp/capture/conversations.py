"""The state of conversations that hooks report: what the assistant still sees, and what it did since its last reply.

What the assistant sees is also in a small file per conversation, of ids and numbers alone, because the events of one
conversation may reach several servers, one after the other. What it did is in memory alone.
"""

import json
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from weakref import WeakValueDictionary

import anyio

from kalito_mcp.capture.events import ToolUse
from kalito_mcp.capture.sub_agents import SubAgents
from kalito_mcp.files import write_whole

if TYPE_CHECKING:
    from kalito_mcp.memory import Memory

MOST_CONTINUED: Final = 100
"""How often a conversation may continue after it was finalized."""

_MOST_KEPT: Final = 64
_KEPT_S: Final = 30 * 86_400
"""How long a file is kept that nothing has changed."""

_MOST_TOOL_USES: Final = 200


class Given(NamedTuple):
    """What the answer to the report with this key was the first to have: what is known, and the records `shown`."""

    key: str
    has_known: bool
    shown: frozenset[str]


@dataclass(slots=True)
class Conversation:
    """One conversation. `name` is the host's id. If a host resumes a conversation that is finalized here, it goes on as
    another session: `abc~2` after `abc`."""

    name: str
    number: int = 1
    has_known: bool = False
    """Whether what is known of the person and the project was put into it."""
    is_heard: bool = False
    """Whether a hook has reported something of it, to this server or another."""
    is_resumed: bool = False
    """Whether it began before this process knew it. What is known of the person and the project was put in then."""
    shown: set[str] = field(default_factory=set[str])
    """The ids of the records that were put into it."""
    lost_up_to: int = 0
    """A compaction took from the assistant all up to message `lost_up_to` of session number `lost_in`."""
    lost_in: int = 1
    given: Given | None = None
    """What was given last."""
    work: dict[str, ToolUse] = field(default_factory=dict[str, ToolUse])
    """What the assistant did since its last reply, by the id of the report."""
    sub_agents: SubAgents = field(default_factory=SubAgents)
    stored: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What its file says."""

    @property
    def session_id(self) -> str:
        """The session in which it is recorded now."""
        return continued(self.name, self.number)

    @property
    def seen_after(self) -> Mapping[str, int]:
        """What the assistant still sees: by session, the number of the message after which it sees all."""
        seen = range(self.lost_in, self.number + 1)
        return {continued(self.name, one): self.lost_up_to if one == self.lost_in else 0 for one in seen}

    def was_compacted(self, message_count: int) -> None:
        """From now on, the assistant sees nothing of what was said so far, nor of what was put in."""
        self.lost_in, self.lost_up_to = self.number, message_count
        self.shown.clear()

    def go_on_after(self, session_id: str) -> None:
        """Go on as another session, because this one is closed. Nothing happens if it does so already."""
        if session_id == self.session_id and self.number < MOST_CONTINUED:
            self.number += 1

    @contextmanager
    def giving(self, key: str) -> Iterator[None]:
        """Note what the block gives for the first time, to the hook whose report has this key."""
        had_known, shown = self.has_known, frozenset(self.shown)
        yield
        if self.has_known > had_known or self.shown > shown:
            self.given = Given(key, self.has_known and not had_known, frozenset(self.shown - shown))

    def take_back(self, key: str) -> frozenset[str]:
        """Give again what the report with this key was answered with: it is here once more because nobody waited.
        Returns the records of that."""
        unread = self.given
        if unread is None or unread.key != key:
            return frozenset()
        self.has_known = self.has_known and not unread.has_known
        self.shown -= unread.shown
        self.given = None
        return unread.shown

    def seen(self) -> dict[str, Any]:
        """What the assistant sees, as it is stored."""
        seen: dict[str, Any] = {"has_known": self.has_known, "shown": sorted(self.shown)}
        seen |= {"lost_up_to": self.lost_up_to, "lost_in": self.lost_in, **self.sub_agents.stored()}
        return {**seen, "is_heard": True} if self.is_heard else seen

    def take_over(self, stored: Mapping[str, Any]) -> None:
        """Take over what another server, or this one before a restart, has stored of what the assistant sees. Raises
        LookupError, TypeError or ValueError if that is damaged; then nothing changes."""
        has_known, lost_up_to = bool(stored["has_known"]), int(stored["lost_up_to"])
        lost_in = int(stored.get("lost_in", self.number if lost_up_to else 1))
        shown = set(map(str, stored["shown"]))
        self.sub_agents.take_over(stored)
        self.shown = shown
        self.has_known, self.is_heard, self.stored = has_known, True, stored
        self.lost_up_to, self.lost_in = lost_up_to, lost_in

    def add_work(self, report_id: str, use: ToolUse) -> None:
        """Note that the assistant used a tool. The same report counts once."""
        if len(self.work) < _MOST_TOOL_USES:
            self.work[report_id] = use


class Conversations:
    """The conversations that were active last."""

    def __init__(self) -> None:
        self._by_name: OrderedDict[str, Conversation] = OrderedDict()
        self._turns: WeakValueDictionary[str, anyio.Lock] = WeakValueDictionary()
        self._folder: Path | None = None

    def turn(self, name: str) -> anyio.Lock:
        """Who holds this may record an event of the conversation; the others follow in the order in which they came."""
        return self._turns.setdefault(name, anyio.Lock())

    def keep_in(self, folder: Path) -> None:
        """From now on, share what the assistant sees with other servers, in files in this folder. Those that nobody has
        written for a month are deleted."""
        self._folder = folder
        with suppress(OSError):
            for file in folder.iterdir():
                if time.time() - file.stat().st_mtime > _KEPT_S:
                    file.unlink()

    async def find(self, name: str, memory: "Memory") -> Conversation:
        """The conversation that a host calls so. `memory` knows whether it went on after it was finalized."""
        if name not in self._by_name:
            sessions = {session.id for session in await memory.conversations.recent(prefix=name)}
            own = memory.place.limits.own_session
            parts = ((number, continued(name, number)) for number in range(MOST_CONTINUED, 0, -1))
            number = next((number for number, one in parts if not sessions.isdisjoint((one, own(one)))), 0)
            # Another report may have been faster.
            self._by_name.setdefault(name, Conversation(name, max(number, 1), is_resumed=number > 0))
        self._by_name.move_to_end(name)
        while len(self._by_name) > _MOST_KEPT:
            self._by_name.popitem(last=False)
        conversation = self._by_name[name]
        if self._folder is not None:
            with suppress(OSError, ValueError, LookupError, TypeError):
                stored = json.loads(self._file(self._folder, name).read_text(encoding="utf-8"))
                if stored != conversation.stored:
                    conversation.take_over(stored)
        return conversation

    def keep(self, conversation: Conversation) -> None:
        """Store what the assistant sees, if that has changed. If it cannot be stored, other servers do not know it."""
        seen = conversation.seen()
        if self._folder is None or seen == (conversation.stored or Conversation(conversation.name).seen()):
            return
        with suppress(OSError):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_whole(self._file(self._folder, conversation.name), json.dumps(seen).encode(), is_durable=False)
            conversation.stored = seen

    def session_of(self, name: str) -> str:
        """The session into which a conversation is recorded now: `name` itself if it was not active lately."""
        return self._by_name[name].session_id if name in self._by_name else name

    @staticmethod
    def _file(folder: Path, name: str) -> Path:
        return folder / f"{blake2b(name.encode('utf-8', 'surrogatepass'), digest_size=12).hexdigest()}.json"

    def clear(self) -> None:
        """Forget all, as after a restart."""
        self._by_name.clear()


def name_of(session_id: str) -> str:
    """The host's name of a conversation that is recorded as this session."""
    name, mark, number = session_id.rpartition("~")
    return name if mark and number.isdecimal() and int(number) > 1 else session_id


def continued(name: str, number: int) -> str:
    """The session of a conversation's `number`-th part: `abc` for 1, `abc~2` for 2."""
    return name if number == 1 else f"{name}~{number}"
