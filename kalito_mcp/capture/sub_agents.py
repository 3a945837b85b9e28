"""Whose a prompt or a reply is while an assistant has sub-agents at work. Pure.

Hooks of sub-agents run in the conversation that called them. Most hosts name the sub-agent in each event; then nothing
has to be decided here. Where the event does not say it:

- A host that names the task when it starts the sub-agent reports its prompt in these words, or not at all.
- A host that names the conversation's transcript in its person's prompts, but not in this one, reports a sub-agent.
- Without such a sign, the first prompt after the start of a sub-agent may be its task, or a person's while it works in
  the background: it is kept, but not as the person's words. All others are the person's.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any, Final

from kalito_mcp.capture.events import EventKind, HookEvent

_MOST_KEPT: Final = 64


@dataclass(slots=True)
class _SubAgent:
    task: str = ""
    """The key of the report of its task, or a hash of its words."""
    is_over: bool = False


@dataclass(slots=True)
class SubAgents:
    """The sub-agents of a conversation that were started last, by the ids of the host."""

    _by_id: dict[str, _SubAgent] = field(default_factory=dict[str, _SubAgent])
    _transcripts: dict[str, str] = field(default_factory=dict[str, str])
    """Hashes of the transcript that the last prompt of the person named, and the last reply to it."""

    def ascribed(self, event: HookEvent, key: str, *, is_late: bool) -> HookEvent | None:
        """The event, its words unascribed if that is in doubt; None if it is a sub-agent's. `key` is
        that of the report: the same report gets the same answer again, also late."""
        match event.kind:
            case EventKind.STARTED:
                for one in self._by_id.values():
                    one.is_over = True
            case EventKind.SUB_AGENT_STARTED | EventKind.SUB_AGENT_TASKED | EventKind.SUB_AGENT_ENDED:
                self._note(event, key, is_late=is_late)
                return None
            case EventKind.PROMPT | EventKind.REPLY:
                return self._of_person_or_assistant(event, key, is_late=is_late)
        return event

    def _note(self, event: HookEvent, key: str, *, is_late: bool) -> None:
        name = event.agent_id or ""
        one = self._by_id.setdefault(name, _SubAgent())
        if event.kind is EventKind.SUB_AGENT_TASKED:
            one.task = key
        elif event.kind is EventKind.SUB_AGENT_ENDED:
            one.is_over = True
        else:
            if one.is_over and not is_late:
                one = self._by_id[name] = _SubAgent()  # it works again
            if event.text:
                one.task = _hash_of(event.text)
        while len(self._by_id) > _MOST_KEPT:
            del self._by_id[next(iter(self._by_id))]

    def _of_person_or_assistant(self, event: HookEvent, key: str, *, is_late: bool) -> HookEvent | None:
        sign = _hash_of(event.transcript) if event.transcript else None
        usual = self._transcripts.get(event.kind)
        open_ones = [one for one in self._by_id.values() if not one.is_over]
        is_known = any(one.task in (key, _hash_of(event.text)) for one in self._by_id.values())
        if not is_known and (sign == usual if usual else not open_ones):
            if sign:
                self._transcripts[event.kind] = sign
            return event
        is_unsigned = usual is not None and sign is None
        begun = list(self._by_id.values()) if is_late and is_unsigned else open_ones
        waiting = next((one for one in begun if not one.task), None)
        if event.kind is EventKind.PROMPT and waiting is not None and not is_known:
            waiting.task = key
            is_known = True
        if is_unsigned and (is_known or open_ones):
            return None
        if is_known:
            return replace(event, text="", unascribed="\n\n".join(filter(None, (event.unascribed, event.text))))
        return event

    def stored(self) -> dict[str, Any]:
        """The state as JSON, of ids and hashes alone; empty without sub-agents and transcripts."""
        ids = [[name, one.task, one.is_over] for name, one in self._by_id.items()]
        return {"sub_agents": ids, "transcripts": self._transcripts} if ids or self._transcripts else {}

    def take_over(self, stored: Mapping[str, Any]) -> None:
        """Take over what `stored` gave. Raises LookupError, TypeError or ValueError if that is damaged."""
        listed = stored.get("sub_agents", [])
        by_id = {str(name): _SubAgent(str(task), bool(is_over)) for name, task, is_over in listed}
        self._transcripts = {str(kind): str(sign) for kind, sign in dict(stored.get("transcripts", {})).items()}
        self._by_id = by_id


def _hash_of(text: str) -> str:
    return blake2b(text.strip().encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
