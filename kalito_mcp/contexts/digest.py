"""Open items and results of the latest conversations. Reads only."""

from collections.abc import Sequence
from itertools import groupby

from kalito_mcp.domain.kinds import Kind
from kalito_mcp.domain.known import KnownRecord
from kalito_mcp.domain.scope import Scope
from kalito_mcp.pins.repeats import without_repeats
from kalito_mcp.ports.store import ReadView
from kalito_mcp.safety.trust import is_withheld


async def read_digest(view: ReadView, scope: Scope, since: int, *, without: str, most: int) -> Sequence[KnownRecord]:
    """Open items and results at the end of the conversations since then, at most this many: the latest conversation
    first, and open items first in each. Leaves out the session `without`."""
    found = [
        one
        for one in await view.records.left_open(scope, limit=2 * most)
        if one.created_at >= since and one.session_id != without and not is_withheld(one.origin, one.text)
    ]
    of_each = [list(of_one) for _, of_one in groupby(found, key=lambda one: one.session_id)]
    in_order = [one for of_one in of_each for one in sorted(of_one, key=lambda one: one.kind is not Kind.OPEN)]
    return without_repeats(in_order, (), most=most)
