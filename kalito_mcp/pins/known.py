"""What is known of the person and of a project: the one source of contexts and of the profile. Reads only."""

from collections.abc import Sequence

from kalito_mcp.domain.known import KnownRecord
from kalito_mcp.domain.scope import Scope
from kalito_mcp.ports.store import ReadView


async def known_records(
    view: ReadView, scope: Scope, *, limit: int, include_internal: bool = False
) -> Sequence[KnownRecord]:
    """The lasting pins and notes of the scope's agent: the person's and its project's, most important first."""
    return await view.records.known(scope, limit=limit, include_internal=include_internal)
