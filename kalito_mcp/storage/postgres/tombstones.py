"""Statements on tombstones."""

from typing import Final

from kalito_mcp.storage.postgres.forgotten_values import SELECT_ANY_FORGOTTEN
from kalito_mcp.storage.postgres.queries import within

# The order makes PostgreSQL look into the index, where an owner without any is found at once.
SELECT_GONE: Final = f"""
SELECT secret, (SELECT record_id FROM tombstones WHERE owner_key = :owner ORDER BY record_id LIMIT 1) IS NOT NULL,
    ({SELECT_ANY_FORGOTTEN}) IS NOT NULL
FROM identity
"""
# Messages and summaries leave a row that says where they were. Of others it is not known, so that within limits they
# are as if they had never been there.
WITHIN: Final = f"""
    ((:limit_agent IS NULL AND :limit_project IS NULL) OR EXISTS (
        SELECT 1 FROM records r
        WHERE r.owner_key = :owner AND r.key = coalesce(
            t.number, (SELECT o.key FROM records o WHERE o.owner_key = :owner AND o.id = t.record_id)
        ) AND {within("r")}
    ))
"""
SELECT_TOMBSTONES_OF_TEXTS: Final = f"""
SELECT t.text_hash, t.number, t.seq, t.client_key_hash, t.created_at, t.purged_at FROM tombstones t
WHERE t.owner_key = :owner AND t.text_hash = ANY(:text_hashes) AND t.type = :type AND {WITHIN}
ORDER BY t.purged_at, t.record_id
"""
SELECT_TOMBSTONE: Final = f"""
SELECT t.record_id, t.purged_at FROM tombstones t
WHERE t.owner_key = :owner AND t.record_id = :record_id AND {WITHIN} LIMIT 1
"""
SELECT_ERASED: Final = """
SELECT DISTINCT record_id FROM tombstones WHERE owner_key = :owner AND record_id = ANY(:record_ids)
"""
INSERT_TOMBSTONES: Final = """
INSERT INTO tombstones (
    owner_key, record_id, text_hash, type, number, seq, client_key_hash, created_at, purged_at
)
SELECT :owner, :record_id, text_hash, :type, :number, :seq, :client_key_hash, :created_at, :purged_at
FROM unnest(:text_hashes::text[]) AS text_hash
ON CONFLICT (owner_key, record_id, text_hash) DO UPDATE SET
    type = excluded.type, number = excluded.number, seq = excluded.seq, client_key_hash = excluded.client_key_hash,
    created_at = excluded.created_at, purged_at = excluded.purged_at
"""
