"""Answers for hooks: additions to a prompt, and the conversation that a call belongs to."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from typing import Final

from kalito_mcp.contexts.injector import Injection, InjectionPolicy
from kalito_mcp.domain.arguments import checks_arguments
from kalito_mcp.domain.given import GivenKind
from kalito_mcp.domain.records import (
    HOOK_KEY,
    NewMessage,
    Role,
)
from kalito_mcp.domain.scope import PERSONAL
from kalito_mcp.domain.search import SeenPart
from kalito_mcp.domain.sessions import Session, SessionState
from kalito_mcp.memory.answers import Answers
from kalito_mcp.memory.part import Part, Services
from kalito_mcp.memory.place import Place
from kalito_mcp.ports.store import ReadView
from kalito_mcp.records.same_turn import Incoming, Way, recognised, way_of, words_of
from kalito_mcp.safety.redaction import redact

_TURN_MS: Final = 2 * 3_600_000
"""How long an assistant may work on one prompt. One that has no answer by then never got one."""
_MOST_RECENT: Final = 16
"""Sessions that are looked at."""
_NEWEST: Final = 40
"""Messages of each of these."""


@checks_arguments
class Hooks(Part):
    """Additions of hooks to a prompt, and the conversation that a call belongs to."""

    def __init__(self, place: Place, services: Services) -> None:
        super().__init__(place, services)
        self._answers = Answers(place, services)

    @property
    def policy(self) -> InjectionPolicy:
        """The policy for additions of hooks to prompts."""
        return self._services.injector.policy

    async def warm_up(self) -> None:
        """Load the embedder's model, if there is one, so that no prompt waits for it."""
        await self._services.searcher.warm_up(self.place.scope())

    async def inject(
        self,
        session_id: str,
        prompt: str,
        *,
        seen_after: Mapping[str, int] | None = None,
        shown: Set[str] = frozenset(),
        client: str | None = None,
    ) -> Injection:
        """What a hook puts into a prompt of the session: what is remembered of what the prompt is about, or nothing.
        What is in it counts as used, and is noted as given to the host `client`.

        `shown` are the records that were put into it before. Nor is anything in it that the assistant still sees: by
        session, what was said after the message of this number; without it, all of this session.

        Raises:
            InvalidInput: the id of the session is not acceptable.
        """
        meant = (await self.place.of_session(session_id)).session or session_id
        seen = await self.seen_parts({session_id: 0} if seen_after is None else seen_after)
        found = await self._services.injector.inject(
            self.place.scope(), prompt, session_id=meant, seen=seen, shown=shown
        )
        budget = self.policy.max_tokens
        self._answers.injection(GivenKind.PROMPT, found, session_id=meant, client=client, budget=budget)
        return found

    async def inject_known(
        self,
        session_id: str | None = None,
        *,
        seen_after: Mapping[str, int] | None = None,
        client: str | None = None,
        is_seen: bool = False,
    ) -> Injection:
        """What a hook puts into the first prompt of a session: how the latest conversations ended, and what is known of
        the person and of the project. Nothing, if nothing is, or if it is switched off. It counts as used, and is noted
        as given to the host `client`, unless the assistant has it from before: then it `is_seen`.

        What was said in a session of which the assistant sees all is left out; `seen_after` is as in `inject`. The
        first prompt that is answered in time may be a later one.
        """
        budget = self.policy.known_tokens
        if not self.policy.enabled or not budget:
            return Injection()
        seen = await self.seen_parts(seen_after or {})
        context = await self._manager.build_context(None, budget, seen=seen)
        whole = {one.session_id for one in seen if one.after_seq == 0}
        context = replace(context, known=tuple(one for one in context.known if one.session_id not in whole))
        found = self._services.injector.of_start(self.place.scope(), context)
        if not is_seen:
            self._answers.injection(GivenKind.START, found, session_id=session_id, client=client, budget=budget)
        return found

    def take_back(self, session_id: str, record_ids: Set[str]) -> None:
        """Nobody waited for what these records were put in for this session: it does not count as given or used, unless
        that is stored already."""
        names = (session_id, self.place.limits.own_session(session_id))
        self._services.answers.take_back(self.place.owner, names, record_ids)

    async def seen_parts(self, seen_after: Mapping[str, int]) -> frozenset[SeenPart]:
        """What is seen of these sessions, by the seq of the message after which all is seen."""
        scopes = [await self.place.of_session(one) for one in seen_after]
        parts = zip(scopes, seen_after.values(), strict=True)
        return frozenset(SeenPart(scope.session or "", after) for scope, after in parts)

    async def conversation_of(self, messages: Sequence[NewMessage]) -> str | None:
        """The session of this project in which hooks have recorded words of these messages, of the same turn; None if
        there is no such session, or for a memory of all projects."""
        if self.place.project is None:
            return None
        scope, since_ms = self.place.scope(), self.place.clock.now_ms() - _TURN_MS
        call = [Incoming(one.role, words_of(redact(one.text).text), one.client_key, Way.TOOL) for one in messages]

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

        return await self.place.store.read(read)

    def _is_live(self, session: Session, since_ms: int) -> bool:
        is_open = session.state is SessionState.OPEN and session.message_count > 0
        return is_open and session.updated_at >= since_ms and (session.project or PERSONAL) == self.place.project

    async def unanswered(self) -> list[Session]:
        """The sessions of this project whose newest message is a prompt that a hook has reported and that has no answer
        yet, newest first. Of a memory of all projects, none."""
        if self.place.project is None:
            return []
        scope, since_ms = self.place.scope(), self.place.clock.now_ms() - _TURN_MS

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

        return await self.place.store.read(read)
