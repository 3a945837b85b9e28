"""Conversations with what came of them, for a person who looks through them. Implements `ports.timeline`."""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import islice
from typing import Final

from kalito_mcp.domain.kinds import Kind
from kalito_mcp.domain.known import KnownRecord
from kalito_mcp.domain.records import Reach, RecordType
from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.sessions import Session, SessionCursor
from kalito_mcp.ports.timeline import BegunSession
from kalito_mcp.storage.memory.records import Records
from kalito_mcp.storage.memory.sessions import Sessions
from kalito_mcp.storage.memory.state import StoredRecord, Tables, is_within, reads

_RECENT_PINS: Final = 1_000


class Timeline(Tables):
    """`ports.timeline.TimelineReader`."""

    async def begun(self, scope: Scope) -> BegunSession | None:
        found = self._state.session(Scope(scope.owner, session=scope.session, limits=scope.limits))
        return None if found is None or self._is_erased(found) else self._begun(found)

    async def sessions(
        self,
        scope: Scope,
        *,
        client: str | None = None,
        begun_until: int | None = None,
        before: SessionCursor | None = None,
        limit: int,
    ) -> Sequence[BegunSession]:
        every = len(self._state.sessions)
        listed = await Sessions(self._state).list_recent(scope, limit=every, before=before)
        shown = [self._begun(one) for one in listed if not self._is_erased(one)]
        return [
            one
            for one in shown
            if client in (None, one.client) and (begun_until is None or _begun_at(one.session) <= begun_until)
        ][:limit]

    async def clients(self, scope: Scope, *, among: int) -> Sequence[str]:
        newest = await Sessions(self._state).list_recent(scope, limit=among)
        return sorted({client for one in newest if (client := self._begun(one).client) is not None})

    async def notes(self, scope: Scope, session_ids: Sequence[str], *, limit: int) -> Sequence[KnownRecord]:
        records, found = Records(self._state), []
        for session_id in session_ids:
            session = self._state.session(Scope(scope.owner, session=session_id, limits=scope.limits))
            if session is None:
                continue
            summaries = [one for one in self._state.of_session(session, RecordType.SUMMARY) if not one.is_covered]
            pins = sorted(
                (one for one in reversed(self._state.of_session(session, RecordType.PIN)) if _is_shown(one)),
                key=lambda one: (-one.importance, -one.created_at),
            )
            summaries.sort(key=lambda one: int(one.content["start_seq"]))
            stored = [one for one in (*summaries, *pins[:limit]) if _is_shown(one) and is_within(scope, one)]
            found += [records.known_record(scope, one) for one in records.standing(stored)]
        return found

    async def open_points(self, scope: Scope, *, limit: int) -> Sequence[KnownRecord]:
        records = Records(self._state)
        newest = sorted(self._state.records.values(), key=lambda one: -one.key)
        pins = islice(
            (
                one
                for one in newest
                if one.type is RecordType.PIN
                and not one.is_deleted
                and one.owner == scope.owner
                and scope.agent in (None, one.agent_id)
            ),
            _RECENT_PINS,
        )
        left = [
            one
            for one in pins
            if one.reach is Reach.SESSION
            and not one.is_internal
            and one.content.get("kind") == Kind.OPEN
            and _is_in(scope, one)
        ]
        at_the_end = [one for one in records.standing(left) if one.created_at >= records.last_messages_from(one)]
        at_the_end.sort(key=lambda one: -one.created_at)
        return [records.known_record(scope, one) for one in at_the_end[:limit]]

    async def messages_between(self, scope: Scope, moments: Sequence[int]) -> Sequence[int]:
        counts = [0] * (len(moments) - 1)
        for one in self._state.records.values():
            is_meant = one.type is RecordType.MESSAGE and not one.is_deleted and one.purged_at is None
            if is_meant and moments[0] <= one.created_at < moments[-1] and _is_in(scope, one):
                counts[bisect_right(moments, one.created_at) - 1] += 1
        return counts

    def _begun(self, session: Session) -> BegunSession:
        messages = self._state.of_session(session, RecordType.MESSAGE)
        return BegunSession(session, messages[0].client if messages else None)

    def _is_erased(self, session: Session) -> bool:
        messages = self._state.of_session(session, RecordType.MESSAGE)
        return bool(messages) and session.pin_count == 0 and all(one.purged_at is not None for one in messages)


def _is_in(scope: Scope, stored: StoredRecord) -> bool:
    is_of_agent = scope.agent in (None, stored.agent_id)
    return is_of_agent and is_within(scope, stored) and reads(scope, stored.project)


def _begun_at(session: Session) -> int:
    return session.created_at if session.oldest_message_at is None else session.oldest_message_at


def _is_shown(stored: StoredRecord) -> bool:
    return not (stored.is_deleted or stored.purged_at is not None or stored.is_internal)
