"""Stores sessions and their counters."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from kalito_mcp.domain.scope import PERSONAL, Scope
from kalito_mcp.domain.sessions import Session, SessionCursor, SessionState
from kalito_mcp.domain.sizes import PartSize
from kalito_mcp.storage.intact_rows import intact_rows
from kalito_mcp.storage.numbered import NumberedSession, key_of
from kalito_mcp.storage.queries import Queries, places_of
from kalito_mcp.text.titles import FIRST_MESSAGES, READ_CHARS

_BEYOND_ALL: Final = (1 << 63) - 1
"""A key that no session reaches."""
_STATE_PLACE: Final = 4
NEWEST: Final = SessionCursor((1 << 63) - 1, "")
IS_SHOWN: Final = "(s.message_count > s.hidden_count OR s.message_count = 0 OR s.pin_count > 0)"
"""Of a session `s`: not all of it is forgotten."""


class SessionQueries(Queries):
    """`ports.sessions.SessionReader`."""

    async def get(self, scope: Scope) -> Session | None:
        return next(iter(await self._sessions(self._sql.sessions.SELECT_SESSION, scope)), None)

    async def named(self, scope: Scope, session_ids: Sequence[str]) -> Mapping[str, Session]:
        found = await self._sessions(self._sql.sessions.SELECT_SESSIONS_NAMED, scope, ids=list(session_ids))
        return {one.id: one for one in found}

    async def list_recent(
        self,
        scope: Scope,
        *,
        prefix: str = "",
        limit: int,
        before: SessionCursor | None = None,
        has_forgotten: bool = True,
    ) -> Sequence[Session]:
        place = before or NEWEST
        bounds = {
            "limit": limit,
            "said_at": place.said_at,
            "before": place.session_id,
            "has_forgotten": has_forgotten,
        }
        return await self._sessions(self._sql.sessions.SELECT_RECENT_SESSIONS, scope, prefix=prefix, **bounds)

    async def list_begun(
        self, scope: Scope, *, before: Session | None, limit: int, has_forgotten: bool = True
    ) -> Sequence[Session]:
        bounds = {
            "before_key": _BEYOND_ALL if before is None else key_of(before),
            "limit": limit,
            "has_forgotten": has_forgotten,
        }
        return await self._sessions(self._sql.sessions.SELECT_SESSIONS_BEGUN, scope, **bounds)

    async def first_texts(self, scope: Scope, session_ids: Sequence[str]) -> Mapping[str, Sequence[str]]:
        found: dict[str, list[str]] = {}
        parts = {"ids": list(session_ids), "messages": FIRST_MESSAGES, "chars": READ_CHARS}
        for session_id, text in await self._all(self._sql.sessions.SELECT_FIRST_TEXTS, **parts, **places_of(scope)):
            found.setdefault(session_id, []).append(text)
        return found

    async def census(self, scope: Scope) -> tuple[float, ...]:
        [counted] = await self._all(self._sql.sessions.SELECT_CENSUS, **places_of(scope))
        return tuple(counted)

    async def agents(self, scope: Scope, *, limit: int) -> Sequence[str]:
        found = await self._all(self._sql.sessions.SELECT_AGENTS, limit=limit, **places_of(scope))
        return [agent for [agent] in found]

    async def projects(self, scope: Scope, *, limit: int) -> Sequence[tuple[str, int]]:
        found = await self._all(self._sql.sessions.SELECT_PROJECTS, limit=limit, **places_of(scope))
        return [(project, sessions) for project, sessions in found]

    async def sizes(self, scope: Scope) -> Sequence[PartSize]:
        of_records = await self._all(self._sql.sessions.SELECT_RECORD_SIZES, **places_of(scope))
        records = {(agent, project): count for agent, project, count in of_records}
        found = [
            PartSize(agent, project, sessions, messages, records.pop((agent, project), 0), newest_at)
            for agent, project, sessions, messages, newest_at in await self._all(
                self._sql.sessions.SELECT_SESSION_SIZES, **places_of(scope)
            )
        ]
        return [*found, *(PartSize(agent, project, records=count) for (agent, project), count in records.items())]

    async def totals(self, scope: Scope) -> dict[str, int]:
        [of_sessions] = await self._all(self._sql.sessions.SELECT_TOTALS, **places_of(scope))
        [(*others, lasting)] = await self._all(self._sql.sessions.SELECT_OTHER_TOTALS, **places_of(scope))
        names = ("sessions", "messages", "pins", "summaries", "notes", "tasks", "documents")
        counts = {name: int(count) for name, count in zip(names, (*of_sessions, *others), strict=True)}
        # A note that is known beyond its session is a pin, too.
        return {**counts, "pins": counts["pins"] + int(lasting)}

    async def _sessions(self, statement: str, scope: Scope, **parameters: Any) -> Sequence[Session]:
        return list(sessions_of(await self._all(statement, **places_of(scope), **parameters)))


class SessionStatements(SessionQueries):
    """`ports.sessions.SessionWriter`."""

    async def create(self, scope: Scope, *, now_ms: int) -> Session:
        await self._all(self._sql.session_changes.INSERT_AGENT, **places_of(scope))
        await self._add_project(scope.owner, scope.project)
        await self._all(self._sql.session_changes.INSERT_SESSION, **places_of(scope), now_ms=now_ms)
        created = await self.get(scope)
        assert created is not None  # noqa: S101 - it was written in this transaction
        return created

    async def move(self, session: Session, project: str | None) -> None:
        await self._add_project(session.owner, project)
        parameters = {"owner": session.owner, "project": project, "key": key_of(session)}
        await self._all(self._sql.session_changes.UPDATE_PROJECT_OF_SESSION, **parameters)
        await self._all(self._sql.session_changes.UPDATE_PROJECT_OF_RECORDS, **parameters)

    async def set_state(self, session: Session, state: SessionState, *, now_ms: int) -> None:
        await self._set(self._sql.session_changes.UPDATE_STATE, session, state=str(state), now_ms=now_ms)

    async def set_pinned_seq(self, session: Session, seq: int) -> bool:
        names = {"owner": session.owner, "key": key_of(session)}
        return bool(
            await self._all(self._sql.session_changes.UPDATE_PINNED_SEQ, **names, seq=seq, searched=session.pinned_seq)
        )

    async def set_observed_seq(self, session: Session, seq: int) -> None:
        await self._set(self._sql.session_changes.UPDATE_OBSERVED_SEQ, session, seq=seq)

    async def set_stage(self, session: Session, stage: str | None) -> None:
        await self._set(self._sql.session_changes.UPDATE_STAGE, session, stage=stage)

    async def _set(self, statement: str, session: Session, **values: Any) -> None:
        await self._all(statement, owner=session.owner, key=key_of(session), **values)

    async def _add_project(self, owner: str, project: str | None) -> None:
        if project not in (None, PERSONAL):
            await self._all(self._sql.session_changes.INSERT_PROJECT, owner=owner, project=project)


def sessions_of(rows: Iterable[Any]) -> Iterator[Session]:
    """The sessions of rows with the key, then the fields of `Session` in order."""
    for row in rows:
        fields = list(row)
        with intact_rows():
            fields[_STATE_PLACE] = SessionState(fields[_STATE_PLACE])
        fields[-1] = bool(fields[-1])
        key, *others = fields
        yield NumberedSession(*others, key=key)
