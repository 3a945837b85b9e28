"""What is known of the person, of a project and in their spaces: the one source of contexts and of the profile. Reads
only."""

from collections.abc import Iterable, Sequence

from kalito_mcp.domain.known import KnownRecord
from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.spaces import seen_in_spaces
from kalito_mcp.ports.store import ReadView


async def known_records(
    view: ReadView, scope: Scope, *, limit: int, include_internal: bool = False
) -> Sequence[KnownRecord]:
    """The lasting pins and notes of the scope's agent, the person's and its project's, most important first: at most
    `limit`. Then as many of all spaces that the person is a member of, in turn of those who shared them: nobody else's
    hide their own, and nobody's those of another."""
    own = await view.records.known(scope, limit=limit, include_internal=include_internal)
    shared: list[KnownRecord] = []
    for _, of_space in seen_in_spaces(scope, await view.spaces.memberships(scope.owner)):
        shared += await view.records.known(of_space, limit=limit, include_internal=include_internal)
    return [*own, *in_turn(shared)[:limit]]


def in_turn(shared: Iterable[KnownRecord]) -> list[KnownRecord]:
    """The first of each who shared in a space, then the second of each; the shorter ones of a turn first, so that a
    long one takes no room from the others."""
    turns: dict[tuple[str | None, str | None], int] = {}
    placed: list[tuple[int, int, KnownRecord]] = []
    for one in shared:
        turn = turns[one.space, one.shared_by] = turns.get((one.space, one.shared_by), 0) + 1
        placed.append((turn, one.tokens, one))
    return [one for _, _, one in sorted(placed, key=lambda of_turn: of_turn[:2])]
