"""Whose memories there are, in memory. Implements `ports.people`."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from kalito_mcp.domain.people import OwnerCounts
from kalito_mcp.domain.sessions import SessionState
from kalito_mcp.storage.memory.state import Tables

_ACCESS: Final = {"access_tokens", "oauth_codes", "oauth_grants", "passphrases"}


class People(Tables):
    """`ports.people.PeopleWriter`."""

    async def names(self) -> Sequence[str]:
        return sorted({*(whose for _, _, _, whose in self._rows()), *(user for _, user in self._state.space_members)})

    async def owners(self) -> Sequence[OwnerCounts]:
        sessions = list(self._state.sessions.values())
        shown = Counter(one.owner for one in self._state.records.values() if not one.is_deleted)
        return [
            OwnerCounts(
                owner,
                sum(one.owner == owner for one in sessions),
                shown[owner],
                max((one.updated_at for one in sessions if one.owner == owner), default=None),
            )
            for owner in await self.names()
        ]

    async def erase(self, owner: str, *, most: int) -> Mapping[str, int]:
        state, erased = self._state, Counter[str]()
        for key, one in state.sessions.items():
            if one.owner == owner:
                state.sessions[key] = replace(one, state=SessionState.FINALIZED)
        for name, table, key, whose in list(self._rows()):
            if whose == owner and (name in _ACCESS or erased.total() < most):
                if name == "records":
                    state.remove(state.records[key])
                else:
                    del table[key]
                erased[name] += 1
        if erased:
            state.owed_erasures[state.next_key("erasures")] = frozenset()
        return erased

    async def drop_empty_projects(self, owner: str) -> None:
        state = self._state
        used = {one.project for one in state.sessions.values() if one.owner == owner}
        used |= {one.project for one in state.records.values() if one.owner == owner}
        for place in [one for one in state.projects if one[0] == owner and one[1] not in used]:
            del state.projects[place]
        for value in [one for one in state.forgotten if one[0] == owner and one[2] not in {None, *used}]:
            del state.forgotten[value]

    def _rows(self) -> Iterator[tuple[str, dict[Any, Any], Any, str]]:
        """Each row that is somebody's, in the order in which they are erased: table, rows, key, owner."""
        state = self._state
        of_records = {one.id: one.owner for one in state.records.values()}
        of_tables: list[tuple[str, dict[Any, Any], Any]] = [
            ("access_tokens", state.tokens, lambda _, row: row.owner),
            ("oauth_codes", state.codes, lambda _, row: row.grant.owner),
            ("oauth_grants", state.grants, lambda _, row: row.owner),
            ("passphrases", state.passphrases, lambda key, _: key),
            ("memory_edits", state.edits, lambda key, _: of_records[key]),
            ("feedback", state.feedback, lambda key, _: of_records[key[0]]),
            ("records", state.records, lambda _, row: row.owner),
            *(
                (name, table, lambda key, _: key[0])
                for name, table in (
                    ("graphs", state.graphs),
                    ("forgotten_values", state.forgotten),
                    ("tombstones", state.tombstones),
                    ("imports", state.imports),
                    ("given", state.given),
                    ("sessions", state.sessions),
                    ("projects", state.projects),
                    ("agents", state.agents),
                )
            ),
        ]
        for name, table, owner_of in of_tables:
            for key, row in table.items():
                yield name, table, key, owner_of(key, row)
