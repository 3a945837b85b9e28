"""What is known of the person, of a project and in their spaces: the one source of contexts and of the profile. Reads
only."""

from collections.abc import Sequence
from dataclasses import replace

from kalito_mcp.domain.known import KnownRecord
from kalito_mcp.domain.records import PIN_IMPORTANCE
from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.spaces import seen_in_spaces
from kalito_mcp.ports.store import ReadView


async def known_records(
    view: ReadView, scope: Scope, *, limit: int, include_internal: bool = False
) -> Sequence[KnownRecord]:
    """The lasting pins and notes of the scope's agent, the person's and its project's, and those of the spaces that the
    person is a member of, most important first: at most `limit` of their own, and as many of all spaces. None of those
    counts for more than a pin, so that nobody else's hide their own."""
    of_spaces: list[KnownRecord] = []
    for member, shared in seen_in_spaces(scope, await view.spaces.memberships(scope.owner)):
        of_space = await view.records.known(shared, limit=limit, include_internal=include_internal)
        of_spaces += [
            replace(one, space=member.space.name, importance=min(one.importance, PIN_IMPORTANCE)) for one in of_space
        ]
    known = await view.records.known(scope, limit=limit, include_internal=include_internal)
    most_important = sorted(of_spaces, key=lambda one: -one.importance)[:limit]
    return sorted([*known, *most_important], key=lambda one: -one.importance)
