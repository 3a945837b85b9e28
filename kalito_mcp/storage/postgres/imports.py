"""Statements on imported files, and on stored messages that an import compares."""

from typing import Final

SELECT_IMPORTS: Final = """
SELECT source, place, size, modified_ns, read_to, fingerprint FROM imports
WHERE owner_key = :owner AND source = :source ORDER BY place
"""
SELECT_IMPORT_SOURCES: Final = """
SELECT source, count(*), sum(read_to)::bigint, max(imported_at) FROM imports WHERE owner_key = :owner
GROUP BY source ORDER BY max(imported_at) DESC, source
"""
SELECT_IMPORT: Final = """
SELECT 1 FROM imports WHERE owner_key = :owner AND source = :source AND place = :place
"""
UPSERT_IMPORT: Final = """
INSERT INTO imports (owner_key, source, place, size, modified_ns, read_to, fingerprint, imported_at)
VALUES (:owner, :source, :place, :size, :modified_ns, :read_to, :fingerprint, :now_ms)
ON CONFLICT (owner_key, source, place) DO UPDATE SET size = excluded.size, modified_ns = excluded.modified_ns,
    read_to = excluded.read_to, fingerprint = excluded.fingerprint, imported_at = excluded.imported_at
"""
SELECT_STORED_TURNS: Final = """
SELECT seq, client_key, role, text, key, created_at, coalesce(recorded_at, created_at), client FROM records
WHERE owner_key = :owner AND session_key = :session_key AND type = 'message' AND seq > :after_seq
ORDER BY seq LIMIT :limit
"""
# A session has an index of its keys, so that each costs one look.
SELECT_HOLDING: Final = """
SELECT s.id FROM sessions s WHERE s.owner_key = :owner AND EXISTS (
    SELECT 1 FROM records r
    WHERE r.owner_key = :owner AND r.session_key = s.key AND r.type = 'message' AND r.client_key = :client_key
) ORDER BY s.key
"""
SELECT_AT_MOMENT: Final = """
SELECT s.id FROM sessions s
WHERE s.owner_key = :owner AND s.oldest_message_at <= :until AND s.newest_message_at >= :since AND EXISTS (
    SELECT 1 FROM records r
    WHERE r.owner_key = :owner AND r.session_key = s.key AND r.type = 'message' AND r.role = :role
        AND r.created_at BETWEEN :since AND :until
) ORDER BY s.key
"""
