"""The people who share a database, for the operator of the server."""

from collections.abc import Sequence
from typing import Final

from kalito_mcp.domain.access import Token
from kalito_mcp.domain.arguments import checks_arguments
from kalito_mcp.domain.people import ErasedPerson, OwnerCounts, Person
from kalito_mcp.domain.spaces import Membership, space_of
from kalito_mcp.memory.part import Part
from kalito_mcp.ports.store import ReadView
from kalito_mcp.upkeep.store_layers import no_new_words

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

    async def erase(self, name: str) -> ErasedPerson:
        """Erase a person for good: their memory with all that was made of it, their keys and consents, memberships in
        spaces with the copies of their records there, and their files on this machine. The report says what went, and
        where something of them still is. It takes seconds for a large memory. An interrupted call is finished by the
        next one.

        Raises:
            NotFound: nobody is called so. InvalidInput: it is a space.
            StorageFull, StorageBusy: something is left; call it again.
        """
        self.place.limits.check_none("erasing a person")
        with no_new_words():
            return await self._services.people.erase(name)


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
