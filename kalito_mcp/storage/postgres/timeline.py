"""Statements for a person who looks through conversations."""

from typing import Final

from kalito_mcp.domain.kinds import Kind
from kalito_mcp.storage.postgres.queries import within
from kalito_mcp.storage.postgres.record_statements import attribute
from kalito_mcp.storage.postgres.sessions import IN_SCOPE, SESSION_COLUMNS, SESSIONS_WITH_AGENTS
from kalito_mcp.storage.postgres.superseded import NOT_SUPERSEDED
from kalito_mcp.storage.record_rows import AT_THE_END
from kalito_mcp.storage.sessions import IS_SHOWN
from kalito_mcp.storage.timeline import QUARTER_MS

_IN_SCOPE: Final = f"s.owner_key = :owner AND (:agent IS NULL OR a.id = :agent) AND {IN_SCOPE}"
_CLIENT: Final = """(
    SELECT f.client FROM records f
    WHERE f.owner_key = :owner AND f.session_key = s.key AND f.type = 'message' AND f.seq = 1
)"""
_NOT_ERASED: Final = f"""
    ({IS_SHOWN} OR EXISTS (
        SELECT 1 FROM records k
        WHERE k.owner_key = :owner AND k.session_key = s.key AND k.type = 'message' AND k.purged_at IS NULL
    ))
"""
SELECT_BEGUN: Final = f"""
SELECT {_CLIENT}, {SESSION_COLUMNS} FROM {SESSIONS_WITH_AGENTS}
WHERE s.owner_key = :owner AND s.id = :session AND {within("s")} AND {_NOT_ERASED}
"""
SELECT_TIMELINE: Final = f"""
SELECT {_CLIENT}, {SESSION_COLUMNS} FROM {SESSIONS_WITH_AGENTS}
WHERE {_IN_SCOPE} AND {_NOT_ERASED} AND (s.said_at, s.key) < (
        :said_at, (SELECT coalesce(max(key), 0) FROM sessions WHERE owner_key = :owner AND id = :before)
    )
    AND (:begun_until::bigint IS NULL OR coalesce(s.oldest_message_at, s.created_at) <= :begun_until)
    AND (:client::text IS NULL OR {_CLIENT} = :client)
    AND (:is_forgotten::boolean IS NULL OR {IS_SHOWN} <> :is_forgotten)
ORDER BY s.said_at DESC, s.key DESC LIMIT :limit
"""
SELECT_CLIENTS: Final = f"""
SELECT DISTINCT client FROM (
    SELECT {_CLIENT} COLLATE "C" AS client FROM {SESSIONS_WITH_AGENTS}
    WHERE {_IN_SCOPE} ORDER BY s.said_at DESC, s.key DESC LIMIT :among
) newest WHERE client IS NOT NULL ORDER BY client
"""
_NOTE: Final = """
    r.id, r.type, coalesce(r.reach, 'session'), r.text, r.importance, r.created_at, r.tokens, r.role, r.origin, s.id,
    (SELECT p.id FROM projects p WHERE p.owner_key = :owner AND p.key = r.project_key),
    CASE WHEN r.type = 'pin' THEN r.attributes END
"""
SELECT_NOTES: Final = f"""
SELECT {_NOTE} FROM unnest(:ids) WITH ORDINALITY AS named (id, place)
JOIN sessions s ON s.owner_key = :owner AND s.id = named.id
CROSS JOIN LATERAL (
    SELECT key FROM records
    WHERE owner_key = :owner AND session_key = s.key AND type = 'summary' AND is_covered = 0
    UNION ALL (
        SELECT key FROM records
        WHERE owner_key = :owner AND session_key = s.key AND type = 'pin' AND deleted_at IS NULL AND is_internal = 0
        ORDER BY importance DESC, created_at DESC, key DESC LIMIT :limit
    )
) of_session
JOIN records r ON r.owner_key = :owner AND r.key = of_session.key
WHERE r.deleted_at IS NULL AND r.purged_at IS NULL AND r.is_internal = 0 AND {NOT_SUPERSEDED} AND {within("s")}
    AND {within("r")}
ORDER BY named.place, r.type DESC, CASE r.type WHEN 'summary' THEN r.seq END, r.importance DESC, r.created_at DESC,
    r.key DESC
"""
SELECT_OPEN_POINTS: Final = f"""
SELECT {_NOTE} FROM (
    SELECT pin.key FROM agents own CROSS JOIN LATERAL (
        SELECT key FROM records
        WHERE owner_key = :owner AND agent_key = own.key AND type = 'pin' AND id IS NOT NULL AND deleted_at IS NULL
        ORDER BY key DESC LIMIT 1000
    ) pin
    WHERE own.owner_key = :owner AND (:agent IS NULL OR own.id = :agent) ORDER BY pin.key DESC LIMIT 1000
) newest
JOIN records r ON r.owner_key = :owner AND r.key = newest.key
JOIN sessions s ON s.owner_key = :owner AND s.key = r.session_key
JOIN agents a ON a.owner_key = :owner AND a.key = s.agent_key
WHERE r.reach IS NULL AND {attribute("r", "kind")} = '{Kind.OPEN}'
    AND r.is_internal = 0 AND {_IN_SCOPE} AND {NOT_SUPERSEDED} AND r.created_at >= coalesce((
        SELECT m.created_at FROM records m
        WHERE m.owner_key = :owner AND m.session_key = r.session_key AND m.type = 'message' AND m.deleted_at IS NULL
        ORDER BY m.seq DESC LIMIT 1 OFFSET {AT_THE_END - 1}
    ), 0)
ORDER BY r.created_at DESC, r.key DESC LIMIT :limit
"""
SELECT_SPANS: Final = f"""
SELECT s.key, s.oldest_message_at, s.newest_message_at, s.message_count - s.hidden_count FROM {SESSIONS_WITH_AGENTS}
WHERE {_IN_SCOPE} AND s.said_at >= :since AND s.oldest_message_at < :until
"""
SELECT_QUARTERS: Final = f"""
SELECT r.created_at / {QUARTER_MS} * {QUARTER_MS}, count(*) FROM records r
WHERE r.owner_key = :owner AND r.session_key = ANY(:keys) AND r.type = 'message' AND r.deleted_at IS NULL
    AND r.created_at >= :since AND r.created_at < :until
GROUP BY 1
"""
