"""Which records another one names in its field `supersedes`. Derived from the records.

A record that is forgotten supersedes nothing until it is restored.
"""

from collections.abc import Sequence
from typing import Final

from kalito_mcp.storage.numbered import message_key
from kalito_mcp.storage.queries import SqlTransaction

NOT_SUPERSEDED: Final = """NOT EXISTS (
    SELECT 1 FROM superseded_records s JOIN records n ON n.owner_key = :owner AND n.key = s.by_key
    WHERE s.owner_key = :owner AND s.record_key = r.key AND n.deleted_at IS NULL
)"""
"""The condition that no other record supersedes the record `r`."""

# A message has its number in its id, and no id of its own in its row.
INSERT_SUPERSEDED: Final = """
WITH named AS (
    SELECT r.key FROM records n JOIN records r ON r.owner_key = :owner AND r.agent_key = n.agent_key
    WHERE n.owner_key = :owner AND n.key = :key AND r.key <> :key AND r.purged_at IS NULL
        AND (r.id = ANY(:ids) OR (r.key = ANY(:numbers) AND r.type = 'message'))
), dropped AS (
    DELETE FROM superseded_records
    WHERE owner_key = :owner AND by_key = :key AND record_key NOT IN (SELECT key FROM named)
)
INSERT INTO superseded_records (owner_key, by_key, record_key)
SELECT :owner, :key, key FROM named ON CONFLICT DO NOTHING
"""


async def supersede(transaction: SqlTransaction, owner: str, key: int, named: Sequence[str]) -> None:
    """Store which records the one with this key supersedes now: of the ids it names, those that its agent has."""
    numbers = [number for one in named if (number := message_key(one)) is not None]
    await transaction.all(INSERT_SUPERSEDED, owner=owner, key=key, ids=list(named), numbers=numbers)
