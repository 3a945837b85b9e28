"""The people who share a database, for whoever runs it."""

from collections.abc import Sequence
from typing import Final

from kalito_mcp.domain.access import Token
from kalito_mcp.domain.arguments import checks_arguments
from kalito_mcp.domain.people import OwnerCounts, Person
from kalito_mcp.domain.spaces import Membership, space_of
from kalito_mcp.memory.part import Part
from kalito_mcp.ports.store import ReadView

_MOST_TOKENS: Final = 10_000
"""That are looked at, of one person."""


@checks_arguments
class People(Part):
    """All people with a memory or a key in the database. Raises AccessDenied for a memory that is limited itself."""

    async def all(self) -> Sequence[Person]:
        """Every person, by name. Spaces are not among them."""
        self.place.limits.check_none("the people of a database")
        now_ms = self.place.clock.now_ms()

        async def read(view: ReadView) -> list[Person]:
            return [
                _person(
                    one,
                    await view.access.tokens(one.owner, limit=_MOST_TOKENS),
                    await view.spaces.memberships(one.owner),
                    now_ms,
                )
                for one in await view.people.owners()
                if space_of(one.owner) is None
            ]

        return await self.place.store.read(read)


def _person(counts: OwnerCounts, tokens: Sequence[Token], memberships: Sequence[Membership], now_ms: int) -> Person:
    valid = {
        one.principal.id
        for one in tokens
        if one.revoked_at is None and not one.is_expired(now_ms) and not one.is_for_page
    }
    moments = [one.last_used_at for one in tokens if one.last_used_at is not None]
    if counts.written_at is not None:
        moments.append(counts.written_at)
    return Person(
        counts.owner, counts.sessions, counts.records, len(valid), max(moments, default=None), tuple(memberships)
    )
