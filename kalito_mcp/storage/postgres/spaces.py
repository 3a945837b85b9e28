"""Statements on spaces. Their tables have no policy: they are read to know whose memories somebody may read."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from kalito_mcp.domain.spaces import Membership
from kalito_mcp.storage import spaces
from kalito_mcp.storage.spaces import COPY, SELECT_SPACE

if TYPE_CHECKING:
    from kalito_mcp.storage.postgres.transactions import Transaction

SELECT_SPACE_LOCKED: Final = f"{SELECT_SPACE} FOR UPDATE"
SELECT_COPIES: Final = f"""
SELECT {COPY} FROM shared_copies WHERE member = :member AND source_id = ANY(:ids)
ORDER BY space, record_id
"""
SELECT_SHARED: Final = f"SELECT {COPY} FROM shared_copies WHERE space = :space AND record_id = ANY(:ids)"
DELETE_COPIES: Final = "DELETE FROM shared_copies WHERE space = :space AND record_id = ANY(:ids)"


class SpaceQueries(spaces.SpaceQueries):
    """`ports.spaces.SpaceReader`."""

    _transaction: "Transaction"

    async def _memberships(self, user: str) -> Sequence[Membership]:
        return () if self._transaction.is_in_no_space(user) else await super()._memberships(user)
