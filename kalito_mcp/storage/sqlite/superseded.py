"""Which records another one names in its field `supersedes`. Derived from the records.

A record that is forgotten supersedes nothing until it is restored.
"""

from collections.abc import Sequence
from typing import Final

from kalito_mcp.storage.queries import SqlTransaction
from kalito_mcp.storage.superseded import FIELD

NOT_SUPERSEDED: Final = """NOT EXISTS (
    SELECT 1 FROM superseded_records s JOIN records n ON n.key = s.by_key
    WHERE s.record_key = r.key AND n.deleted_at IS NULL
)"""
"""The condition that no other record supersedes the record `r`."""

DELETE_SUPERSEDED: Final = "DELETE FROM superseded_records WHERE by_key = :key"
# A message has its number in its id, and no id of its own in its row.
INSERT_ALL_SUPERSEDED: Final = f"""
INSERT OR IGNORE INTO superseded_records (by_key, record_key)
SELECT n.key, r.key FROM records n JOIN json_each(n.attributes, '$.{FIELD}') named JOIN records r ON r.key = coalesce(
    (SELECT key FROM records WHERE id = named.value),
    CASE WHEN named.value GLOB 'msg_[1-9]*' THEN CAST(substr(named.value, 5) AS INTEGER) END
)
WHERE instr(n.attributes, '"{FIELD}"') AND json_valid(n.attributes)
    AND coalesce(r.id, 'msg_' || r.key) = named.value
    AND r.agent_key = n.agent_key AND r.key <> n.key AND r.purged_at IS NULL
"""
INSERT_SUPERSEDED: Final = f"{INSERT_ALL_SUPERSEDED} AND n.key = :key"


async def supersede(transaction: SqlTransaction, owner: str, key: int, named: Sequence[str]) -> None:
    """Store which records the one with this key supersedes now: those it names that its agent has."""
    del owner, named  # they are in the row
    for statement in (DELETE_SUPERSEDED, INSERT_SUPERSEDED):
        await transaction.all(statement, key=key)
