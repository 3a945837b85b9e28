"""What was forgotten or erased for good, in memory: a part of `ports.records`."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from kalito_mcp.domain.archive import hashed_text
from kalito_mcp.domain.records import RecordType
from kalito_mcp.domain.scope import DEFAULT_AGENT, NO_LIMITS, PERSONAL, Scope
from kalito_mcp.ports.records import ErasedText, ForgottenValue, Tombstone
from kalito_mcp.storage.memory.state import Tables, is_within


class ForgottenValues(Tables):
    """The tombstones of erased records, and the forgotten values. Both have hashes instead of words."""

    async def erased_texts(
        self, scope: Scope, record_type: RecordType, texts: Collection[str], client_keys: Collection[str] = ()
    ) -> Sequence[ErasedText]:
        by_hash, keys_by_hash = self._hashed(texts), self._hashed(client_keys)
        erased = [one for one in self._tombstones(scope) if one["text_hash"] in by_hash and one["type"] == record_type]
        return [
            ErasedText(
                *(by_hash[one["text_hash"]], one["number"] or 0, one["seq"] or 0),
                *(keys_by_hash.get(one["client_key_hash"]), one["created_at"], one["purged_at"]),
            )
            for one in sorted(erased, key=lambda one: (one["purged_at"], one["record_id"]))
        ]

    async def tombstone(self, scope: Scope, record_id: str) -> Tombstone | None:
        found = (one for one in self._tombstones(scope) if one["record_id"] == record_id)
        return next((Tombstone(record_id, one["purged_at"]) for one in found), None)

    async def erased(self, scope: Scope, record_ids: Sequence[str]) -> frozenset[str]:
        return frozenset(record_ids) & {place[1] for place in self._state.tombstones if place[0] == scope.owner}

    async def has_forgotten_values(self, owner: str) -> bool:
        return any(place[0] == owner for place in self._state.forgotten)

    async def forgotten_values(self, scope: Scope, keys: Collection[str]) -> Mapping[str, ForgottenValue]:
        found: dict[str, ForgottenValue] = {}
        for place, key in self._forgotten(scope, keys).items():
            one, other = self._state.forgotten[place], found.get(key, ForgottenValue(0, is_erased=False))
            is_erased = other.is_erased or bool(one["is_erased"])
            found[key] = ForgottenValue(max(one["forgotten_at"], other.forgotten_at), is_erased)
        return found

    def _forgotten(self, scope: Scope, keys: Collection[str]) -> dict[tuple[str, str, str | None, str], str]:
        """Where these keys are forgotten for the scope, each with the key."""
        by_hash, agent = self._hashed(keys), scope.agent or DEFAULT_AGENT
        project = None if scope.project == PERSONAL else scope.project
        theirs = [one for one in self._state.forgotten if one[:2] == (scope.owner, agent) and one[3] in by_hash]
        reached = [one for one in theirs if scope.limits.reaches(agent, one[2])]
        return {one: by_hash[one[3]] for one in reached if project is None or one[2] in (None, project)}

    def _hashed(self, texts: Collection[str]) -> dict[str, str]:
        return {hashed_text(self._state.secret, text): text for text in texts}

    def _tombstones(self, scope: Scope) -> Iterator[Mapping[str, Any]]:
        """The tombstones of the owner. Where an erased record was is known of messages and summaries alone, so within
        limits there are no others."""
        for (owner, record_id, _), one in self._state.tombstones.items():
            left = self._state.records.get(record_id)
            if owner == scope.owner and (scope.limits == NO_LIMITS or (left and is_within(scope, left))):
                yield one

    async def forget_values(self, scope: Scope, keys: Collection[str], *, now_ms: int, is_erased: bool = False) -> None:
        project = None if scope.project == PERSONAL else scope.project
        for value_hash in self._hashed(keys):
            place = (scope.owner, scope.agent or DEFAULT_AGENT, project, value_hash)
            known = self._state.forgotten.get(place) or {"key": self._state.next_key("forgotten"), "is_erased": 0}
            is_gone = int(is_erased or known["is_erased"])
            self._state.forgotten[place] = {"key": known["key"], "forgotten_at": now_ms, "is_erased": is_gone}

    async def bring_back_values(self, scope: Scope, keys: Collection[str]) -> None:
        for place in self._forgotten(scope, keys):
            del self._state.forgotten[place]
