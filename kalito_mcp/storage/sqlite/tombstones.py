"""Statements on tombstones."""

from typing import Final

from kalito_mcp.storage.sqlite.queries import within

SELECT_GONE: Final = """
SELECT secret, EXISTS (SELECT 1 FROM tombstones), EXISTS (SELECT 1 FROM forgotten_values) FROM identity
"""
# Messages and summaries leave a row that says where they were. Of others it is not known, so that within limits they
# are as if they had never been there.
WITHIN: Final = f"""
    ((:limit_agent IS NULL AND :limit_project IS NULL) OR EXISTS (
        SELECT 1 FROM records r
        WHERE r.key = coalesce(t.number, (SELECT o.key FROM records o WHERE o.id = t.record_id)) AND {within("r")}
    ))
"""
SELECT_TOMBSTONES_OF_TEXTS: Final = f"""
SELECT t.text_hash, t.number, t.seq, t.client_key_hash, t.created_at, t.purged_at FROM tombstones t
WHERE t.text_hash IN (SELECT value FROM json_each(:text_hashes)) AND t.owner = :owner AND t.type = :type AND {WITHIN}
ORDER BY t.purged_at, t.record_id
"""
SELECT_TOMBSTONE: Final = f"""
SELECT t.record_id, t.purged_at FROM tombstones t
WHERE t.record_id = :record_id AND t.owner = :owner AND {WITHIN} LIMIT 1
"""
SELECT_ERASED: Final = """
SELECT DISTINCT record_id FROM tombstones
WHERE record_id IN (SELECT value FROM json_each(:record_ids)) AND owner = :owner
"""
INSERT_TOMBSTONES: Final = """
INSERT OR REPLACE INTO tombstones (
    record_id, text_hash, owner, type, number, seq, client_key_hash, created_at, purged_at
)
SELECT :record_id, value, :owner, :type, :number, :seq, :client_key_hash, :created_at, :purged_at
FROM json_each(:text_hashes)
"""
SELECT_ANY_LEFTOVER: Final = "SELECT EXISTS (SELECT 1 FROM vector_leftovers)"
