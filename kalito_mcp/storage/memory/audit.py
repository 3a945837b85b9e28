"""The audit log of a store in memory, and what a transaction changed. Implements `ports.audit`."""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeVar

from kalito_mcp.domain.audit import MOST_IDS, AuditEntry, AuditHead, Chain, Change, NewEntry, columns_of, next_entry
from kalito_mcp.storage.memory.graphs import STEPS
from kalito_mcp.storage.memory.state import State, StoredRecord, Tables

T = TypeVar("T")
_Noticed = Callable[[Any, Any], tuple[tuple[str, ...], Any]]
NOTICED: Final[Mapping[str, _Noticed]] = {
    "records": lambda record_id, one: ((record_id,), replace(one, usage_count=0, last_used=None)),
    "sessions": lambda place, one: (place, (one.agent, one.state, one.project, one.stage)),
    "projects": lambda place, key: ((f"project_{key}",), place),
    "graphs": lambda _, one: ((f"graph_{one.state.revision // STEPS}",), one.state),
    "forgotten": lambda place, one: ((f"forgotten_{one['key']}",), (place, one)),
    "tokens": lambda _, one: ((one.id,), replace(one, last_used_at=None)),
    "grants": lambda _, one: ((one.id,), replace(one, last_used_at=None)),
    "passphrases": lambda owner, one: ((f"passphrase of {owner}",), one),
    "spaces": lambda _, one: ((one.owner,), one),
    "space_members": lambda place, one: (("/".join(place),), one.role),
}
"""By table: what a row is called, and what of it counts when it changes. Counters, marks and use do not."""


class Audit(Tables):
    """`ports.audit.AuditWriter`."""

    async def head(self) -> AuditHead:
        newest = next(reversed(self._state.audit_log.values()), None)
        return AuditHead() if newest is None else AuditHead(newest.number, newest.hash)

    async def entries(
        self, owner: str | None, *, since_ms: int = 0, before: int | None = None, limit: int
    ) -> Sequence[AuditEntry]:
        return [
            one
            for one in reversed(self._state.audit_log.values())
            if owner in (None, one.said.owner) and one.said.at >= since_ms and (before is None or one.number < before)
        ][:limit]

    async def count(self, owner: str | None, *, since_ms: int = 0) -> int:
        return len(await self.entries(owner, since_ms=since_ms, limit=len(self._state.audit_log)))

    async def check(self, noted: AuditHead | None) -> tuple[str | None, AuditHead]:
        chain = Chain(noted)
        for one in self._state.audit_log.values():
            if (fault := chain.fault(one.number, [*columns_of(one.said).values()], one.hash)) is not None:
                return fault, chain.last
        return chain.fault_at_end(await self.head()), chain.last

    async def changes_of(self, work: Callable[[], Coroutine[Any, Any, T]]) -> tuple[T, Sequence[Change]]:
        before = _noticed(self._state)
        result = await work()
        after = _noticed(self._state)
        found: dict[str, list[str]] = {}
        for named in {**before, **after}:
            if (what := _what(before.get(named), after.get(named))) is not None:
                found.setdefault(what, []).append(named[-1])
        return result, [Change(what, len(ids), tuple(ids[:MOST_IDS])) for what, ids in sorted(found.items())]

    async def add(self, entry: NewEntry) -> AuditEntry:
        made = next_entry(await self.head(), entry)
        self._state.audit_log[made.number] = made
        return made


def _noticed(state: State) -> dict[tuple[str, ...], Any]:
    return dict(notice(key, row) for table, notice in NOTICED.items() for key, row in getattr(state, table).items())


def _what(old: Any, new: Any) -> str | None:
    """What was done to a row; None if nothing was."""
    if old == new:
        return None
    if old is None or new is None:
        return "added" if old is None else "erased"
    if isinstance(old, StoredRecord):
        if old.purged_at != new.purged_at:
            return "erased"
        if old.is_deleted != new.is_deleted:
            return "forgotten" if new.is_deleted else "restored"
    return "revoked" if getattr(new, "revoked_at", None) != getattr(old, "revoked_at", None) else "changed"
