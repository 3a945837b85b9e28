"""What the memory gave back, for somebody who wants to know why the assistant said something."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from kalito_mcp.domain.arguments import checks_arguments
from kalito_mcp.domain.given import OF_HOOKS, GivenEntry, GivenKind
from kalito_mcp.domain.memory_records import MemoryRecord
from kalito_mcp.domain.records import MessageWithImportance, Role, full_record_id
from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.spaces import seen_in_spaces
from kalito_mcp.domain.zone import Zone
from kalito_mcp.errors import ConfigurationError, InvalidInput, NotFound
from kalito_mcp.memory.part import Part
from kalito_mcp.memory.sharing import labelled
from kalito_mcp.ports.store import ReadView

_MOST_LISTED: Final = 200
_ASKED_WITHIN: Final = 40
"""Messages that are looked through for the user's."""
_RECORDED_WITHIN_MS: Final = 60_000
"""How long after an addition to a prompt the prompt is recorded, at most."""


class DayTokens(NamedTuple):
    """The tokens of one kind that were given on a day, such as 2026-11-28, and how often it was given."""

    day: str
    kind: GivenKind
    tokens: int
    times: int


@checks_arguments
class Given(Part):
    """Contexts, additions of hooks to prompts, and searches, with the ids of what was in them and what was left out.

    Kept are the newest 2,000 of an owner, for 30 days at most. What this process gave is there at once, what another
    process gave some seconds later. What was given within the limits of this memory, and in its project or personal,
    is found here.
    """

    async def recent(
        self, limit: int = 50, before: int | None = None, session_id: str | None = None
    ) -> Sequence[GivenEntry]:
        """The newest entries, or those before the entry of this id, newest first.

        Raises:
            InvalidInput: the limit is not from 1 to 200.
        """
        scope = await self._written(session_id)
        most = _checked(limit)
        return await self.place.store.read(lambda view: view.given.entries(scope, before=before, limit=most))

    async def with_record(self, record_id: str, limit: int = 50) -> Sequence[GivenEntry]:
        """The newest entries that gave this record.

        Raises:
            InvalidInput: the limit is not from 1 to 200.
        """
        scope, named, most = await self._written(), full_record_id(record_id), _checked(limit)
        return await self.place.store.read(lambda view: view.given.entries(scope, record_id=named, limit=most))

    async def get(self, entry_id: int) -> GivenEntry:
        """One entry.

        Raises:
            NotFound: no such entry here, or it is no longer kept.
        """
        scope = await self._written()
        found = await self.place.store.read(lambda view: view.given.entry(scope, entry_id))
        if found is None:
            raise NotFound(f"nothing that was given has the number {entry_id}, or it is no longer kept")
        return found

    async def asked(self, entry: GivenEntry) -> MessageWithImportance | None:
        """The user's message that the entry answered: the last one of its session before it. A prompt is recorded after
        what was added to it, so for that it is the next one. None if that is missing or forgotten."""
        if entry.session_id is None:
            return None
        session_id = entry.session_id

        async def read(view: ReadView) -> MessageWithImportance | None:
            session = await self.place.session_within(view, session_id)
            if session is None:
                return None
            newest = session.message_count
            at = entry.at
            said = await view.conversations.messages(session, first_seq=max(1, newest - _ASKED_WITHIN), last_seq=newest)
            by_user = [one for one in said if one.role is Role.USER and not one.is_hidden]
            if entry.kind in OF_HOOKS:
                following = (one for one in by_user if at <= one.created_at <= at + _RECORDED_WITHIN_MS)
                return next(following, None)
            return next((one for one in reversed(by_user) if one.created_at <= at), None)

        return await self.place.store.read(read)

    async def records(self, record_ids: Sequence[str]) -> Mapping[str, MemoryRecord | None]:
        """The records of these ids as they are now, forgotten or not, also those in the owner's spaces; None for one
        that is gone, or that is not within the limits."""
        scope = self.place.scope().anywhere()

        async def read(view: ReadView) -> Mapping[str, MemoryRecord | None]:
            places = [scope, *(of for _, of in seen_in_spaces(scope, await view.spaces.memberships(scope.owner)))]
            found: dict[str, MemoryRecord | None] = dict.fromkeys(record_ids)
            for record_id in found:
                for place in places:
                    if (record := await view.records.record(place, record_id)) is not None:
                        found[record_id] = labelled(place.owner, record)
                        break
            return found

        return await self.place.store.read(read)

    async def version(self) -> str:
        """A text that changes with whatever is recorded, given or switched off. It may change needlessly, and is only
        comparable within one process."""
        revision = await self.place.store.revision(self.place.owner)
        try:
            switch = hash(self.place.switch())
        except ConfigurationError:  # then nothing is remembered, which is one state
            switch = 0
        return f"{revision}.{self._services.answers.noted}.{switch:x}"

    async def tokens_by_day(self, zone: Zone | None = None) -> Sequence[DayTokens]:
        """The tokens of what is kept, by day and kind, oldest first. Days are days in the zone, or in the user's."""
        scope, of_user = await self._written(), zone or self._services.zone
        given = await self.place.store.read(lambda view: view.given.tokens(scope))
        sums: dict[tuple[int, GivenKind], tuple[int, int]] = {}
        for at, kind, tokens in given:
            place = of_user.day(at), kind
            total, times = sums.get(place, (0, 0))
            sums[place] = total + tokens, times + 1
        return [DayTokens(of_user.date(of_user.first_ms(day)), kind, *total) for (day, kind), total in sums.items()]

    async def _written(self, session_id: str | None = None) -> Scope:
        """The scope of a read, after all that this process gave is stored."""
        await self._services.answers.flush()
        return self.place.scope() if session_id is None else await self.place.of_session(session_id)


def _checked(limit: int) -> int:
    if not 1 <= limit <= _MOST_LISTED:
        raise InvalidInput(f"limit={limit} is outside 1 to {_MOST_LISTED}")
    return limit
