"""What the memory gave back, in memory. Implements `ports.given`."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from kalito_mcp.domain.given import GivenEntry, GivenKind
from kalito_mcp.domain.scope import PERSONAL, Scope
from kalito_mcp.storage.memory.state import Tables


class GivenBack(Tables):
    """`ports.given.GivenWriter`."""

    async def entries(
        self, scope: Scope, *, before: int | None = None, record_id: str | None = None, limit: int
    ) -> Sequence[GivenEntry]:
        first = self._state.given.get((scope.owner, before or 0))
        if before is not None and first is None:
            return []
        newest = [
            one
            for one in self._of(scope)
            if (first is None or (one.at, one.id) < (first.at, first.id)) and record_id in (None, *one.record_ids)
        ]
        return newest[::-1][:limit]

    async def entry(self, scope: Scope, entry_id: int) -> GivenEntry | None:
        return next((one for one in self._of(scope) if one.id == entry_id), None)

    async def tokens(self, scope: Scope) -> Sequence[tuple[int, GivenKind, int]]:
        return [(one.at, one.kind, one.tokens) for one in self._of(scope)]

    async def add(self, owner: str, entries: Sequence[GivenEntry], *, since_ms: int, most: int) -> None:
        for one in entries:
            parts = [
                replace(part, revisions=tuple(self._revision(record_id, one.at) for record_id in part.ids))
                for part in one.parts
            ]
            key = self._state.next_key("given")
            self._state.given[owner, key] = replace(one, parts=tuple(parts), id=key)
        theirs = sorted((entry.at, key) for (of, key), entry in self._state.given.items() if of == owner)
        for place, (at, key) in enumerate(reversed(theirs)):
            if place >= most or at < since_ms:
                del self._state.given[owner, key]

    def _of(self, scope: Scope) -> Iterator[GivenEntry]:
        """The entries of the scope, oldest first."""
        of_owner = [one for (owner, _), one in self._state.given.items() if owner == scope.owner]
        for one in sorted(of_owner, key=lambda one: (one.at, one.id)):
            session = self._state.sessions.get((scope.owner, one.session_id or ""))
            project = one.project if session is None else session.project or PERSONAL
            limits = scope.limits
            if (
                scope.agent in (None, one.agent)
                and limits.agent in (None, one.agent)
                and scope.session in (None, one.session_id)
                and (scope.project is None or project in (scope.project, PERSONAL))
                and (limits.project is None or {one.project, project} <= {limits.project, PERSONAL})
            ):
                yield replace(one, project=project)

    def _revision(self, record_id: str, at: int) -> int | None:
        stored = self._state.records.get(record_id)
        later = sum(edit.edited_at > at for edit in self._state.edits.get(record_id, ()))
        return None if stored is None else stored.revision - later
