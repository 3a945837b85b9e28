"""The verbs of `Memory` for what an assistant still sees of its own conversation, which hooks tell."""

from collections.abc import Mapping
from typing import Final

from kalito_mcp.domain.records import Role
from kalito_mcp.domain.scope import PERSONAL
from kalito_mcp.domain.search import SeenPart
from kalito_mcp.domain.sessions import Session
from kalito_mcp.ports.store import ReadView
from kalito_mcp.project_verbs import ProjectVerbs

_TURN_MS: Final = 2 * 3_600_000
"""How long an assistant may work on one prompt. One that has no answer by then never got one."""
_MOST_RECENT: Final = 16
"""Sessions that are looked at."""
HOOK_KEY: Final = "hook:"
"""How the client keys begin of what hooks report."""


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

        return await self._store.trip(read)

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
                if (session.project or PERSONAL) != self._project or session.updated_at < since_ms or not newest:
                    continue
                [last] = await view.conversations.messages(session, first_seq=newest, last_seq=newest)
                if last.role is Role.USER and (last.client_key or "").startswith(HOOK_KEY):
                    found.append(session)
            return found

        return await self._store.trip(read)
