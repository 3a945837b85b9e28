"""The verbs of `Memory` for what an assistant still sees of its own conversation, which hooks tell."""

from collections.abc import Mapping, Sequence
from typing import Final

from kalito_mcp.domain.records import HOOK_KEY, NewMessage, Role
from kalito_mcp.domain.scope import PERSONAL
from kalito_mcp.domain.search import SeenPart
from kalito_mcp.domain.sessions import Session, SessionState
from kalito_mcp.ports.store import ReadView
from kalito_mcp.project_verbs import ProjectVerbs
from kalito_mcp.records.same_turn import Told, Way, recognised, way_of, words_of
from kalito_mcp.safety.redaction import redact

_TURN_MS: Final = 2 * 3_600_000
"""How long an assistant may work on one prompt. One that has no answer by then never got one."""
_MOST_RECENT: Final = 16
"""Sessions that are looked at."""
_NEWEST: Final = 40
"""Messages of each of these."""


class SeenVerbs(ProjectVerbs):
    """The part of `Memory` that knows which conversation calls."""

    async def seen_parts(self, seen_after: Mapping[str, int]) -> frozenset[SeenPart]:
        """What is seen of these sessions, by the number of the message after which all is seen. A session that does not
        exist is left out."""
        scopes = [await self._of_session(one) for one in seen_after]

        async def read(view: ReadView) -> frozenset[SeenPart]:
            parts: list[SeenPart] = []
            for scope, after in zip(scopes, seen_after.values(), strict=True):
                if (session := await view.sessions.get(scope)) is not None:
                    lost = await view.conversations.messages(session, first_seq=after, last_seq=after) if after else ()
                    parts.append(SeenPart(session.key, lost[0].id if lost else 0))
            return frozenset(parts)

        return await self._store.read(read)

    async def conversation_of(self, messages: Sequence[NewMessage]) -> str | None:
        """The session of this project in which hooks have recorded words of these messages, of the same turn; None if
        there is none, or of a memory of all projects."""
        if self._project is None:
            return None
        scope, since_ms = self._scope(None), self.clock.now_ms() - _TURN_MS
        call = [Told(one.role, words_of(redact(one.text).text), one.client_key, Way.TOOL) for one in messages]

        async def read(view: ReadView) -> str | None:
            for session in await view.sessions.list_recent(scope, limit=_MOST_RECENT):
                if not self._is_live(session, since_ms):
                    continue
                newest = max(0, session.message_count - _NEWEST)
                turns = await view.imports.turns(session, after_seq=newest, limit=_NEWEST)
                known = recognised(call, turns, {}).values()
                if any(way_of(turn.client_key, turn.client) is Way.HOOK for turn in known):
                    return session.id
            return None

        return await self._store.read(read)

    def _is_live(self, session: Session, since_ms: int) -> bool:
        is_open = session.state is SessionState.OPEN and session.message_count > 0
        return is_open and session.updated_at >= since_ms and (session.project or PERSONAL) == self._project

    async def unanswered(self) -> list[Session]:
        """The sessions of this project whose newest message is a prompt that a hook has reported and that has no answer
        yet, newest first. Of a memory of all projects, none."""
        if self._project is None:
            return []
        scope, since_ms = self._scope(None), self.clock.now_ms() - _TURN_MS

        async def read(view: ReadView) -> list[Session]:
            found: list[Session] = []
            for session in await view.sessions.list_recent(scope, limit=_MOST_RECENT):
                newest = session.message_count
                if not self._is_live(session, since_ms):
                    continue
                [last] = await view.conversations.messages(session, first_seq=newest, last_seq=newest)
                if last.role is Role.USER and (last.client_key or "").startswith(HOOK_KEY):
                    found.append(session)
            return found

        return await self._store.read(read)
